/// A value, or the name of a member, in a text.
struct MappedValue: Sendable {
    /// The body, or JSON made from context, parts, lists and conversions.
    private final class Document: Sendable {
        let index: JSONIndex
        /// The value that it was made from.
        let origin: MappedValue?
        let isBody: Bool

        init(_ index: JSONIndex, origin: MappedValue? = nil, isBody: Bool = false) {
            (self.index, self.origin, self.isBody) = (index, origin, isBody)
        }
    }

    private let document: Document
    let node: Int

    init(body: JSONIndex) { (document, node) = (Document(body, isBody: true), 0) }

    /// Creates a value from JSON outside the body; nil if it is nested too deep.
    init?(_ json: [UInt8], of origin: MappedValue?) {
        guard let index = try? JSONIndex(json) else { return nil }
        (document, node) = (Document(index, origin: origin), 0)
    }

    private init(_ document: Document, _ node: Int) { (self.document, self.node) = (document, node) }

    /// Another value of the same text.
    func at(_ node: Int) -> MappedValue { MappedValue(document, node) }

    var index: JSONIndex { document.index }
    var kind: JSONKind { index.kind(node) }
    var isNull: Bool { kind == .null }
    var slice: JSONSlice { index.slice(node) }
    var bytes: [UInt8] { Array(index.bytes(node)) }

    func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result { slice.withBytes(body) }

    func member(_ name: String) -> MappedValue? { document.index.member(name.utf8, of: node).map(at) }

    /// The elements of an array, or the member values of an object.
    var children: [MappedValue] { document.index.children(of: node).map(at) }

    /// The node of the body that it is, or is made from; nil for values from elsewhere.
    var bodyNode: Int? { document.isBody ? node : document.origin?.bodyNode }

    /// The JSON pointer in the body; nil for values from elsewhere.
    var pointer: String? { document.isBody ? document.index.pointer(to: node) : document.origin?.pointer }
}

/// An object's position in the list, or its name in the object, that contains it.
struct Standing {
    var position: Int?
    var key: MappedValue?
}

/// The objects of a relation, and what is requested of them.
struct Selection {
    let relation: CompiledProperty.Related
    let mask: MemberMask
    var completions: [Completion] = []

    var model: Int { relation.model }
}

/// A value of an outer object that replaces a child's property.
struct Completion {
    /// The property names, starting at the child.
    var path: ArraySlice<String>
    var value: MappedValue
    var property: CompiledProperty
}

/// What a mapping and the way back have in common.
protocol MappingRun {
    typealias Value = MappedValue
    typealias Steps = ArraySlice<PathStep>

    var models: Models { get }
    var warnings: [MappingWarning] { get set }
}

extension MappingRun {
    /// The maximum number of warnings; a body that does not fit at all could otherwise give one for every member.
    static var maximumWarnings: Int { 100 }

    /// Warns about a value where an object of a model, or a member of one, is expected.
    mutating func warn(_ kind: MappingWarning.Kind, _ message: String? = nil, at value: Value?, as index: Int) {
        warn(MappingWarning(kind, message, model: models.compiled[index].name), at: value)
    }

    /// Warns about the value of a property.
    mutating func warn(_ kind: MappingWarning.Kind, _ text: String, at value: Value?, of property: CompiledProperty) {
        warn(MappingWarning(kind, text, model: property.model, property: property.name), at: value)
    }

    /// Warns about a value of a property, or a part of it, that does not fit its conversion.
    mutating func warn(_ fault: ConversionFault, in value: Value, of property: CompiledProperty) {
        let message = "Property \(property.name): \(fault.reason)."
        var warning = MappingWarning(.conversionFailed, message, model: property.model, property: property.name)
        warning.value = fault.value
        warn(warning, at: value, below: fault.pointer)
    }

    /// Warns about a value, or the part of it at a JSON pointer.
    mutating func warn(_ warning: MappingWarning, at value: Value?, below part: String = "") {
        if warnings.count >= Self.maximumWarnings {
            // Many warnings of one kind must not suppress those of another.
            if let known = warnings.firstIndex(where: { $0.subject == warning.subject }) {
                return warnings[known].count += 1
            }
            guard warnings.count < 2 * Self.maximumWarnings else { return }
        }
        var warning = warning
        // For this, all elements of the lists around the value are counted, so only for a warning that is kept.
        warning.pointer = value?.pointer.map { $0 + part }
        warnings.append(warning)
    }
}
