import HTTPSemantics

/// The `Content-Range` of a 206 or 416 (RFC 9110 §14.4).
package struct ContentRange: Sendable, Equatable {
    /// Nil in a 416.
    package var range: Range<Int64>?
    /// The length of the whole; nil when the sender does not know it.
    package var length: Int64?

    /// Reads the value; nil when it is malformed, of another unit, or contradicts itself.
    package init?(_ value: [UInt8]) {
        guard let space = value.firstIndex(of: 0x20), let slash = value.firstIndex(of: 0x2F), space < slash,
            FieldSyntax.equalsIgnoringCase(value[..<space], "bytes".utf8)
        else { return nil }
        let span = value[(space + 1)..<slash]
        let total = value[(slash + 1)...]
        if !total.elementsEqual([0x2A]) {
            guard let length = Self.number(total) else { return nil }
            self.length = length
        }
        if span.elementsEqual([0x2A]) {
            guard length != nil else { return nil }
            return
        }
        guard let dash = span.firstIndex(of: 0x2D), let first = Self.number(span[..<dash]),
            let last = Self.number(span[(dash + 1)...]), first <= last, length.map({ last < $0 }) ?? true
        else { return nil }
        range = first..<(last + 1)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        guard !digits.isEmpty, digits.count <= 18, digits.allSatisfy(FieldSyntax.isDigit) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }
}
