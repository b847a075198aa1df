/// A pattern of names in which `*` stands for any text; case matters.
package struct Glob: Sendable, Equatable {
    /// The texts between the stars.
    private let pieces: [[UInt8]]

    package init(_ pattern: String) {
        pieces = pattern.utf8.split(separator: 0x2A, omittingEmptySubsequences: false).map { Array($0) }
    }

    package func matches(_ name: [UInt8]) -> Bool {
        guard pieces.count > 1, let first = pieces.first, let last = pieces.last else { return name == pieces.first }
        guard name.count >= first.count + last.count, name.starts(with: first),
            name.suffix(last.count).elementsEqual(last)
        else { return false }
        var rest = name[first.count..<(name.count - last.count)]
        // The leftmost match of each piece leaves most for the pieces that follow.
        for piece in pieces[1..<(pieces.count - 1)] where !piece.isEmpty {
            guard let place = rest.firstRange(of: piece) else { return false }
            rest = rest[place.upperBound...]
        }
        return true
    }
}
