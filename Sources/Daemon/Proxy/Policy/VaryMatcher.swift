/// A `VarySelection` made ready for the hit path: compares a request's fields where they lie, without allocating as long
/// as they are spelled nearly as they were the first time.
struct VaryMatcher: Sendable {
    let selection: VarySelection
    private let lines: [(name: [UInt8], value: [UInt8]?, isList: Bool)]

    init(_ selection: VarySelection) {
        self.selection = selection
        lines = selection.lines.map { (Array($0.name.utf8), $0.value, $0.name.hasPrefix("accept")) }
    }

    /// Whether the answer varies by nothing that the key does not hold already.
    var isEmpty: Bool { lines.isEmpty }

    /// Whether a request selects this answer.
    /// - Parameter field: name and value of the field line at a position from 0 to `count`.
    @inline(__always)
    func matches(
        count: Int,
        field: (Int) -> (name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)
    ) -> Bool {
        for line in lines {
            var found = -1
            var occurrences = 0
            for index in 0..<count where FieldSyntax.equalsIgnoringCase(field(index).name, line.name) {
                found = index
                occurrences += 1
            }
            guard let stored = line.value else {
                if occurrences > 0 { return false }
                continue
            }
            if occurrences == 0 { return false }
            if occurrences == 1, Self.isSame(field(found).value, stored, isList: line.isList) { continue }
            return matchesNormalised(count: count, field: field)
        }
        return true
    }

    /// Whether the value equals the normalised one, white space next to commas and semicolons left aside.
    private static func isSame(_ value: UnsafeRawBufferPointer, _ stored: [UInt8], isList: Bool) -> Bool {
        guard isList else { return value.count == stored.count && value.elementsEqual(stored) }
        var position = 0
        var index = 0
        while index < value.count {
            let byte = value[index]
            if FieldSyntax.isWhitespace(byte) {
                let end = value[index...].firstIndex { !FieldSyntax.isWhitespace($0) } ?? value.count
                let isAtSeparator =
                    index == 0 || end == value.count || isSeparator(value[index - 1]) || isSeparator(value[end])
                guard isAtSeparator else { return false }
                index = end
                continue
            }
            guard position < stored.count, stored[position] == byte else { return false }
            position += 1
            index += 1
        }
        return position == stored.count
    }

    private static func isSeparator(_ byte: UInt8) -> Bool { byte == 0x2C || byte == 0x3B }

    /// The slow way, through normalisation.
    private func matchesNormalised(
        count: Int,
        field: (Int) -> (name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)
    ) -> Bool {
        selection.matches { name in
            var joined: [UInt8]?
            for index in 0..<count where FieldSyntax.equalsIgnoringCase(field(index).name, Array(name.utf8)) {
                joined = (joined.map { $0 + [0x2C, 0x20] } ?? []) + Array(field(index).value)
            }
            return joined
        }
    }
}
