/// The components of a URL path: split at slashes first, percent-decoded after, so that `%2F` never adds one.
enum PathComponents {
    /// The raw pieces between slashes, leading and trailing slashes ignored; an empty piece stands for two slashes in a row.
    static func split(_ path: String) -> [Substring.UTF8View] {
        let slash = UInt8(ascii: "/")
        var rest = Substring(path).utf8
        while rest.first == slash { rest.removeFirst() }
        while rest.last == slash { rest.removeLast() }
        return rest.isEmpty ? [] : rest.split(separator: slash, omittingEmptySubsequences: false)
    }

    /// The text of a component without its percent-encoding; nil when it is malformed or no UTF-8.
    static func decode(_ piece: Substring.UTF8View) -> String? {
        guard piece.contains(UInt8(ascii: "%")) else { return String(Substring(piece)) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(piece.count)
        var index = piece.startIndex
        while index < piece.endIndex {
            let byte = piece[index]
            index = piece.index(after: index)
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard index < piece.endIndex, let high = hexadecimalDigit(piece[index]) else { return nil }
            index = piece.index(after: index)
            guard index < piece.endIndex, let low = hexadecimalDigit(piece[index]) else { return nil }
            index = piece.index(after: index)
            bytes.append(UInt8(high << 4 | low))
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension StringProtocol {
    /// What stands before the question mark: the path, where this is a path and query.
    ///
    /// By bytes: by characters it takes ten times as long, and a combining mark behind the question mark would hide it.
    @inlinable public var beforeQuery: SubSequence {
        self[..<(utf8.firstIndex(of: UInt8(ascii: "?")) ?? endIndex)]
    }
}
