import HTTPSemantics

/// `Set-Cookie`, made fit for the address that the client used.
extension LinkRewriter {
    /// The field for the client; nil if it fits already.
    ///
    /// A client does not keep a cookie for another host, or with `Secure` if it came without TLS. It sends it below its path only,
    /// which begins with the prefix here. A cookie whose name begins with `__Secure-` or `__Host-` would be worth nothing without
    /// `Secure`, and keeps it.
    func rewritten(cookie: [UInt8]) -> [UInt8]? {
        var parts = cookie.split(separator: 0x3B, omittingEmptySubsequences: false).map { Array($0) }
        guard let pair = parts.first else { return nil }
        let needsSecure = ["__secure-", "__host-"].contains {
            FieldSyntax.lowercased(FieldSyntax.trimmed(pair[...])).starts(with: $0.utf8)
        }
        let isPlain = URIReference(client).scheme.map { $0.elementsEqual("http".utf8) } ?? false
        parts =
            [pair]
            + parts.dropFirst().compactMap { part in
                let (name, value) = Self.attribute(part)
                switch name {
                case "domain": return isOwnDomain(value) ? part : nil
                case "path":
                    guard let path = path(ofCookie: value) else { return part }
                    return Array(" Path=".utf8) + path
                case "secure", "partitioned": return isPlain && !needsSecure ? nil : part
                case "samesite":
                    // Browsers accept `None` beside `Secure` only.
                    let isNone = FieldSyntax.equalsIgnoringCase(value, "none".utf8)
                    return isNone && isPlain && !needsSecure ? nil : part
                default: return part
                }
            }
        let result = Array(parts.joined(separator: [0x3B]))
        return result == cookie ? nil : result
    }

    private static func attribute(_ part: [UInt8]) -> (name: String, value: ArraySlice<UInt8>) {
        let name = part.prefix { $0 != 0x3D }
        return (
            String(decoding: FieldSyntax.lowercased(FieldSyntax.trimmed(name)), as: UTF8.self),
            FieldSyntax.trimmed(part.dropFirst(name.count + 1))
        )
    }

    /// Whether the client's host lies in a cookie's domain.
    private func isOwnDomain(_ domain: ArraySlice<UInt8>) -> Bool {
        let domain = FieldSyntax.lowercased(domain.first == 0x2E ? domain.dropFirst() : domain)
        guard let authority = URIReference(client).authority else { return false }
        // What follows the last colon outside of brackets is the port.
        let colon = authority.lastIndex(of: 0x3A).flatMap { $0 > authority.lastIndex(of: 0x5D) ?? -1 ? $0 : nil }
        let host = FieldSyntax.lowercased(authority[..<(colon ?? authority.endIndex)])
        return host == domain
            || host.count > domain.count && host.suffix(domain.count + 1).elementsEqual([0x2E] + domain)
    }

    /// The path here for a cookie's path at the upstream; nil if it stays.
    private func path(ofCookie path: ArraySlice<UInt8>) -> [UInt8]? {
        guard hasOtherPaths, path.first == 0x2F else { return nil }
        var folder = Array(path)
        while folder.last == 0x2F { folder.removeLast() }
        let whole: [UInt8]
        if basePath.starts(with: folder), basePath.count == folder.count || basePath[folder.count] == 0x2F {
            whole = clientPrefix
        } else if let rest = Self.rest(of: folder, under: basePath) {
            whole = clientPrefix + rest
        } else {
            return nil
        }
        return whole.isEmpty ? [0x2F] : whole
    }
}
