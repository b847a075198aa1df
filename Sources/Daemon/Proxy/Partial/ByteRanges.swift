import CachePolicy
import HTTPSemantics

/// Several parts of a response in one body: `multipart/byteranges` (RFC 9110 §14.6).
struct ByteRanges {
    /// One part, and where it lies in the whole.
    struct Part {
        var range: Range<Int>
        var bytes: ArraySlice<UInt8>
    }

    /// The message's own `Content-Type`, with the boundary.
    let contentType: String
    let body: [UInt8]

    /// - Parameters:
    ///   - contentType: of the whole; each part repeats it.
    ///   - length: of the whole; nil where it is not known.
    init(_ parts: [Part], contentType: [UInt8]?, length: Int?) {
        let boundary = Self.boundary(outside: parts)
        var body: [UInt8] = []
        body.reserveCapacity(parts.reduce(64) { $0 + $1.bytes.count + 192 })
        for part in parts {
            body += Array("\r\n--\(boundary)\r\n".utf8)
            if let contentType { body.append(field: Field(name: Array("Content-Type".utf8), value: contentType)) }
            body.append(field: Field("Content-Range", RangeField.contentRange(part.range, length: length)))
            body += [0x0D, 0x0A]
            body += part.bytes
        }
        body += Array("\r\n--\(boundary)--\r\n".utf8)
        self.body = body
        self.contentType = "multipart/byteranges; boundary=\(boundary)"
    }

    /// A text that occurs in none of the parts.
    ///
    /// Drawn by lot, so that nobody can write a body that holds the next one; looked for nonetheless.
    private static func boundary(outside parts: [Part]) -> String {
        while true {
            let lot = UInt64.random(in: .min ... .max)
            let digits = String(lot, radix: 16)
            let boundary = "larder_" + String(repeating: "0", count: 16 - digits.count) + digits
            if !parts.contains(where: { occurs(Array(boundary.utf8), in: $0.bytes) }) { return boundary }
        }
    }

    /// Whether a text occurs in a part; by its first byte first, since bodies are large.
    static func occurs(_ text: [UInt8], in bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = text.first else { return true }
        return bytes.withUnsafeBufferPointer { bytes in
            guard bytes.count >= text.count else { return false }
            for start in 0...(bytes.count - text.count) where bytes[start] == first {
                if text.indices.allSatisfy({ bytes[start + $0] == text[$0] }) { return true }
            }
            return false
        }
    }
}
