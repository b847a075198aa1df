/// What came of a conversion.
public enum ConversionResult: Sendable, Equatable {
    /// JSON.
    case value([UInt8])
    /// JSON, though not all of it could be converted: elements that could not are as they were, and a value that is
    /// unknown to an enumeration is its fallback.
    case partial([UInt8], faults: [ConversionFault])
    /// The value is none that the conversion knows; `reason` says what it expects, for a person.
    ///
    /// The caller keeps the value and warns.
    case failed(reason: String)
    /// Nothing is written (`one_way`, `back: drop`).
    case dropped
}

/// Something within a value that could not be converted.
public struct ConversionFault: Sendable, Equatable {
    /// Where in the value: a JSON pointer, empty for the value itself.
    public var pointer: String
    /// What was expected, for a person; never quotes the value.
    public var reason: String

    /// Describes a fault.
    public init(pointer: String, reason: String) {
        self.pointer = pointer
        self.reason = reason
    }
}

extension ConversionResult {
    /// The JSON that it leaves; nil where there is none.
    var json: [UInt8]? {
        switch self {
        case .value(let json), .partial(let json, _): json
        case .failed, .dropped: nil
        }
    }

    var faults: [ConversionFault] {
        if case .partial(_, let faults) = self { faults } else { [] }
    }

    /// A text as JSON.
    static func string(_ text: String) -> ConversionResult {
        var json: [UInt8] = []
        JSONString.append(text, to: &json)
        return .value(json)
    }
}
