/// Writes integers in as few bytes as they need.
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

    /// Appends a difference: small numbers of either sign are short.
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

/// Reads what `VariableWriter` wrote; nil if bytes are missing.
struct VariableReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    var isAtEnd: Bool { position == bytes.count }

    mutating func next() -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while position < bytes.count, shift < 64 {
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        return nil
    }

    mutating func nextSigned() -> Int64? {
        next().map { Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1) }
    }

    mutating func nextBytes() -> [UInt8]? {
        guard let count = next(), count <= bytes.count - position else { return nil }
        defer { position += Int(count) }
        return Array(bytes[position..<position + Int(count)])
    }

    mutating func nextFixed() -> UInt64? {
        guard position + 8 <= bytes.count else { return nil }
        defer { position += 8 }
        return bytes.withUnsafeBytes {
            UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: position, as: UInt64.self))
        }
    }
}
