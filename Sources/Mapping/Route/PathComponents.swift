/// Splits URL paths into components: first at slashes, then percent-decoded, so that `%2F` never adds one.
enum PathComponents {
    /// The raw pieces between slashes, without leading and trailing ones; two slashes in a row give an empty piece.
    static func split(_ path: String) -> [Substring.UTF8View] {
        let slash = UInt8(ascii: "/")
        var rest = Substring(path).utf8
        while rest.first == slash { rest.removeFirst() }
        while rest.last == slash { rest.removeLast() }
        return rest.isEmpty ? [] : rest.split(separator: slash, omittingEmptySubsequences: false)
    }

    /// The decoded components of a path; nil for a path with an empty component, which not even a wildcard matches.
    static func decoded(_ path: String) -> [String]? {
        let pieces = split(path)
        guard pieces.allSatisfy({ !$0.isEmpty }) else { return nil }
        // A component that cannot be decoded can still match a wildcard, as it was sent.
        return pieces.map { decode($0) ?? String(Substring($0)) }
    }

    /// The percent-decoded text of a component; nil if it is malformed or not UTF-8.
    static func decode(_ piece: Substring.UTF8View) -> String? {
        guard piece.contains(UInt8(ascii: "%")) else { return String(Substring(piece)) }
        var (bytes, rest) = ([UInt8](), piece)
        bytes.reserveCapacity(piece.count)
        while let byte = rest.popFirst() {
            if byte != UInt8(ascii: "%") {
                bytes.append(byte)
            } else if let high = rest.popFirst().flatMap(hexadecimalDigit),
                let low = rest.popFirst().flatMap(hexadecimalDigit)
            {
                bytes.append(UInt8(high << 4 | low))
            } else {
                return nil
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension StringProtocol {
    /// The part before the question mark: the path, if the text is a path and query.
    ///
    /// It works on bytes: characters take ten times as long, and a combining mark after the mark would hide it.
    @inlinable public var beforeQuery: SubSequence { self[..<(utf8.firstIndex(of: UInt8(ascii: "?")) ?? endIndex)] }
}
