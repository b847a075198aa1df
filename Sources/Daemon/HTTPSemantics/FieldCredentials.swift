/// The secrets in the values of fields that hold credentials.
///
/// The recorder replaces them, and the store's guard looks for them in responses.
package enum FieldCredentials {
    /// What may be repeated of a field such as `Authorization`: what follows the scheme, the password in that of `Basic`, and
    /// parameters such as `oauth_token="…"`.
    package static func secrets(in value: [UInt8]) -> [[UInt8]] {
        let credential = withoutScheme(value)
        var secrets = [Array(credential)]
        if FieldSyntax.equalsIgnoringCase(value.prefix { !FieldSyntax.isWhitespace($0) }, "basic".utf8) {
            let plain = Base64.decode(credential)
            if let colon = plain.firstIndex(of: 0x3A) {
                // Some APIs expect their key as the user name.
                let password = Array(plain[(colon + 1)...])
                secrets.append(password.isEmpty ? Array(plain[..<colon]) : password)
            }
        }
        for list in FieldSyntax.members(value) {
            for member in FieldSyntax.members(list, separator: 0x3B) {
                guard let equals = member.firstIndex(of: 0x3D),
                    // The scheme stands before the first one.
                    let name = member[..<equals].split(whereSeparator: FieldSyntax.isWhitespace).last,
                    NameMeaning.isSecret(authorizationParameter: Array(name))
                else { continue }
                secrets.append(unquoted(Array(FieldSyntax.trimmed(member[(equals + 1)...]))))
            }
        }
        return secrets.filter { !$0.isEmpty }
    }

    /// What follows the scheme in a value such as `Bearer abc`.
    package static func withoutScheme(_ value: [UInt8]) -> ArraySlice<UInt8> {
        guard let space = value.firstIndex(where: FieldSyntax.isWhitespace), FieldSyntax.isToken(value[..<space])
        else { return value[...] }
        return FieldSyntax.trimmed(value[space...])
    }

    package static func unquoted(_ value: [UInt8]) -> [UInt8] {
        value.count >= 2 && value.first == 0x22 && value.last == 0x22 ? Array(value[1..<value.count - 1]) : value
    }

    /// The tokens in a line of `Sec-WebSocket-Protocol`, into which programs put them that cannot set other fields.
    ///
    /// - Parameter isNext: Whether the last name said that a token follows; this line may be the next one of a list.
    package static func tokens(inProtocols value: [UInt8], isNext: inout Bool) -> [Range<Int>] {
        FieldSyntax.members(value).compactMap { member in
            let isExpected = isNext
            isNext = NameMeaning.isSecretField(Array(member))
            if isExpected, !isNext { return member.indices }
            return token(inProtocol: member)
        }
    }

    /// The token after a word that says so, as in `openai-insecure-api-key.sk-…`.
    private static func token(inProtocol name: ArraySlice<UInt8>) -> Range<Int>? {
        // Kubernetes: `base64url.bearer.authorization.k8s.io.TOKEN`.
        if let host = FieldSyntax.last("k8s.io.", in: Array(name)), host.upperBound < name.count {
            return name.startIndex + host.upperBound..<name.endIndex
        }
        return name.indices.lazy.compactMap { place -> Range<Int>? in
            let rest = name[(place + 1)...]
            guard [0x2D, 0x2E, 0x5F].contains(name[place]), NameMeaning.isSecretField(Array(name[..<place])),
                name[place] == 0x2E && rest.count >= KnownValues.shortest || WeighedName.looksRandom(rest)
            else { return nil }
            return rest.indices
        }.first
    }
}
