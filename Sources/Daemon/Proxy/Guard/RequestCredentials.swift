import Basics
import HTTPSemantics
import Settings
import Store
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

    private(set) var all: [Credential] = []
    /// Finds those that are looked for; nil if there are none.
    private var search: KnownValues?

    /// Of cookies only the longer ones are: many say `lang=en-GB`.
    private static let shortestCookie = 16

    init(of request: ProxyRequest) {
        let upstream = request.upstream
        if let credential = upstream.settings.credential {
            for secret in credential.value.all.flatMap(FieldCredentials.secrets) { add(secret, isOfPrincipal: false) }
        }
        let url = request.target.utf8.contains(0x3D) ? Array(request.target.utf8) : []
        for (parameter, _) in upstream.principal.parameters(in: url) {
            guard let value = parameter.value else { continue }
            let plain = TargetNormaliser.unescaped(url[value])
            for spelling in [Array(url[value]), plain, PercentEncoding.encode(bytes: plain)] {
                add(spelling, isOfPrincipal: true)
            }
        }
        var isTokenNext = false
        for line in request.message.fields where !upstream.isWithoutCredential(line) {
            add(line.field, upstream.principal, &isTokenNext)
        }
        let secrets = all.filter(\.isLookedFor).map(\.bytes)
        guard !secrets.isEmpty else { return }
        // No credential contains a NUL.
        search = Self.searches.value(for: Array(secrets.joined(separator: [0]))) { KnownValues(secrets) }
    }

    private mutating func add(_ line: Field, _ principal: PrincipalFields, _ isTokenNext: inout Bool) {
        let isOfPrincipal = principal.reason(forField: line.name) != nil
        // `X-Auth-Email` is sent beside a credential, and is not secret itself.
        let isSecret =
            principal.isSecret(field: line.name)
            && (NameMeaning.ofField(line.name) == .unknown || NameMeaning.isSecretItself(line.name))
        if isSecret, line.isNamed("cookie") {
            for cookie in line.value.split(separator: 0x3B) {
                let named = cookie.drop { $0 != 0x3D }.dropFirst()
                // A cookie without a name is all value, with the padding of Base64.
                let value = FieldSyntax.trimmed(named.contains { $0 != 0x3D } ? named : cookie)
                if value.count >= Self.shortestCookie { add(Array(value), isOfPrincipal: isOfPrincipal) }
            }
        } else if isOfPrincipal || isSecret {
            for secret in FieldCredentials.secrets(in: line.value) {
                add(secret, isOfPrincipal: isOfPrincipal, isSecret: isSecret)
            }
        } else if line.isNamed("sec-websocket-protocol") {
            for token in FieldCredentials.tokens(inProtocols: line.value, isNext: &isTokenNext) {
                add(Array(line.value[token]), isOfPrincipal: false)
            }
        } else {
            for secret in principal.secretsOfURLs(in: line) {
                add(secret, isOfPrincipal: false)
                // After a user name.
                add(Array(secret.drop { $0 != 0x3A }.dropFirst()), isOfPrincipal: false)
            }
        }
    }

    private mutating func add(_ bytes: [UInt8], isOfPrincipal: Bool, isSecret: Bool = true) {
        guard !bytes.isEmpty, !all.contains(where: { $0.bytes == bytes }) else { return }
        let isLookedFor = isSecret && bytes.count >= KnownValues.shortest
        all.append(Credential(bytes: bytes, isOfPrincipal: isOfPrincipal, isLookedFor: isLookedFor))
    }

    var areNone: Bool { all.isEmpty }

    /// All requests of a client have the same credentials, and preparing a search takes longer than searching a small response.
    private static let searches = Memo<[UInt8], KnownValues>(limit: 256)

    // MARK: Search

    /// Whether a text repeats a secret of the request, in any spelling; then nothing of it may reach the disk.
    ///
    /// This is the one comparison that decides it.
    func areRepeated(in text: [UInt8]) -> Bool { search?.occurs(in: text) ?? false }

    /// The same for a response's body, also in a content coding, and in compressed files.
    ///
    /// One that cannot be decoded may repeat them.
    func areRepeated(inBody body: [UInt8], _ fields: Fields) -> Bool {
        guard search != nil, !body.isEmpty else { return false }
        guard var content = fields.isContentCoded ? DecodedBody.decode(body, fields) : body else { return true }
        for _ in 0..<Self.files {
            if areRepeated(in: content) { return true }
            guard let file = DecodedBody.ofFile(content) else { return false }
            content = file.content
        }
        return true
    }

    /// Compressed files within each other beyond this are not decoded.
    private static let files = 4
}

extension ProxyRequest {
    /// Its credentials, found anew at each call.
    var credentials: RequestCredentials { RequestCredentials(of: self) }
}
