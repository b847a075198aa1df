/// What a model's `modified` member says: an RFC 3339 date or a number, compared exactly.
enum ModificationTime: Equatable {
    case number(JSONNumber)
    case date(Timestamp)

    /// What can be compared with each other.
    enum Kind {
        case number, date

        /// Every kind, and that of what does not say when it was modified.
        static let orNone: [Kind?] = [.number, .date, nil]
    }

    var kind: Kind {
        switch self {
        case .number: .number
        case .date: .date
        }
    }

    /// Reads a JSON value; nil for everything that has no order of its own.
    init?(_ value: JSONSlice) {
        switch value.kind {
        case .number:
            self = .number(value.withBytes(JSONNumber.init))
        case .string:
            guard let text = value.withBytes(JSONString.text), let date = Timestamp(Array(text.utf8)) else {
                return nil
            }
            self = .date(date)
        default:
            return nil
        }
    }

    /// Whether this is later than the other; nil if the two cannot be compared.
    func isLater(than other: ModificationTime) -> Bool? {
        switch (self, other) {
        case (.number(let mine), .number(let theirs)):
            return mine > theirs
        case (.date(let mine), .date(let theirs)):
            return mine > theirs
        default:
            return nil
        }
    }
}
