package import HTTPSemantics

/// The request fields that selected a response, with their values: the secondary key of RFC 9111 §4.1.
///
/// Its bytes name the variant in the store: equal selections have equal bytes.
package struct VarySelection: Sendable, Equatable {
    /// One selecting field; a nil value means that the request did not have it, which differs from an empty one.
    package struct Line: Sendable, Equatable {
        /// In lower case.
        package var name: String
        /// Normalised.
        package var value: [UInt8]?
    }

    /// Sorted by name.
    package private(set) var lines: [Line]

    /// The selection of a response without `Vary`.
    package static let none = VarySelection(lines: [])

    private init(lines: [Line]) { self.lines = lines }

    /// The selection of a request by the response's `Vary`; nil for `Vary: *`, which no request matches.
    /// - Parameters:
    ///   - ignored: Lower-case names that do not select: the cache key contains them (the principal's fields, whose values must
    ///     not be stored), Larder sets them itself, or the route ignores them.
    ///   - value: The request's lines of a field, joined by comma and space; nil if there are none.
    init?(_ vary: VaryField, ignoring ignored: Set<String> = [], value: (String) -> [UInt8]?) {
        guard case .fields(let names) = vary else { return nil }
        lines = names.filter { !ignored.contains($0) }.map { name in
            Line(name: name, value: value(name).map { FieldNormalisation.normalise($0, of: name) })
        }
    }

    package init?(_ vary: VaryField, ignoring ignored: Set<String> = [], request: Fields) {
        self.init(vary, ignoring: ignored) { name in request.combinedBytes(name) }
    }

    /// The selection without a field of Larder's own.
    package func without(_ name: String) -> VarySelection {
        VarySelection(lines: lines.filter { $0.name != name })
    }

    /// The fields that the response's own `Vary` names.
    package var named: VarySelection {
        VarySelection(lines: lines.filter { $0.name != OtherFields.name && $0.name != JSONOnly.name })
    }

    /// Whether a new request selects the same response.
    func matches(_ value: (String) -> [UInt8]?) -> Bool {
        lines.allSatisfy { line in
            guard let stored = line.value else { return value(line.name) == nil }
            guard let new = value(line.name) else { return false }
            // Compared before normalising, because most values come from the same client in the same spelling.
            return new == stored || FieldNormalisation.normalise(new, of: line.name) == stored
        }
    }

    package func matches(_ request: Fields) -> Bool {
        matches { name in request.combinedBytes(name) }
    }

    /// The stored form: per line the name, 0, then 0 for absent or 1, a length in four bytes, and the value.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for line in lines {
            bytes += line.name.utf8
            bytes.append(0)
            guard let value = line.value else {
                bytes.append(0)
                continue
            }
            bytes.append(1)
            withUnsafeBytes(of: UInt32(value.count).littleEndian) { bytes += $0 }
            bytes += value
        }
        return bytes
    }

    /// Reads the form written by `bytes`; nil if it is malformed.
    package init?(bytes: [UInt8]) {
        lines = []
        var rest = bytes[...]
        while !rest.isEmpty {
            guard let end = rest.firstIndex(of: 0), end + 1 < rest.endIndex else { return nil }
            let name = String(decoding: rest[..<end], as: UTF8.self)
            let isPresent = rest[end + 1] == 1
            rest = rest[(end + 2)...]
            guard isPresent else {
                lines.append(Line(name: name, value: nil))
                continue
            }
            guard rest.count >= 4 else { return nil }
            let count = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
            guard rest.count >= 4 + count else { return nil }
            lines.append(Line(name: name, value: Array(rest.dropFirst(4).prefix(count))))
            rest = rest.dropFirst(4 + count)
        }
    }
}

/// For the hit path: compares a request's fields in place, without allocating while their spelling is nearly as before.
extension VarySelection {
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

    /// Whether a value equals the normalised one, ignoring white space next to commas and semicolons.
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

    /// The slow path, through normalisation.
    private func matchesNormalised(_ request: borrowing RequestHead) -> Bool {
        // Closures may not capture a view of the connection's buffer, so the values are copied first.
        var values: [String: [UInt8]] = [:]
        for line in lines { values[line.name] = request.combined(line.name) }
        return matches { values[$0] }
    }
}

/// The request fields that select a response (RFC 9110 §12.5.5).
package enum VaryField: Sendable, Equatable {
    /// `*`, alone or within a list: no other request is known to match.
    case any
    /// Lower-case names, sorted, without duplicates; empty if the field is absent.
    case fields([String])

    init(lines: [[UInt8]]) {
        var names: Set<String> = []
        for member in lines.flatMap({ FieldSyntax.members($0) }) {
            // A member that is not a field name cannot select any request field, so it counts as `*`, which is a token.
            guard FieldSyntax.isToken(member), !member.elementsEqual([0x2A]) else {
                self = .any
                return
            }
            names.insert(String(decoding: FieldSyntax.lowercased(member), as: UTF8.self))
        }
        self = .fields(names.sorted())
    }

    package init(_ fields: Fields) {
        self = fields.contains(.vary) ? VaryField(lines: fields.all("vary")) : .fields([])
    }
}

extension Fields {
    /// Adds names to `Vary`, merged into one line without duplicates; `*` stays alone.
    package mutating func vary(by names: [String]) {
        guard !names.isEmpty, case .fields(let known) = VaryField(self) else { return }
        let new = names.filter { !known.contains($0.lowercased()) }
        if !new.isEmpty { append(member: Array(new.joined(separator: ", ").utf8), to: "Vary") }
    }
}

/// A digest of the request fields that are neither in the cache key nor known to be harmless (`FieldRole`).
///
/// A response that is `private`, or may not be served without asking, only serves requests that agree in these fields. It is
/// stored and shared as if `Vary` named them all. The digest is added to the request as a field of Larder's own, which never
/// goes upstream. It is keyed with a secret outside the store, because one of the fields may be an unrecognised credential.
package enum OtherFields {
    /// The name of the field that holds the digest in a selection, in lower case.
    package static let name = "larder-other-fields"
}

extension VarySelection {
    /// Whether the response only serves requests that agree in their `OtherFields`.
    package var isForSameOtherFields: Bool { lines.contains { $0.name == OtherFields.name } }

    /// Whether the response only serves requests with the same `Accept-Encoding`.
    package var hasFixedCoding: Bool { lines.contains { $0.name == "accept-encoding" } }

    /// Whether a request accepts the coding of the response, as far as the selection says.
    package func hasCoding(for request: Fields) -> Bool {
        VarySelection(lines: lines.filter { $0.name == "accept-encoding" }).matches(request)
    }

    /// Whether a request has the same `OtherFields`, if the selection includes them.
    package func agrees(with request: Fields) -> Bool {
        lines.allSatisfy { $0.name != OtherFields.name || $0.value == request.combinedBytes(OtherFields.name) }
    }
}

/// Distinguishes requests that accept nothing but JSON where the response is not JSON.
///
/// Such requests have one cache key with those that accept anything. A response that is not JSON may be what the upstream sends
/// to the others only, so it is stored as if `Vary` named a field that such requests have, and others do not.
package enum JSONOnly {
    package static let name = "larder-json-only"
    package static let field = Field(name, "1")
}

extension VarySelection {
    /// Whether the response is not JSON, and came for a request that accepts nothing else.
    package var isForJSONOnly: Bool { lines.contains { $0.name == JSONOnly.name } }
}

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
        let members = FieldSyntax.members(value).map { preference($0) }.enumerated()
        // Equal members keep their positions.
        let sorted = members.sorted { left, right in
            let (one, other) = (left.element, right.element)
            if one.weight != other.weight { return one.weight > other.weight }
            if !orderMatters, one.text != other.text { return one.text.lexicographicallyPrecedes(other.text) }
            return left.offset < right.offset
        }
        return Array(sorted.map(\.element.written).joined(separator: [0x2C]))
    }

    private struct Preference {
        var text: [UInt8]
        /// In thousandths.
        var weight: Int

        var written: [UInt8] {
            let digits = [weight / 100, weight / 10, weight].map { UInt8(0x30 + $0 % 10) }
            return weight == 1000 ? text : text + ";q=0.".utf8 + digits
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
