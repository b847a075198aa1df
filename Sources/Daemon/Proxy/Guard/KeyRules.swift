import CachePolicy

/// What a route says of the spellings of a query: which of them are one (`key:` in the config).
///
/// Responses are stored under the URL that this makes; upstream goes what the client wrote.
struct KeyRules: Sendable, Equatable {
    private let sorts: Bool
    private let ignored: [Glob]

    /// Nil where the route says nothing.
    init?(_ key: CacheOverrides.Key) {
        guard key != CacheOverrides.Key() else { return nil }
        sorts = key.sort
        ignored = key.ignore.map { Glob($0) }
    }

    /// The URL with the ignored parameters gone and the others in the order of their names.
    ///
    /// Parameters of one name keep their order, which many servers heed. With the last parameter the `?` goes too.
    ///
    /// - Parameter url: path and query, escapes normalised, credentials redacted.
    func applied(to url: [UInt8]) -> [UInt8] {
        guard let mark = url.firstIndex(of: 0x3F), mark + 1 < url.count else { return url }
        let pieces = url[(mark + 1)...].split(separator: 0x26, omittingEmptySubsequences: false)
        var parameters = pieces.enumerated().map { (place: $0.offset, name: Self.name(of: $0.element)) }
        if !ignored.isEmpty {
            parameters.removeAll { parameter in
                !pieces[parameter.place].isEmpty && ignored.contains { $0.matches(parameter.name) }
            }
        }
        guard !parameters.isEmpty else { return Array(url[..<mark]) }
        if sorts {
            // The sort of the standard library keeps the order of equals, but does not promise to.
            parameters.sort { one, other in
                one.name == other.name ? one.place < other.place : one.name.lexicographicallyPrecedes(other.name)
            }
        }
        return Array(url[...mark]) + Array(parameters.map { pieces[$0.place] }.joined(separator: [0x26]))
    }

    private static func name(of parameter: ArraySlice<UInt8>) -> [UInt8] {
        TargetNormaliser.unescaped(parameter.prefix { $0 != 0x3D })
    }
}

/// A pattern of names in which `*` stands for any text; case matters.
struct Glob: Sendable, Equatable {
    /// What stands between the stars.
    private let pieces: [[UInt8]]

    init(_ pattern: String) {
        pieces = pattern.utf8.split(separator: 0x2A, omittingEmptySubsequences: false).map { Array($0) }
    }

    func matches(_ name: [UInt8]) -> Bool {
        guard pieces.count > 1, let first = pieces.first, let last = pieces.last else { return name == pieces.first }
        guard name.count >= first.count + last.count, name.starts(with: first),
            name.suffix(last.count).elementsEqual(last)
        else { return false }
        var rest = name[first.count..<(name.count - last.count)]
        // The leftmost place for each piece leaves most for those that follow.
        for piece in pieces[1..<(pieces.count - 1)] where !piece.isEmpty {
            guard let place = rest.firstRange(of: piece) else { return false }
            rest = rest[place.upperBound...]
        }
        return true
    }
}
