import Yams

extension ConfigKey where Section: ConfigSection {
    /// One address.
    static func address(
        _ name: String,
        _ path: any WritableKeyPath<Section, Address> & Sendable,
        _ text: String
    ) -> ConfigKey {
        let fallback = ConfigText.scalar(Section()[keyPath: path].description)
        return ConfigKey(name, AddressDraft.kind, fallback: fallback, text) { node, section, reader in
            if let address = reader.address(node) { section[keyPath: path] = address }
        }
    }

    /// One address or several.
    static func addresses(
        _ name: String,
        _ path: any WritableKeyPath<Section, [Address]> & Sendable,
        example: String? = nil,
        _ text: String
    ) -> ConfigKey {
        let addresses = Section()[keyPath: path]
        let fallback = addresses.isEmpty ? nil : ConfigText.list(addresses.map(\.description))
        return ConfigKey(name, .list(AddressDraft.kind), fallback: fallback, example: example, text) {
            node,
            section,
            reader in
            // The long form of one address is a mapping, which no list is.
            let nodes = node.mapping == nil ? reader.list(node, wanted: "an address or a list of them") : [node]
            guard let nodes else { return }
            let found = nodes.map { ($0.place, reader.address($0)) }
            for (index, (place, address)) in found.enumerated() {
                if let address, address.isFixed,
                    found[..<index].contains(where: { $0.1.map(address.isSamePlace(as:)) ?? false })
                {
                    reader.errorHere(place, "\(address) is named twice")
                }
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

    static let keys: [ConfigKey<AddressDraft>] = [
        ConfigKey(
            "address",
            .text,
            example: "\"unix:/run/larder/larder.sock\"",
            isRequired: true,
            "HOST:PORT or unix:PATH."
        ) { node, draft, reader in
            draft.text = reader.text(node, wanted: "an address") ?? ""
            draft.place = node.place
        },
        ConfigKey(
            "mode",
            .text,
            example: "\"0660\"",
            "The socket's permissions in octal, in quotes."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "permissions in octal such as \"0660\"") else { return }
            let isOctal = (3...4).contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x37).contains($0) }
            guard isOctal, let mode = UInt16(text, radix: 8), mode <= 0o777 else {
                reader.errorHere(node.place, "\"\(text)\" is not a mode; write permissions in octal such as \"0660\"")
                return
            }
            draft.mode = mode
        },
        .text("group", \.group, example: "larder", "The group that owns the socket."),
    ]
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
        } catch {
            errorHere(draft.place, error.description)
            return nil
        }
    }
}

extension Address {
    /// Whether the other names the same port or socket, permissions apart.
    func isSamePlace(as other: Address) -> Bool { description == other.description }

    /// Whether two listeners on it would be in each other's way; port 0 is a new port each time.
    var isFixed: Bool {
        if case .tcp(_, 0) = self { return false }
        return true
    }
}
