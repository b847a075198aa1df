/// What a mapping and the way back have in common: the texts that they read, and their warnings.
protocol MappingRun {
    typealias Value = MappedValue

    var models: Models { get }
    /// The body, followed by texts that are made during the run.
    var documents: [MappingDocument] { get set }
    var warnings: [MappingWarning] { get set }
}

/// A value, or the name of a member, in one of a run's documents.
struct MappedValue {
    var document: Int
    var node: Int
}

/// A text that values are read from: the body, or JSON made from context, parts, lists and conversions.
struct MappingDocument {
    var index: JSONIndex
    /// The value of the body that it was made from.
    var origin: MappedValue?
}

extension MappingRun {
    /// The maximum number of warnings; a body that does not fit at all could otherwise give one for every member.
    static var maximumWarnings: Int { 100 }

    func kind(_ value: Value) -> JSONSlice.Kind { documents[value.document].index.kind(value.node) }

    func isNull(_ value: Value) -> Bool { documents[value.document].index.isNull(value.node) }

    func slice(_ value: Value) -> JSONSlice { documents[value.document].index.slice(value.node) }

    func bytes(_ value: Value) -> [UInt8] { Array(documents[value.document].index.bytes(value.node)) }

    func withBytes<Result>(_ value: Value, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        slice(value).withBytes(body)
    }

    /// Creates a value from JSON outside the body; nil if it is nested too deep.
    mutating func make(_ json: [UInt8], of origin: Value?) -> Value? {
        guard let index = try? JSONIndex(json) else { return nil }
        documents.append(MappingDocument(index: index, origin: origin))
        return Value(document: documents.count - 1, node: 0)
    }

    /// The JSON pointer of a value in the body; nil for values from elsewhere.
    func pointer(to value: Value) -> String? {
        if value.document == 0 { return documents[0].index.pointer(to: value.node) }
        return documents[value.document].origin.flatMap(pointer)
    }

    mutating func warn(
        _ kind: MappingWarning.Kind,
        _ message: String? = nil,
        at value: Value?,
        within rest: String = "",
        model: String?,
        property: String? = nil
    ) {
        let pointer = value.flatMap(pointer).map { $0 + rest }
        warn(MappingWarning(kind, message ?? kind.sentence, pointer: pointer, model: model, property: property))
    }

    /// Warns about the value of a property.
    mutating func warn(_ kind: MappingWarning.Kind, _ message: String, at value: Value?, of property: CompiledProperty)
    { warn(kind, message, at: value, model: property.model, property: property.name) }

    /// Warns about a value of a property, or a part of it, that does not fit its conversion.
    mutating func warn(_ fault: ConversionFault, in value: Value, of property: CompiledProperty) {
        var warning = MappingWarning(
            .conversionFailed,
            "Property \(property.name): \(fault.reason).",
            pointer: pointer(to: value).map { $0 + fault.pointer },
            model: property.model,
            property: property.name
        )
        warning.value = fault.value
        warn(warning)
    }

    mutating func warn(_ warning: MappingWarning) {
        if warnings.count >= Self.maximumWarnings {
            // Many warnings of one kind must not suppress those of another.
            if let known = warnings.firstIndex(where: { $0.subject == warning.subject }) {
                return warnings[known].count += 1
            }
            guard warnings.count < 2 * Self.maximumWarnings else { return }
        }
        warnings.append(warning)
    }
}
