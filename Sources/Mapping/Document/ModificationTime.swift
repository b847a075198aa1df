/// What a model's `modified` member says: an RFC 3339 date or a number, compared exactly.
package struct ModificationTime: Sendable {
    /// As the response spells it, in JSON.
    package let literal: [UInt8]
    private let value: Value

    private enum Value: Sendable, Equatable {
        case number(JSONNumber)
        case date(Timestamp)
    }

    /// Reads a JSON text; nil for everything that has no order of its own.
    package init?(json: [UInt8]) {
        guard let slice = JSONSlice(json) else { return nil }
        self.init(slice)
    }

    /// Reads a JSON value; nil for everything that has no order of its own.
    init?(_ slice: JSONSlice) {
        switch slice.kind {
        case .number:
            value = .number(slice.withBytes(JSONNumber.init))
        case .string:
            guard let text = slice.withBytes(JSONString.text), let date = Timestamp(Array(text.utf8)) else {
                return nil
            }
            value = .date(date)
        default:
            return nil
        }
        literal = Array(slice.bytes)
    }

    /// Whether this is later than the other; nil if the two cannot be compared.
    func isLater(than other: ModificationTime) -> Bool? {
        switch (value, other.value) {
        case (.number(let mine), .number(let theirs)):
            return mine > theirs
        case (.date(let mine), .date(let theirs)):
            return mine > theirs
        default:
            return nil
        }
    }
}

extension ModificationTime: Equatable {
    package static func == (left: ModificationTime, right: ModificationTime) -> Bool { left.value == right.value }
}
