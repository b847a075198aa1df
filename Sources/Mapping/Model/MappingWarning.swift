/// A mismatch between one body and the declarations; it never delays, alters or fails a response.
public struct MappingWarning: Sendable, Equatable {
    /// The fixed set of warnings; the raw value is the label that people and programs see.
    public enum Kind: String, Sendable, CaseIterable {
        case notJSON = "not-json"
        case tooDeep = "too-deep"
        /// The body has a string with the prefix of references.
        case reservedText = "reserved-text"
        /// The body contains more objects than the limit allows; it is stored unchanged.
        case tooManyObjects = "too-many-objects"
        /// The body is a string, a number or a boolean where the rule expects objects.
        case notAnObject = "not-an-object"
        case envelopeMissing = "envelope-missing"
        case unknownModel = "unknown-model"
        case objectForList = "object-for-list"
        case arrayForObject = "array-for-object"
        case identityMissing = "identity-missing"
        /// An identity that is a boolean, an object, an array, too long or not Unicode; the object stays literal.
        case identityUnusable = "identity-unusable"
        case identityRepeated = "identity-repeated"
        /// A value that fails a check, or is no object of its relation: it is in no other response or mapped view.
        case quarantined
        /// A value that its conversion does not accept; the mapped view shows the upstream's value.
        case conversionFailed = "conversion-failed"
        /// Two members for one property; the exact spelling counts, else the last one.
        case keyCollision = "key-collision"
        case pathBlocked = "path-blocked"
        case requiredMissing = "required-missing"
        case unexpectedNull = "unexpected-null"
        case coerced
        case nothingMapped = "nothing-mapped"
        /// An object that no choice of its cluster takes, with no fallback.
        case noChoice = "no-choice"
        /// A member that would complete a child, but the child is null or a bare identity.
        case completionIgnored = "completion-ignored"
        case undeclaredMember = "undeclared-member"
        /// A value of a mapped object whose place in the upstream's JSON does not exist or is taken.
        case notWritten = "not-written"
        /// One response shows one object several times, with different values of a member; neither value counts.
        case disagreement
        /// Responses of two routes disagree about a member again and again; the member no longer moves between them.
        case flipFlop = "flip-flop"
        case notRecomposed = "not-recomposed"

        var sentence: String {
            switch self {
            case .tooDeep: "The body is nested deeper than \(JSONScanner.maximumDepth) levels."
            case .envelopeMissing: "Nothing was found at the envelope's key path."
            case .objectForList:
                "One object was received where a list is declared; it counts as the list's only element."
            case .arrayForObject: "A list was received where one object is declared; it stays as it is."
            case .notAnObject: "The body is not an object."
            case .identityMissing: "An object has no identity; it stays as it is."
            case .identityUnusable: "An identity is neither text nor a number of reasonable length."
            case .undeclaredMember: "A member is not a property; it is not written back."
            case .notWritten: "Its place has another value already; it is not written back."
            case .identityRepeated: "The identity occurs twice in one object; the object stays as it is."
            default: "The body does not fit its declaration."
            }
        }

        /// Whether mapping a body gives this warning; else decomposing it, merging objects or writing back does.
        public var isOfMappedView: Bool {
            switch self {
            case .identityMissing, .identityUnusable, .identityRepeated, .reservedText, .tooManyObjects, .disagreement,
                .flipFlop, .notRecomposed, .undeclaredMember, .notWritten:
                false
            default: true
            }
        }
    }

    public var kind: Kind
    /// One sentence for a person; it contains no data of the body except an object's identity.
    public var message: String
    /// The JSON pointer (RFC 6901) of the place, if there is one.
    public var pointer: String?
    public var model: String?
    public var property: String?
    /// How often this occurred in the body; the pointer is that of the first place.
    public var count = 1
    /// The JSON that does not fit its conversion; it is shown to whoever has the body, and never stored or logged.
    public var value: [UInt8]?

    /// Warnings with the same subject are counted as one.
    var subject: (kind: Kind, model: String?, property: String?) { (kind, model, property) }

    /// Describes a mismatch, by default with the sentence of its kind.
    public init(
        _ kind: Kind,
        _ message: String? = nil,
        pointer: String? = nil,
        model: String? = nil,
        property: String? = nil
    ) {
        (self.kind, self.message, self.pointer) = (kind, message ?? kind.sentence, pointer)
        (self.model, self.property) = (model, property)
    }
}

extension [MappingWarning] {
    /// One warning for each kind, model and property, with the first place and the total count.
    public var grouped: [MappingWarning] {
        reduce(into: []) { grouped, warning in
            if let known = grouped.firstIndex(where: { $0.subject == warning.subject }) {
                grouped[known].count += warning.count
            } else {
                grouped.append(warning)
            }
        }
    }
}

/// The warnings found during a walk, with offsets in place of pointers, which are known only once the body is.
struct WarningNotes {
    /// A body that does not fit at all could otherwise give a warning for every element.
    private static let maximumNotes = 20
    private var notes: [(offset: Int, warning: MappingWarning)] = []

    mutating func record(
        _ kind: MappingWarning.Kind,
        at offset: Int,
        model: String? = nil,
        property: String? = nil,
        _ message: @autoclosure () -> String? = nil
    ) {
        // A list whose every element lacks an identity is one finding, not a hundred.
        if let known = notes.firstIndex(where: { $0.warning.subject == (kind, model, property) }) {
            notes[known].warning.count += 1
        } else if notes.count < Self.maximumNotes {
            notes.append((offset, MappingWarning(kind, message(), model: model, property: property)))
        }
    }

    /// The warnings about a body, which is valid JSON.
    func warnings(about body: [UInt8]) -> [MappingWarning] {
        guard !notes.isEmpty, let index = try? JSONIndex(body) else { return [] }
        var warnings = notes.map(\.warning)
        for (place, note) in notes.enumerated() { warnings[place].pointer = index.pointer(toOffset: note.offset) }
        return warnings
    }
}
