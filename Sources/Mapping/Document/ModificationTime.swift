/// What a model's `modified` member says: an RFC 3339 date or a number, compared exactly.
struct ModificationTime: Sendable {
    /// As the response spells it, in JSON.
    let literal: [UInt8]
    private let value: Value

    private enum Value: Sendable, Equatable {
        case number(JSONNumber)
        case date(Timestamp)
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

    /// The moment, where it is a date.
    var date: Timestamp? { if case .date(let date) = value { date } else { nil } }

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
    static func == (left: ModificationTime, right: ModificationTime) -> Bool { left.value == right.value }
}
