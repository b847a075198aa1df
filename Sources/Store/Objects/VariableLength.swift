/// Writes integers in as few bytes as possible.
struct VariableWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// Appends a difference; small numbers of either sign are short.
    mutating func append(signed value: Int64) {
        append(UInt64(bitPattern: value << 1 ^ value >> 63))
    }

    mutating func append(bytes text: [UInt8]) {
        append(UInt64(text.count))
        bytes += text
    }

    mutating func append(fixed value: UInt64) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }
}

/// Reads bytes written by `VariableWriter`; throws `StoreError.corrupt` if bytes are missing.
struct VariableReader {
    private let bytes: [UInt8]
    /// The name of the content, for the error.
    private let content: StaticString
    private var position = 0

    init(_ bytes: [UInt8], of content: StaticString) {
        self.bytes = bytes
        self.content = content
    }

    var isAtEnd: Bool { position == bytes.count }

    mutating func next() throws(StoreError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while position < bytes.count, shift < 64 {
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        throw isCutShort
    }

    /// Reads a nonnegative number, or one that was appended by its bits.
    mutating func nextInteger() throws(StoreError) -> Int64 { Int64(bitPattern: try next()) }

    mutating func nextSigned() throws(StoreError) -> Int64 {
        let zigzag = try next()
        return Int64(bitPattern: zigzag >> 1) ^ -Int64(bitPattern: zigzag & 1)
    }

    mutating func nextBytes() throws(StoreError) -> [UInt8] {
        let count = try next()
        guard count <= bytes.count - position else { throw isCutShort }
        defer { position += Int(count) }
        return Array(bytes[position..<position + Int(count)])
    }

    mutating func nextFixed() throws(StoreError) -> UInt64 {
        guard position + 8 <= bytes.count else { throw isCutShort }
        defer { position += 8 }
        return bytes.withUnsafeBytes {
            UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: position, as: UInt64.self))
        }
    }

    private var isCutShort: StoreError { .corrupt("\(content) cut short") }
}
