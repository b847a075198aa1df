package import HTTPSemantics
import Yams

extension Address {
    /// Parses an address in its text form; the error says what to write instead.
    package init(_ text: String) throws(InvalidValue) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard !path.isEmpty else { throw InvalidValue("\"unix:\" needs a path after it") }
            guard !path.utf8.contains(0) else { throw InvalidValue("a socket path has no NUL in it") }
            // `sockaddr_un` holds 108 bytes, including the final NUL.
            guard path.utf8.count < 108 else {
                throw InvalidValue("the socket path is \(path.utf8.count) bytes long; Linux takes 107 at most")
            }
            self = .unix(path: path)
            return
        }
        if text.hasPrefix("/") { throw InvalidValue("\"\(text)\" looks like a socket's path; write \"unix:\(text)\"") }
        if text.contains("://") { throw InvalidValue("\"\(text)\" is a URL; write HOST:PORT or unix:PATH") }
        guard let colon = text.lastIndex(of: ":") else {
            if UInt16(text) != nil { throw InvalidValue("\"\(text)\" has no host; write \"127.0.0.1:\(text)\"") }
            throw InvalidValue("\"\(text)\" has no port; write HOST:PORT, for example \"127.0.0.1:8787\", or unix:PATH")
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            throw InvalidValue("\"\(text)\" is ambiguous; write an IPv6 address in brackets: \"[\(host)]:PORT\"")
        }
        guard !host.isEmpty else {
            throw InvalidValue(
                "\"\(text)\" has no host; write \"127.0.0.1\(text)\" (or \"0.0.0.0\(text)\" for every interface)"
            )
        }
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }), let port = UInt16(digits) else {
            throw InvalidValue("\"\(digits)\" is not a port; a port is a number from 0 to 65535 (0: any free one)")
        }
        guard host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "@") })
        else { throw InvalidValue("\"\(host)\" is not a host name or address") }
        self = .tcp(host: String(host), port: port)
    }

    /// Whether it is reachable only from this machine.
    var isLocal: Bool {
        switch self {
        case .unix: true
        case .tcp(let host, _): host == "localhost" || host == "::1" || host.hasPrefix("127.")
        }
    }
}

extension ConfigKey where Section: ConfigSection {
    /// One address or several.
    static func addresses(_ name: String, _ path: Path<[Address]>, example: String? = nil) -> ConfigKey {
        let addresses = Section()[keyPath: path]
        let fallback = addresses.isEmpty ? nil : ConfigText.list(addresses.map(\.description))
        return ConfigKey(name, .list(AddressDraft.kind), fallback: fallback, example: example) {
            node,
            section,
            reader in
            // The long form of one address is a mapping, not a list.
            let nodes = node.mapping == nil ? reader.list(node, wanted: "an address or a list of them") : [node]
            guard let nodes else { return }
            let found = nodes.map { ($0.place, reader.address($0)) }
            var known: Set<String> = []
            for case (let place, let address?) in found where !known.insert(address.description).inserted {
                if address.isFixed { reader.errorHere(place, "\(address) is named twice") }
            }
            if nodes.isEmpty { reader.errorHere(node.place, "the list is empty; name an address or leave the key out") }
            section[keyPath: path] = found.compactMap(\.1)
        }
    }
}

/// The long form of an address.
struct AddressDraft: ConfigSection {
    var text = ""
    var place: Place?
    var mode: UInt16?
    var group: String?

    static var kind: ConfigKind { .either([.text, .section(keys.map(\.facts))]) }

    static let keys: [ConfigKey<AddressDraft>] = documented([
        "HOST:PORT or unix:PATH.":
            ConfigKey("address", .text, example: "\"unix:/run/larder/larder.sock\"", isRequired: true) {
                (node, draft, reader) in
                draft.text = reader.text(node, wanted: "an address") ?? ""
                draft.place = node.place
            },
        "The socket's permissions in octal, in quotes.":
            .parsed("mode", wanted: "permissions in octal such as \"0660\"", example: "\"0660\"") { text, draft in
                let isOctal = (3...4).contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x37).contains($0) }
                guard isOctal, let mode = UInt16(text, radix: 8), mode <= 0o777 else {
                    throw InvalidValue("\"\(text)\" is not a mode; write permissions in octal such as \"0660\"")
                }
                draft.mode = mode
            },
        "The group that owns the socket.": .text("group", \.group, example: "larder"),
    ])
}

extension ConfigReader {
    /// An address in its short or its long form.
    mutating func address(_ node: Node) -> Address? {
        var draft = AddressDraft()
        if node.mapping != nil {
            section(node, into: &draft)
            if draft.text.isEmpty { return nil }
        } else {
            draft.text = text(node, wanted: "an address, HOST:PORT or unix:PATH") ?? ""
            draft.place = node.place
            if draft.text.isEmpty, !node.isNothing, node.scalar == nil { return nil }
            if node.isNothing { return nil }
        }
        do {
            let address = try Address(draft.text)
            guard case .unix(let path, _, _) = address else {
                if draft.mode != nil || draft.group != nil {
                    errorHere(draft.place, "only a Unix socket has a mode and a group; \(address) is a TCP address")
                }
                return address
            }
            return .unix(path: path, mode: draft.mode, group: draft.group)
        } catch { return failHere(draft.place, error.description) }
    }
}

extension Address {
    /// Whether the other names the same port or socket, permissions apart.
    func isSamePlace(as other: Address) -> Bool { description == other.description }

    /// Whether two listeners at it would collide; port 0 is a new port each time.
    var isFixed: Bool {
        if case .tcp(_, 0) = self { return false }
        return true
    }
}

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
            throw InvalidValue(
                "\"\(text)\" is not a URL; write it with its scheme, for example \"https://\(text)\""
            )
        }
        let scheme = text[..<mark.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else {
            throw InvalidValue("an upstream is reached by http or https, not by \"\(scheme)\"")
        }
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

    /// The value of `Host`.
    var authority: String {
        let host = host.contains(":") ? "[\(host)]" : host
        return port.map { "\(host):\($0)" } ?? host
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
