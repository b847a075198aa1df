import HTTPSemantics

/// The ranges that a request asks for (RFC 9110 §14).
package struct RangeField: Sendable, Equatable {
    enum Spec: Sendable, Equatable {
        /// From an offset to the end, or through another offset (inclusive).
        case from(Int64, through: Int64?)
        /// The last bytes, given their number.
        case suffix(Int64)

        fileprivate var isSatisfiableSuffix: Bool { if case .suffix(1...) = self { true } else { false } }
    }

    /// Never empty.
    var specs: [Spec]

    /// Requests with more ranges than this are treated as an attack, and the field is ignored (RFC 9110 §17.15).
    static let maximumCount = 32

    /// Parses the lines of `Range`; nil if the field is absent, malformed, or in another unit, and thus ignored.
    package init?(lines: [[UInt8]]) {
        guard lines.count == 1, let equals = lines[0].firstIndex(of: 0x3D),
            FieldSyntax.equalsIgnoringCase(FieldSyntax.trimmed(lines[0][..<equals]), "bytes".utf8)
        else { return nil }
        let members = FieldSyntax.members(lines[0][(equals + 1)...])
        guard !members.isEmpty, members.count <= Self.maximumCount else { return nil }
        let specs = members.compactMap { Self.spec($0) }
        guard specs.count == members.count else { return nil }
        self.specs = specs
    }

    /// Whether the field has an unknown unit, which only the upstream may understand.
    package static func isForeign(lines: [[UInt8]]) -> Bool {
        !lines.allSatisfy {
            FieldSyntax.equalsIgnoringCase(FieldSyntax.trimmed($0.prefix { $0 != 0x3D }), "bytes".utf8)
        }
    }

    private static func spec(_ member: ArraySlice<UInt8>) -> Spec? {
        guard let dash = member.firstIndex(of: 0x2D) else { return nil }
        let first = member[..<dash]
        let last = member[(dash + 1)...]
        if first.isEmpty { return number(last).map { .suffix($0) } }
        guard let start = number(first) else { return nil }
        if last.isEmpty { return .from(start, through: nil) }
        guard let end = number(last), end >= start else { return nil }
        return .from(start, through: end)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        guard !digits.isEmpty else { return nil }
        var value: Int64 = 0
        for digit in digits {
            guard FieldSyntax.isDigit(digit) else { return nil }
            let (product, overflowed) = value.multipliedReportingOverflow(by: 10)
            // Beyond any length: the range ends with the response.
            if overflowed || product > .max - 9 { return .max - 1 }
            value = product + Int64(digit - 0x30)
        }
        return value
    }

    /// The ranges to serve once the length is known.
    package enum Selection: Sendable, Equatable {
        /// The ranges are ignored, because `Content-Range` cannot express the last bytes of an empty body.
        case whole
        /// The ranges in the requested order, none empty; overlapping and adjacent ones are merged if that saves bytes.
        case ranges([Range<Int>])
        /// Respond with 416 and `Content-Range: bytes */length`.
        case unsatisfiable
    }

    /// The ranges to serve of a body of this length.
    package func select(length: Int) -> Selection {
        // A suffix can be satisfied whatever the length (RFC 9110 §14.1.2), but an empty body has no bytes to show.
        if length == 0, specs.contains(where: \.isSatisfiableSuffix) { return .whole }
        let wanted = specs.compactMap { Self.range($0, length: Int64(length)) }
        guard !wanted.isEmpty else { return .unsatisfiable }
        return .ranges(Self.joined(wanted, length: length) ?? [0..<length])
    }

    /// The ranges to serve if the total length is unknown; nil if they depend on it, or overlap so much that serving them would
    /// be a burden.
    package func selectWithoutLength() -> Selection? {
        var wanted: [Range<Int>] = []
        for spec in specs {
            guard case .from(let start, let end?) = spec, end < .max - 1 else { return nil }
            wanted.append(Int(start)..<Int(end + 1))
        }
        return Self.joined(wanted, length: wanted.map(\.upperBound).max() ?? 0).map { .ranges($0) }
    }

    /// The ranges as they are sent; nil if they cover more than the whole, which saves nothing (RFC 9110 §14.2).
    private static func joined(_ wanted: [Range<Int>], length: Int) -> [Range<Int>]? {
        // Merged only if requested in ascending order, so that the parts arrive in the order the client expects.
        guard zip(wanted, wanted.dropFirst()).allSatisfy({ $0.lowerBound <= $1.lowerBound })
        else { return wanted.reduce(0) { $0.addingReportingOverflow($1.count).partialValue } > length ? nil : wanted }
        var joined: [Range<Int>] = []
        for range in wanted {
            if let last = joined.last, range.lowerBound <= last.upperBound {
                joined[joined.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                joined.append(range)
            }
        }
        return joined
    }

    private static func range(_ spec: Spec, length: Int64) -> Range<Int>? {
        switch spec {
        case .from(let start, let end):
            guard start < length else { return nil }
            return Int(start)..<Int(min(end ?? length - 1, length - 1) + 1)
        case .suffix(let count):
            guard count > 0, length > 0 else { return nil }
            return Int(max(0, length - count))..<Int(length)
        }
    }

    /// The value of `Content-Range` for one part, without the length if it is unknown.
    package static func contentRange(_ range: Range<Int>, length: Int?) -> String {
        "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length.map { String($0) } ?? "*")"
    }

    /// The value of `Content-Range` in a 416.
    package static func unsatisfiedContentRange(length: Int) -> String { "bytes */\(length)" }

    /// Whether `If-Range` permits serving ranges of this response; must not be called without that field.
    ///
    /// A tag must match strongly. A date must equal `Last-Modified` exactly, and be a strong validator by being at least a
    /// second older than `Date` (RFC 9110 §13.1.5, §8.8.2.2).
    package static func permits(ifRange value: [UInt8], _ stored: Validators, now: Int64) -> Bool {
        if let tag = EntityTag(value) {
            return stored.entityTag.map { tag.matchesStrongly($0) } ?? false
        }
        guard let date = HTTPDate.parse(value, now: now), let lastModified = stored.lastModified else { return false }
        return date == lastModified && (stored.date ?? .min) > lastModified
    }
}

/// The `Content-Range` of a 206 or 416 (RFC 9110 §14.4).
package struct ContentRange: Sendable, Equatable {
    /// Nil in a 416.
    package var range: Range<Int64>?
    /// The total length; nil if the sender does not know it.
    package var length: Int64?

    /// Parses the value; nil if it is malformed, in another unit, or contradicts itself.
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
