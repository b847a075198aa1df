/// Writes numbers and bytes, each so that its end is known.
struct ByteWriter {
    var bytes: [UInt8] = []

    mutating func append(_ number: UInt64) { withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) } }

    mutating func append(_ number: Int64) { append(UInt64(bitPattern: number)) }

    mutating func append(_ value: [UInt8]) {
        append(UInt64(value.count))
        bytes += value
    }

    mutating func append(_ text: String) { append(Array(text.utf8)) }

    mutating func append(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

    mutating func append<Part>(optional part: Part?, _ write: (inout ByteWriter, Part) -> Void) {
        append(part != nil)
        if let part { write(&self, part) }
    }

    mutating func append<Part>(list parts: [Part], _ write: (inout ByteWriter, Part) -> Void) {
        append(UInt64(parts.count))
        for part in parts { write(&self, part) }
    }
}

/// Reads what `ByteWriter` has written; throws if it is something else.
struct ByteReader {
    struct Malformed: Error {}

    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isAtEnd: Bool { rest.isEmpty }

    private mutating func take(_ count: UInt64) throws -> ArraySlice<UInt8> {
        guard count <= UInt64(rest.count) else { throw Malformed() }
        defer { rest = rest.dropFirst(Int(count)) }
        return rest.prefix(Int(count))
    }

    mutating func byte() throws -> UInt8 {
        guard let byte = rest.popFirst() else { throw Malformed() }
        return byte
    }

    mutating func flag() throws -> Bool { try byte() != 0 }

    mutating func unsigned() throws -> UInt64 { try take(8).reduce(0) { $0 << 8 | UInt64($1) } }

    mutating func signed() throws -> Int64 { Int64(bitPattern: try unsigned()) }

    mutating func value() throws -> [UInt8] {
        let count = try unsigned()
        return Array(try take(count))
    }

    mutating func text() throws -> String { String(decoding: try value(), as: UTF8.self) }

    /// A number of parts, of which each has at least a byte.
    mutating func list<Part>(_ part: (inout ByteReader) throws -> Part) throws -> [Part] {
        let count = try unsigned()
        guard count <= UInt64(rest.count) else { throw Malformed() }
        var parts: [Part] = []
        for _ in 0..<count { parts.append(try part(&self)) }
        return parts
    }

    mutating func optional<Part>(_ part: (inout ByteReader) throws -> Part) throws -> Part? {
        try flag() ? try part(&self) : nil
    }
}
