import HTTPSemantics
import Settings
import Store
import Synchronization
import Upstream

/// The credentials of a request, as a response may repeat them (law 4).
struct RequestCredentials {
    /// A credential in one spelling.
    struct Credential {
        let bytes: [UInt8]
        /// Whether each request of the principal has it.
        let isOfPrincipal: Bool
        /// Whether it is looked for in responses: it is a secret, and too long to be found by chance.
        let isLookedFor: Bool
    }

    let all: [Credential]

    /// Of cookies only the longer ones are: many say `lang=en-GB`.
    private static let shortestCookie = 16

    init(of request: ProxyRequest) {
        let upstream = request.upstream
        var all: [Credential] = []
        func add(_ bytes: [UInt8], isOfPrincipal: Bool, isSecret: Bool = true) {
            guard !bytes.isEmpty, !all.contains(where: { $0.bytes == bytes }) else { return }
            let isLookedFor = isSecret && bytes.count >= KnownValues.shortest
            all.append(Credential(bytes: bytes, isOfPrincipal: isOfPrincipal, isLookedFor: isLookedFor))
        }
        if let credential = upstream.settings.credential {
            for part in Self.parts(of: credential.value.bytes) { add(part, isOfPrincipal: false) }
        }
        let url = Array(request.target.utf8)
        for (parameter, _) in upstream.principal.parameters(in: url) {
            guard let value = parameter.value else { continue }
            add(Array(url[value]), isOfPrincipal: true)
            add(TargetNormaliser.unescaped(url[value]), isOfPrincipal: true)
            add(Self.escaped(TargetNormaliser.unescaped(url[value])), isOfPrincipal: true)
        }
        for line in request.message.fields.lines {
            let isOfPrincipal = upstream.principal.reason(forField: line.name) != nil
            // `X-Auth-Email` comes with a credential, and is none.
            let isSecret =
                upstream.principal.isSecret(field: line.name)
                && (NameMeaning.ofField(line.name) == .unknown || NameMeaning.isSecretItself(line.name))
            guard isOfPrincipal || isSecret else { continue }
            if isSecret, line.isNamed("cookie") {
                for cookie in line.value.split(separator: 0x3B) {
                    let named = cookie.drop { $0 != 0x3D }.dropFirst()
                    // A cookie without a name is all value, with the padding of Base64.
                    let value = named.contains { $0 != 0x3D } ? named : FieldSyntax.trimmed(cookie)
                    if value.count >= Self.shortestCookie { add(Array(value), isOfPrincipal: isOfPrincipal) }
                }
            } else {
                for part in Self.parts(of: line.value) { add(part, isOfPrincipal: isOfPrincipal, isSecret: isSecret) }
            }
        }
        self.all = all
    }

    /// Whether a text repeats a secret of the request, in any spelling; then nothing of it may reach the disk.
    ///
    /// This is the one comparison that decides it.
    func areRepeated(in text: [UInt8]) -> Bool { Self.searches.search(for: all)?.occurs(in: text) ?? false }

    private static let searches = CredentialSearches()

    // MARK: Spellings

    /// All but unreserved characters (RFC 3986 §2.3) escaped.
    private static func escaped(_ text: [UInt8]) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return text.flatMap { byte -> [UInt8] in
            let isPlain = FieldSyntax.isLetter(byte) || FieldSyntax.isDigit(byte) || "-._~".utf8.contains(byte)
            return isPlain ? [byte] : [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }

    /// A field's value, what follows its scheme, and what is encoded in that as `Basic` has it.
    private static func parts(of value: [UInt8]) -> [[UInt8]] {
        guard let space = value.firstIndex(of: 0x20) else { return [value] }
        let credential = Array(value[(space + 1)...])
        guard FieldSyntax.equalsIgnoringCase(value[..<space], "basic".utf8),
            let colon = Base64.decode(credential).firstIndex(of: 0x3A)
        else { return [credential] }
        let plain = Base64.decode(credential)
        let password = Array(plain[(colon + 1)...])
        // Some APIs take their key for the user name.
        return [credential, password.isEmpty ? Array(plain[..<colon]) : password]
    }
}

extension ProxyRequest {
    /// Its credentials, found anew at each call.
    var credentials: RequestCredentials { RequestCredentials(of: self) }

    /// Whether a response repeats a credential that it was asked for with; then nothing of it may reach the disk (law 4).
    ///
    /// One with a content coding that cannot be decoded may do so.
    func isRepeated(in body: [UInt8], _ fields: Fields) -> Bool {
        let credentials = credentials
        guard fields.isContentCoded, !body.isEmpty, credentials.all.contains(where: \.isLookedFor)
        else { return credentials.areRepeated(in: body) }
        return DecodedBody.decode(body, fields).map { credentials.areRepeated(in: $0) } ?? true
    }
}

/// The searches for the credentials of recent requests; any thread.
///
/// All requests of a client have the same credentials, and preparing a search takes longer than searching a small response.
private final class CredentialSearches: Sendable {
    private static let capacity = 256
    private let known = Mutex<[[UInt8]: KnownValues]>([:])

    /// The search for the credentials that are looked for; nil if there are none.
    func search(for credentials: [RequestCredentials.Credential]) -> KnownValues? {
        let wanted = credentials.filter(\.isLookedFor)
        guard !wanted.isEmpty else { return nil }
        // No credential contains a NUL.
        let key = Array(wanted.map(\.bytes).joined(separator: [0]))
        if let search = known.withLock({ $0[key] }) { return search }
        let search = KnownValues(wanted.map(\.bytes))
        known.withLock { known in
            if known.count >= Self.capacity { known.removeAll() }
            known[key] = search
        }
        return search
    }
}
