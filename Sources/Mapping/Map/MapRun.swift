/// One mapping of one body: what is read, what is written, and what was noticed on the way.
///
/// Recursion follows related objects only, and no deeper than `maximumNesting`.
struct MapRun {
    /// How many objects of declared models may lie in one another; further ones are shown as the upstream has them.
    ///
    /// Each costs a few kilobytes of stack.
    static let maximumNesting = 128
    /// How many objects are put in for references, so that a few that refer to each other cannot fill the memory.
    static let maximumExpansions = 10_000
    /// A body that does not fit at all would otherwise warn of each member.
    static let maximumWarnings = 100

    /// A value, or the name of a member, in one of the run's documents.
    struct Value {
        var document: Int
        var node: Int
    }

    /// A text that values are read from: the body, and what is made on the way of context, parts and lists.
    struct Document {
        var index: JSONIndex
        /// The value of the body that it was made of.
        var origin: Value?
    }

    /// An object that is being mapped.
    struct Frame {
        /// Nil for a child of which there is nothing but what completes it.
        var object: Value?
        /// Its position, if it is an element of a list.
        var position: Int?
        /// Its name, if it is a member of a keyed relation.
        var key: Value?
    }

    /// A value of an outer object that takes the place of a child's property.
    struct Completion {
        /// The names from the child on.
        var path: ArraySlice<String>
        var value: Value
        var property: PropertyPlan
    }

    /// A step to where the run writes.
    enum Step {
        case name(String)
        case index(Int)
    }

    let plan: MappingPlan
    let context: MappingContext
    /// What is known of the objects that references name; nil: the text holds no references.
    let resolve: ((ObjectName) -> [UInt8]?)?
    /// Whether related objects are put in for references; else only key paths lead through them.
    let expandsRelations: Bool
    /// Names of models whose identities tell numbers and strings apart.
    let strictModels: Set<String>
    var documents: [Document]
    var output: [UInt8] = []
    var frames: [Frame] = []
    /// Where the run writes, for the pointers of synthetic values.
    var place: [Step] = []
    var warnings: [MappingWarning] = []
    var synthetic: [String] = []
    /// The objects whose references are being expanded, outermost first.
    var expanding: [ObjectName] = []
    var expansions = 0
    /// What is known of objects that the body names by their bare identities, and which it names.
    let known: [ObjectName: [UInt8]]
    var named: Set<ObjectName> = []
    /// Whether the run is within an object that is shown for its bare identity.
    var isWithinNamed = false
    /// Coercions that were warned of: one warning for each property is enough.
    var coerced: Set<String> = []

    init(
        _ plan: MappingPlan,
        body: JSONIndex,
        context: MappingContext,
        known: [ObjectName: [UInt8]] = [:],
        resolve: ((ObjectName) -> [UInt8]?)? = nil,
        expandsRelations: Bool = true,
        strictModels: Set<String> = []
    ) {
        (self.expandsRelations, self.strictModels) = (expandsRelations, strictModels)
        self.plan = plan
        self.context = context
        self.known = known
        self.resolve = resolve
        documents = [Document(index: body)]
        output.reserveCapacity(body.text.count)
    }

    // MARK: Values

    func kind(_ value: Value) -> JSONSlice.Kind { documents[value.document].index.kind(value.node) }

    func isNull(_ value: Value) -> Bool { documents[value.document].index.isNull(value.node) }

    func slice(_ value: Value) -> JSONSlice { documents[value.document].index.slice(value.node) }

    func bytes(_ value: Value) -> [UInt8] { Array(documents[value.document].index.bytes(value.node)) }

    func withBytes<Result>(_ value: Value, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        documents[value.document].index.slice(value).withBytes(body)
    }

    /// Makes a value of JSON that is not in the body; nil if it is nested too deep.
    mutating func make(_ json: [UInt8], of origin: Value?) -> Value? {
        guard let index = try? JSONIndex(json) else { return nil }
        documents.append(Document(index: index, origin: origin))
        return Value(document: documents.count - 1, node: 0)
    }

    /// Appends a value as the upstream has it; references in it as bare identities.
    mutating func appendLiteral(_ value: Value) {
        let literal = documents[value.document].index.bytes(value.node)
        if resolve == nil {
            output.append(contentsOf: literal)
        } else {
            output.append(
                contentsOf: Reference.plain(Array(literal)) { name in
                    guard strictModels.contains(name.model) else { return nil }
                    var bare: [UInt8] = []
                    Reference.appendStrict(name.identity, to: &bare)
                    return bare
                }
            )
        }
    }

    mutating func append(_ text: StaticString) {
        output.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    // MARK: Warnings

    mutating func warn(
        _ kind: MappingWarning.Kind,
        _ message: String,
        at value: Value?,
        within rest: String = "",
        model: String?,
        property: String? = nil
    ) {
        let subject = MappingWarning.Subject(kind: kind, model: model, property: property)
        if warnings.count >= Self.maximumWarnings {
            // Many of one kind keep none of another from being told of.
            if let known = warnings.firstIndex(where: { $0.subject == subject }) { return warnings[known].count += 1 }
            guard warnings.count < 2 * Self.maximumWarnings else { return }
        }
        let pointer = value.flatMap(pointer).map { $0 + rest }
        warnings.append(MappingWarning(kind, message, pointer: pointer, model: model, property: property))
    }

    /// Where in the body a value is; nil for what is not of the body.
    private func pointer(to value: Value) -> String? {
        if value.document == 0 { return documents[0].index.pointer(to: value.node) }
        return documents[value.document].origin.flatMap(pointer)
    }

    /// The JSON pointer of what is being written.
    var outputPointer: String {
        place.reduce(into: "") { pointer, step in
            switch step {
            case .name(let name): pointer += "/" + JSONPointer.escaped(name)
            case .index(let index): pointer += "/\(index)"
            }
        }
    }
}

extension JSONIndex {
    func slice(_ value: MapRun.Value) -> JSONSlice { slice(value.node) }
}
