import HTTPSemantics
import HTTPServer
import Settings

/// The credentials of a request, as a response may repeat them.
extension ProxyRequest {
    /// Whether a response repeats a credential that it was asked for with; then nothing of it may reach the disk (law 4).
    func isRepeated(in body: [UInt8], _ fields: Fields = Fields()) -> Bool {
        let secrets = secrets
        guard !secrets.isEmpty else { return false }
        let texts = [body] + upstream.storable(fields).lines.map(\.value)
        return secrets.contains { secret in texts.contains { ByteRanges.occurs(secret, in: $0[...]) } }
    }

    /// Shorter ones are not looked for: they would be found by chance.
    private static let shortest = 8
    /// Of cookies only the longer ones are: many say `lang=en-GB`.
    private static let shortestCookie = 16

    private var secrets: [[UInt8]] {
        var secrets: [[UInt8]] = []
        if let credential = upstream.settings.credential { secrets += Self.parts(of: credential.value.bytes) }
        for line in message.fields.lines where upstream.principal.isSecret(field: line.name) {
            // `X-Auth-Email` comes with a credential, and is none.
            if NameMeaning.ofField(line.name) != .unknown, !NameMeaning.isSecretItself(line.name) { continue }
            if line.isNamed("cookie") {
                for cookie in line.value.split(separator: 0x3B) {
                    let value = cookie.drop { $0 != 0x3D }.dropFirst()
                    if value.count >= Self.shortestCookie { secrets.append(Array(value)) }
                }
            } else {
                secrets += Self.parts(of: line.value)
            }
        }
        let url = Array(target.utf8)
        for parameter in URLParameters(url) where upstream.principal.reason(forParameter: url[parameter.name]) != nil {
            guard let value = parameter.value else { continue }
            secrets += [Array(url[value]), TargetNormaliser.unescaped(url[value])]
        }
        return secrets.filter { $0.count >= Self.shortest }
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
