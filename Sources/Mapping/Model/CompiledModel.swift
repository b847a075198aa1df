/// One compiled model: what is read of its objects, how it is shown, and how it is written back.
///
/// It includes what the model's bases declare. It is a class, so that the walk, which holds one for every object, copies
/// a reference instead of dozens of fields.
final class CompiledModel: Sendable {
    /// A part of an identity, or a key.
    enum Part: Sendable {
        /// A member of the object in each of its spellings, and the number of the capture that reads it.
        case member(paths: [[String]], capture: Int)
        /// A value from the object's surroundings.
        case context(ContextValue, path: [String])

        /// The key paths within the object, the preferred one first; empty for values from the surroundings.
        var paths: [[String]] { if case .member(let paths, _) = self { paths } else { [] } }
    }

    /// A concrete model of a cluster.
    struct Choice: Sendable {
        /// Nil for the choice that takes all remaining objects.
        var condition: CompiledCondition?
        var model: Int
        /// The model as which it is shown: this includes the base's properties, even if it is not derived from it.
        var shown: Int
    }

    /// What is known of a model besides its properties and the places of its members.
    struct Reading: Sendable {
        /// The number of captures: first the identity's members, then the keys'.
        var captureCount = 0
        var identity: [Part] = []
        var keys: [(name: String, part: Part)] = []
        /// The spellings of `modified`.
        var modifiedPaths: [[String]] = []
        /// The required properties; each has a bit in the set of those seen.
        var required: [String] = []
        var deletedWhen: CompiledCondition?
        var choices: [Choice] = []
        var migrations: [CompiledMigration] = []
        /// The models that its relations refer to.
        var relations: Set<Int> = []
        /// Whether known members are simply the newest ones: there are no checks, and all policies take the newest.
        var isPlain = true
    }

    /// The properties of a model, in display order.
    struct Properties: Sendable {
        /// Those that complete a child have a path in `completes`.
        var all: [CompiledProperty] = []
        /// The indexes of those that do not complete a child, by name.
        var places: [String: Int] = [:]
        /// The number of values that are read of an object.
        var slotCount = 0
        /// Those within values that other properties write; they are written back last, to fill in what is missing.
        var derived: Set<Int> = []
        var writingOrder: [Int] = []
    }

    /// With what its bases declare; without the properties.
    let declaration: ModelDeclaration
    /// The model name of its objects: that of the base whose identity it shares.
    let objectName: String
    /// The node of the object.
    let root: Int
    /// The node of the object in the tree of the members that the conditions of its cluster read, or -1.
    let asked: Int
    /// The same with the properties of all models of the cluster, for objects of which no condition decides yet.
    let candidates: Int
    let reading: Reading
    let members: [ModelMember]
    let shown: Properties
    /// The model for objects that no choice takes: itself together with the derived models that no choice names.
    let fallback: Int
    /// Whether every part of the identity is in the object.
    let hasOwnIdentity: Bool
    /// The members of the object that its identity is read from, in every spelling.
    let identityMembers: Set<MemberPath>

    init(_ compiler: ModelCompiler, root: Int, asked: Int, candidates: Int, fallback: Int) {
        (self.root, self.asked, self.candidates, self.fallback) = (root, asked, candidates, fallback)
        objectName = compiler.clusters.declarations[compiler.chain[0]].name
        (declaration, members) = (compiler.declaration, compiler.members)
        (reading, shown) = (compiler.reading, compiler.properties)
        identityMembers = Set(reading.identity.flatMap(\.paths).map { MemberPath($0) })
        hasOwnIdentity = reading.identity.allSatisfy { !$0.paths.isEmpty }
    }

    var name: String { declaration.name }
    var identityNames: [String] { declaration.identity }
    var sharesAll: Bool { declaration.sharesAll }
    var distinguishesTypes: Bool { declaration.distinguishesTypes }
    var onDelete: DeletionPolicy { declaration.onDelete ?? .usual }
    var hasIdentity: Bool { !reading.identity.isEmpty }
    var properties: [CompiledProperty] { shown.all }

    /// Without those that complete a child.
    var propertyNames: [String] { properties.lazy.filter(\.completes.isEmpty).map(\.name) }

    /// The index of the property that is shown under a name.
    func property(named name: String) -> Int? {
        // Canonically equivalent names are equal in Swift, but not in JSON.
        shown.places[name].flatMap { properties[$0].name.utf8.elementsEqual(name.utf8) ? $0 : nil }
    }
}

/// The declarations about a member other than its place.
struct MemberRule: Sendable {
    var property = ""
    /// The conversion with the checks that a value must pass.
    var checked: ValueConversion?
    /// The bit among the model's required properties.
    var required: UInt64 = 0
    var isSecret = false
}
