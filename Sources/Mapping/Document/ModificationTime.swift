import Basics

/// The value of a model's `modified` member: an RFC 3339 date or a number, compared exactly.
package struct ModificationTime: Sendable, Hashable {
    /// The JSON as the response spells it.
    package let literal: [UInt8]
    fileprivate let value: Value

    fileprivate enum Value: Sendable, Hashable {
        case number(JSONNumber)
        case date(Timestamp)
    }

    /// Reads a JSON text; nil for values without an order of their own.
    package init?(json: [UInt8]) {
        guard let slice = JSONSlice(json) else { return nil }
        self.init(slice)
    }

    init?(_ slice: JSONSlice) {
        switch slice.kind {
        case .number: value = .number(slice.withBytes(JSONNumber.init))
        case .string:
            guard let date = slice.withBytes(JSONString.text).flatMap({ Timestamp(Array($0.utf8)) }) else { return nil }
            value = .date(date)
        default: return nil
        }
        literal = Array(slice.bytes)
    }

    package static func == (left: ModificationTime, right: ModificationTime) -> Bool { left.value == right.value }

    package func hash(into hasher: inout Hasher) { hasher.combine(value) }
}

extension ModificationTime? {
    /// Whether this stamp is lower than another; false if one is missing or they cannot be compared.
    func isBelow(_ other: ModificationTime?) -> Bool {
        switch (self?.value, other?.value) {
        case (.number(let mine), .number(let theirs)): mine < theirs
        case (.date(let mine), .date(let theirs)): mine < theirs
        default: false
        }
    }
}
