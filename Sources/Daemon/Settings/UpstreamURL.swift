/// The origin and base path of an upstream: `https://example.com:8443/api/v4`.
package struct UpstreamURL: Sendable, Hashable, CustomStringConvertible {
    /// `http` or `https`.
    package var scheme = "https"
    /// In lower case; an IPv6 address without its brackets.
    package var host = ""
    /// Nil for the scheme's default.
    package var port: UInt16?
    /// Percent-encoded, `/api/v4`: a slash before, none at the end; empty for the root.
    package var basePath = ""

    init() {}

    /// Parses a URL; the error says what to write instead.
    package init(_ text: String) throws(InvalidValue) {
        guard let mark = text.firstRange(of: "://") else {
            throw InvalidValue("\"\(text)\" is not a URL; write it with its scheme, for example \"https://\(text)\"")
        }
        let scheme = text[..<mark.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https"
        else { throw InvalidValue("an upstream is reached by http or https, not by \"\(scheme)\"") }
        let rest = text[mark.upperBound...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let path = rest[authority.endIndex...]
        guard !authority.contains("@") else {
            throw InvalidValue("a URL must not contain a user name or password; give them by \"credential:\" instead")
        }
        guard !path.contains("?") else {
            throw InvalidValue("the URL of an upstream has no query; leave out what follows \"?\"")
        }
        guard !path.contains("#") else {
            throw InvalidValue("the URL of an upstream has no fragment; leave out what follows \"#\"")
        }
        self.scheme = scheme
        (host, port) = try Self.hostAndPort(authority)
        basePath = try Self.basePath(path)
    }

    /// The URL in its canonical spelling, without a final slash.
    package var description: String { origin + basePath }

    /// Scheme, host, and port if it is not the scheme's default.
    package var origin: String { "\(scheme)://\(authority)" }

    /// The one spelling for all URLs with the same origin and base path: without the scheme's default port.
    package var canonical: String {
        var url = self
        if url.port == (scheme == "https" ? 443 : 80) { url.port = nil }
        return url.description
    }

    var authority: String {
        let host = host.contains(":") ? "[\(host)]" : host
        return port.map { "\(host):\($0)" } ?? host
    }

    /// Whether it may be another installation of a well-known API: not one for tests on this machine, and not `api.…`.
    var mayBeServerOfTheirOwn: Bool {
        !host.hasPrefix("api.") && host.contains(where: \.isLetter) && host.contains(".") && !host.contains(":")
    }

    private static func hostAndPort(_ authority: Substring) throws(InvalidValue) -> (String, UInt16?) {
        var host = authority
        var port: UInt16?
        let afterBracket = authority.lastIndex(of: "]") ?? authority.startIndex
        if let colon = authority[afterBracket...].lastIndex(of: ":") {
            host = authority[..<colon]
            let digits = authority[authority.index(after: colon)...]
            guard let number = UInt16(digits), number > 0 else {
                throw InvalidValue("\"\(digits)\" is not a port; a port is a number from 1 to 65535")
            }
            port = number
        }
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty else { throw InvalidValue("the URL has no host") }
        let isAllowed: (UInt8) -> Bool = { byte in
            byte > 0x20 && byte < 0x7F && !"\"<>\\^`{|}%[]".utf8.contains(byte)
        }
        guard host.utf8.allSatisfy(isAllowed) else {
            throw InvalidValue("\"\(host)\" is not a host name; write international names in their xn-- form")
        }
        return (host.lowercased(), port)
    }

    private static func basePath(_ path: Substring) throws(InvalidValue) -> String {
        var path = path
        while path.hasSuffix("/") { path = path.dropLast() }
        guard path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw InvalidValue("percent-encode what is neither letter, digit nor sign in the path \"\(path)\"")
        }
        for piece in path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        where piece.isEmpty || piece == "." || piece == ".." {
            throw InvalidValue("the path \"\(path)\" has an empty component or dots in it; write it out")
        }
        return String(path)
    }
}
