import HTTPSemantics

/// How the fields of a response lie in the store: as lines, as HTTP/1.1 writes them.
enum StoredHead {
    static func encode(_ fields: Fields) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(fields.lines.reduce(0) { $0 + $1.name.count + $1.value.count + 4 })
        for line in fields.lines { bytes.append(field: line) }
        return bytes
    }

    static func decode(_ bytes: [UInt8]) -> Fields {
        var lines: [Field] = []
        for line in bytes.split(separator: 0x0A) {
            guard let colon = line.firstIndex(of: 0x3A) else { continue }
            let value = line[(colon + 1)...].dropFirst().dropLast()
            lines.append(Field(name: Array(line[..<colon]), value: Array(value)))
        }
        return Fields(lines)
    }
}

extension [UInt8] {
    /// Appends a field line in the form of HTTP/1.1.
    mutating func append(field: Field) {
        append(contentsOf: field.name)
        append(contentsOf: [0x3A, 0x20])
        append(contentsOf: field.value)
        append(contentsOf: [0x0D, 0x0A])
    }
}
