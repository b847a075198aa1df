package import HTTPSemantics

/// For the hit path: a request's fields are compared where they lie, without allocating as long as they are spelled nearly
/// as they were the first time.
extension VarySelection {
    /// Whether a request selects this response.
    package func matches(_ request: borrowing RequestHead) -> Bool {
        for line in lines {
            var found = -1
            var occurrences = 0
            for index in 0..<request.fieldCount
            where FieldSyntax.equalsIgnoringCase(request.field(at: index).name, line.name.utf8) {
                found = index
                occurrences += 1
            }
            guard let stored = line.value else {
                if occurrences > 0 { return false }
                continue
            }
            if occurrences == 0 { return false }
            let isList = line.name.hasPrefix("accept")
            if occurrences == 1, Self.isSame(request.field(at: found).value, stored, isList: isList) { continue }
            return matchesNormalised(request)
        }
        return true
    }

    /// Whether the value equals the normalised one, white space next to commas and semicolons left aside.
    private static func isSame(_ value: UnsafeRawBufferPointer, _ stored: [UInt8], isList: Bool) -> Bool {
        guard isList else { return FieldSyntax.isSame(value, stored) }
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
    private func matchesNormalised(_ request: borrowing RequestHead) -> Bool {
        // Closures may not hold a view of the connection's buffer, so the values are taken out first.
        var values: [[UInt8]?] = []
        for line in lines { values.append(request.combined(line.name)) }
        var position = 0
        return matches { (_: String) -> [UInt8]? in
            defer { position += 1 }
            return values[position]
        }
    }
}
