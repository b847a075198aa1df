import HTTPSemantics
import Settings
import Store

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

    /// Shorter ones are not looked for: they would be found by chance.
    private static let shortest = 8
    /// Of cookies only the longer ones are: many say `lang=en-GB`.
    private static let shortestCookie = 16

    init(of request: ProxyRequest) {
        let upstream = request.upstream
        var all: [Credential] = []
        func add(_ bytes: [UInt8], isOfPrincipal: Bool, isSecret: Bool = true) {
            guard !bytes.isEmpty, !all.contains(where: { $0.bytes == bytes }) else { return }
            let isLookedFor = isSecret && bytes.count >= Self.shortest
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
                    let value = cookie.drop { $0 != 0x3D }.dropFirst()
                    if value.count >= Self.shortestCookie { add(Array(value), isOfPrincipal: isOfPrincipal) }
                }
            } else {
                for part in Self.parts(of: line.value) { add(part, isOfPrincipal: isOfPrincipal, isSecret: isSecret) }
            }
        }
        self.all = all
    }

    /// Whether a text repeats a secret of the request; then nothing of it may reach the disk.
    func areRepeated(in text: [UInt8]) -> Bool {
        all.contains { $0.isLookedFor && Self.occurs($0.bytes, in: text) }
    }

    /// Whether a credential occurs in a text.
    ///
    /// This is the one comparison that decides whether a response repeats a secret.
    static func occurs(_ credential: [UInt8], in text: [UInt8]) -> Bool {
        MultipartByteRanges.occurs(credential, in: text[...])
    }

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
            let colon = decoded(credential).firstIndex(of: 0x3A)
        else { return [credential] }
        let plain = decoded(credential)
        let password = Array(plain[(colon + 1)...])
        // Some APIs take their key for the user name.
        return [credential, password.isEmpty ? Array(plain[..<colon]) : password]
    }

    /// What Base64 (RFC 4648 §4) stands for, as far as it is that.
    private static func decoded(_ text: [UInt8]) -> [UInt8] {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var (bytes, bits, count): ([UInt8], UInt32, Int) = ([], 0, 0)
        for byte in text {
            guard let digit = digits.firstIndex(of: byte) else { break }
            bits = bits << 6 | UInt32(digit)
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return bytes
    }
}

extension ProxyRequest {
    /// Its credentials, found anew at each call.
    var credentials: RequestCredentials { RequestCredentials(of: self) }

    /// Whether a response repeats a credential that it was asked for with; then nothing of it may reach the disk (law 4).
    func isRepeated(in body: [UInt8]) -> Bool { credentials.areRepeated(in: body) }
}
