/// Collects warnings during a walk as cheap offsets; they are worded only once the body is known to be JSON.
struct WarningNotes {
    /// The limit on notes: a body that does not fit at all could otherwise give a warning for every element.
    static let limit = 20

    struct Note {
        var kind: MappingWarning.Kind
        /// The offset of the first place.
        var offset: Int
        var model: String?
        var property: String?
        var reason: String?
        var count = 1
    }

    private(set) var notes: [Note] = []

    mutating func note(
        _ kind: MappingWarning.Kind,
        at offset: Int,
        model: String? = nil,
        property: String? = nil,
        reason: String? = nil
    ) {
        // A list whose every element lacks an identity is one finding, not a hundred.
        let known = notes.firstIndex { $0.kind == kind && $0.model == model && $0.property == property }
        if let known {
            notes[known].count += 1
        } else if notes.count < Self.limit {
            notes.append(Note(kind: kind, offset: offset, model: model, property: property, reason: reason))
        }
    }
}

extension MappingWarning {
    /// Words a note; the text is valid JSON.
    init(_ note: WarningNotes.Note, in text: UnsafeBufferPointer<UInt8>) {
        let sentence: String? =
            switch note.kind {
            case .quarantined:
                "Property \(note.property ?? "") fails a check: \(note.reason ?? "it is not as declared")."
            case .requiredMissing: "An object lacks the required property \(note.property ?? "")."
            default: nil
            }
        self.init(
            note.kind,
            sentence ?? note.kind.sentence,
            pointer: JSONPointer.text(to: note.offset, in: text),
            model: note.model,
            property: note.property,
            count: note.count
        )
    }
}
