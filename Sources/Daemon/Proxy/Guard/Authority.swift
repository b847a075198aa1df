import HTTPSemantics

/// A host with its port as `Host`, a URL or an `Origin` spells it (RFC 3986 §3.2).
package struct Authority: Sendable, Equatable {
    /// In lower case, without a trailing dot; an IPv6 address without its brackets.
    package var host: String
    /// Nil if none is given.
    package var port: UInt16?
    var isIPv6 = false

    package init(host: String, port: UInt16?) {
        let lowercased = host.lowercased()
        isIPv6 = lowercased.contains(":")
        self.host = lowercased
        self.port = port
    }

    /// Reads `host`, `host:port`, `[v6]` or `[v6]:port`; nil for anything else, user information and paths included.
    init?(_ bytes: some Collection<UInt8>) {
        var rest = FieldSyntax.lowercased(bytes)[...]
        if rest.first == 0x5B {
            guard let close = rest.firstIndex(of: 0x5D) else { return nil }
            let address = rest[(rest.startIndex + 1)..<close]
            guard !address.isEmpty,
                address.allSatisfy({ FieldSyntax.hexDigit($0) != nil || $0 == 0x3A || $0 == 0x2E })
            else { return nil }
            host = String(decoding: address, as: UTF8.self)
            isIPv6 = true
            rest = rest[(close + 1)...]
        } else {
            let end = rest.firstIndex(of: 0x3A) ?? rest.endIndex
            var name = rest[..<end]
            if name.last == 0x2E { name.removeLast() }
            guard !name.isEmpty, name.allSatisfy(Self.isHostByte) else { return nil }
            host = String(decoding: name, as: UTF8.self)
            rest = rest[end...]
        }
        guard let colon = rest.first else { return }
        guard colon == 0x3A else { return nil }
        let digits = rest.dropFirst()
        // An empty port is the scheme's (RFC 3986 §3.2.3).
        guard !digits.isEmpty else { return }
        guard digits.count <= 5, digits.allSatisfy(FieldSyntax.isDigit),
            let number = UInt16(String(decoding: digits, as: UTF8.self))
        else { return nil }
        port = number
    }

    package init?(_ text: String) { self.init(text.utf8) }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        byte &- 0x61 < 26 || FieldSyntax.isDigit(byte) || byte == 0x2D || byte == 0x2E || byte == 0x5F
    }

    /// Whether the host always means this machine, whatever a name server says (RFC 6761 §6.3).
    package var isLoopback: Bool {
        host == "localhost" || host.hasSuffix(".localhost") || isIPv6 && (host == "::1" || host == "0:0:0:0:0:0:0:1")
            || isIPv4 && host.hasPrefix("127.")
    }

    /// Whether the host is an address, which no name server can point elsewhere.
    var isAddress: Bool { isIPv6 || isIPv4 }

    private var isIPv4: Bool {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4
            && parts.allSatisfy { $0.count <= 3 && UInt8($0) != nil && $0.utf8.allSatisfy(FieldSyntax.isDigit) }
    }

    /// The authority as a URL spells it.
    var text: String {
        (isIPv6 ? "[\(host)]" : host) + (port.map { ":\($0)" } ?? "")
    }
}

/// A further name of this server, as in `hosts:`.
package struct OwnHost: Sendable, Equatable {
    package let authority: Authority
    /// Whether a proxy in front of this server serves the name by HTTPS, written as `https://` before it.
    let isSecure: Bool

    package init?(_ word: String) {
        isSecure = word.hasPrefix("https://")
        guard let authority = Authority(isSecure ? String(word.dropFirst("https://".count)) : word) else { return nil }
        self.authority = authority
    }

    /// Whether a request to this authority came by HTTPS under this name.
    func isSecure(for other: Authority) -> Bool {
        isSecure && authority.host == other.host && (authority.port ?? 443) == (other.port ?? 443)
    }
}

/// The address that a client used for Larder, for rewritten links.
package struct ClientAuthority: Sendable, Equatable {
    /// As in the client's `Host`.
    let authority: String

    var bytes: [UInt8] { Array(authority.utf8) }

    /// Whether a request names this authority.
    func isNamed(_ bytes: UnsafeRawBufferPointer?) -> Bool {
        guard let bytes else { return false }
        var text = authority
        return text.withUTF8 { $0.elementsEqual(bytes) }
    }
}
