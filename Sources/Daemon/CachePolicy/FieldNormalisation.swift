import HTTPSemantics

/// Normalises equivalent field values, so that they select the same variant (RFC 9111 §4.1).
enum FieldNormalisation {
    /// The value in the form in which variants and contexts are compared; `name` is in lower case.
    ///
    /// `Accept`, `Accept-Language`, `Accept-Encoding` and `Accept-Charset` lose case, white space and superfluous weights, and
    /// are sorted by weight. Members of equal weight keep their order, because many servers treat it as a preference, except in
    /// `Accept-Encoding`, where none does. Other values keep their bytes except for white space around commas, which depends on
    /// how the lines of one field were combined.
    static func normalise(_ value: [UInt8], of name: String) -> [UInt8] {
        switch name {
        case "accept", "accept-language", "accept-charset": preferences(value, orderMatters: true)
        case "accept-encoding": preferences(value, orderMatters: false)
        default: spaced(value)
        }
    }

    /// Puts one comma and one space between the members of a list; quoted strings stay as they are.
    private static func spaced(_ value: [UInt8]) -> [UInt8] {
        let trimmed = FieldSyntax.trimmed(value[...])
        guard trimmed.contains(0x2C) else { return Array(trimmed) }
        var result: [UInt8] = []
        var index = trimmed.startIndex
        while index < trimmed.endIndex {
            if trimmed[index] == 0x22, let close = FieldSyntax.endOfQuotedString(trimmed, openedAt: index) {
                result += trimmed[index..<close]
                index = close
                continue
            }
            if trimmed[index] == 0x2C {
                while let last = result.last, FieldSyntax.isWhitespace(last) { result.removeLast() }
                result += [0x2C, 0x20]
                index = trimmed[(index + 1)...].firstIndex { !FieldSyntax.isWhitespace($0) } ?? trimmed.endIndex
                continue
            }
            result.append(trimmed[index])
            index += 1
        }
        return Array(FieldSyntax.trimmed(result[...]))
    }

    private static func preferences(_ value: [UInt8], orderMatters: Bool) -> [UInt8] {
        var members = FieldSyntax.members(value).map { preference($0) }
        // The sort is stable: equal members keep their positions.
        let order = members.indices.sorted { left, right in
            if members[left].weight != members[right].weight { return members[left].weight > members[right].weight }
            if !orderMatters, members[left].text != members[right].text {
                return members[left].text.lexicographicallyPrecedes(members[right].text)
            }
            return left < right
        }
        members = order.map { members[$0] }
        return Array(members.map(\.written).joined(separator: [0x2C]))
    }

    private struct Preference {
        var text: [UInt8]
        /// In thousandths.
        var weight: Int

        var written: [UInt8] {
            weight == 1000 ? text : text + Array(";q=0.".utf8) + Self.thousandths(weight)
        }

        private static func thousandths(_ weight: Int) -> [UInt8] {
            [UInt8(0x30 + weight / 100 % 10), UInt8(0x30 + weight / 10 % 10), UInt8(0x30 + weight % 10)]
        }
    }

    private static func preference(_ member: ArraySlice<UInt8>) -> Preference {
        let parts = FieldSyntax.members(member, separator: 0x3B)
        var text = FieldSyntax.lowercased(parts.first ?? [])
        var weight = 1000
        for part in parts.dropFirst() {
            if part.count > 2, FieldSyntax.equalsIgnoringCase(part.prefix(2), "q=".utf8),
                let parsed = self.weight(part.dropFirst(2))
            {
                weight = parsed
            } else {
                text.append(0x3B)
                text += parameter(part)
            }
        }
        return Preference(text: text, weight: weight)
    }

    /// Normalises a media type parameter: its name is case-insensitive, its value may not be.
    private static func parameter(_ part: ArraySlice<UInt8>) -> [UInt8] {
        guard let equals = part.firstIndex(of: 0x3D) else { return FieldSyntax.lowercased(part) }
        let isCharset = FieldSyntax.equalsIgnoringCase(part[..<equals], "charset".utf8)
        return FieldSyntax.lowercased(part[..<equals])
            + (isCharset ? FieldSyntax.lowercased(part[equals...]) : Array(part[equals...]))
    }

    /// Parses a weight into thousandths (RFC 9110 §12.4.2); nil if it is invalid.
    static func weight(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard let first = bytes.first, first == 0x30 || first == 0x31, bytes.count <= 5 else { return nil }
        var value = Int(first - 0x30) * 1000
        let rest = bytes.dropFirst()
        guard let point = rest.first else { return value }
        guard point == 0x2E else { return nil }
        var unit = 100
        for byte in rest.dropFirst() {
            guard FieldSyntax.isDigit(byte) else { return nil }
            value += Int(byte - 0x30) * unit
            unit /= 10
        }
        return value <= 1000 ? value : nil
    }
}
