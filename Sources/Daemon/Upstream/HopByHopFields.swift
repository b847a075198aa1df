extension Fields {
    /// The fields that go on to the next hop (RFC 9110 §7.6.1): without hop-by-hop ones and those that `Connection` names.
    ///
    /// `Cache-Control` and `Host` stay even if named: the first is never a connection option (ibid.), and dropping either
    /// at a stranger's word would change what may be stored or where a request goes.
    func withoutHopByHop() -> Fields {
        let named = connectionOptions()
        return Fields(
            lines.filter { line in
                let name = line.lowercasedName
                return !ConnectionFields.names.contains(name) && !named.contains(name)
            }
        )
    }

    /// The names in `Connection`, in lower case.
    private func connectionOptions() -> Set<String> {
        var options: Set<String> = []
        for value in all("connection") {
            for part in value.split(separator: UInt8(ascii: ",")) {
                options.insert(Field(name: part.trimmingBlanks(), value: []).lowercasedName)
            }
        }
        return options.subtracting(ConnectionFields.protected)
    }
}

private enum ConnectionFields {
    /// Fields that concern one connection only, whether or not `Connection` names them.
    static let names: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        "proxy-authenticate", "proxy-authorization", "proxy-authentication-info",
    ]
    static let protected: Set<String> = ["cache-control", "host"]
}

extension Collection<UInt8> where SubSequence: BidirectionalCollection {
    /// The bytes without spaces and tabs at both ends.
    func trimmingBlanks() -> [UInt8] {
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        guard let first = firstIndex(where: { !isBlank($0) }) else { return [] }
        let rest = self[first...]
        guard let last = rest.lastIndex(where: { !isBlank($0) }) else { return [] }
        return Array(rest[...last])
    }
}
