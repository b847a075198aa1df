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

    /// Whether the other names the same port or socket, permissions apart.
    package func isSamePlace(as other: Address) -> Bool { description == other.description }

    /// Whether two listeners at it would collide; port 0 is a new port each time.
    var isFixed: Bool {
        if case .tcp(_, 0) = self { return false }
        return true
    }
}

extension ConfigKey where Section: ConfigSection {
    static func addresses(_ name: String, _ path: Path<[Address]>, example: String? = nil) -> ConfigKey {
        let addresses = Section()[keyPath: path]
        let fallback = addresses.isEmpty ? nil : ConfigText.list(addresses.map(\.description))
        return ConfigKey(
            name,
            .list(AddressDraft.kind),
            fallback: fallback,
            example: example,
            comparing: ConfigChange.comparison(of: path, .text)
        ) { node, section, reader in
            // The long form of one address is a mapping, not a list.
            let nodes = node.mapping == nil ? reader.list(node, wanted: "an address or a list of them") : [node]
            guard let nodes else { return }
            let found = nodes.map { ($0.place, reader.address($0)) }
            var known: Set<String> = []
            for case (let place, let address?) in found where !known.insert(address.description).inserted {
                if address.isFixed { reader.errorAtPath(place, "\(address) is named twice") }
            }
            if nodes.isEmpty {
                reader.errorAtPath(node.place, "the list is empty; name an address or leave the key out")
            }
            section[keyPath: path] = found.compactMap(\.1)
        }
    }
}

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
                    errorAtPath(draft.place, "only a Unix socket has a mode and a group; \(address) is a TCP address")
                }
                return address
            }
            return .unix(path: path, mode: draft.mode, group: draft.group)
        } catch { return failAtPath(draft.place, error.description) }
    }
}
