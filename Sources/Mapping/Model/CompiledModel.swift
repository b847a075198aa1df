/// One compiled model, ready to be walked along with JSON.
///
/// For a concrete model of a cluster this includes what its bases declare. It is a class, so that the walk, which holds
/// one for every object, copies a reference instead of a dozen fields.
final class CompiledModel: Sendable {
    /// A part of an identity, or a key.
    enum Part: Sendable {
        /// A member of the object at one of these key paths, the spellings of one member.
        ///
        /// It is read by the capture with this number.
        case member(paths: [[String]], capture: Int)
        /// A value from the object's surroundings.
        case context(ContextValue, path: [String])
    }

    /// A concrete model of a cluster.
    struct Choice: Sendable {
        /// Nil for the choice that takes all remaining objects.
        var condition: CompiledCondition?
        var model: Int
    }

    /// The parts of a model other than the places of its members.
    struct Reading: Sendable {
        /// The number of captures: first the identity's members, then the keys'.
        var captureCount = 0
        var identity: [Part] = []
        /// The entries of `identity` for its parts, to which a route binds values.
        var identityNames: [String] = []
        var keys: [(name: String, part: Part)] = []
        /// The key paths of `modified`: the spellings of one member.
        var modifiedPaths: [[String]] = []
        /// The required properties; each has a bit in the set of those seen.
        var required: [String] = []
        var deletedWhen: CompiledCondition?
        var onDelete = DeletionPolicy.stale
        var choices: [Choice] = []
        /// The models that its relations refer to.
        var relations: Set<Int> = []
        /// Whether known members are simply the newest ones: there are no checks, and no policies but `latest` and
        /// `replace`.
        var isPlain = true
    }

    /// The declared name.
    let name: String
    /// The model name of its objects: that of the base whose identity it shares.
    let objectName: String
    /// The node of the object itself.
    let root: Int
    let sharesAll: Bool
    /// Whether the number 7 and the string "7" identify different objects.
    let distinguishesTypes: Bool
    let hasSecrets: Bool
    let reading: Reading
    /// The model for objects that no choice takes.
    ///
    /// It is the model itself, together with the derived models that none of its choices names.
    let fallback: Int
    /// Whether every part of the identity is in the object.
    let hasOwnIdentity: Bool
    /// The key paths of the identity's parts in the object, each in the preferred spelling.
    let identityPaths: [[String]]
    /// The same in every spelling.
    let identityMembers: Set<MemberPath>

    var captureCount: Int { reading.captureCount }
    var modifiedPaths: [[String]] { reading.modifiedPaths }
    var hasIdentity: Bool { !reading.identity.isEmpty }
    var hasRequired: Bool { !reading.required.isEmpty }

    init(_ declaration: ModelDeclaration, objectName: String, root: Int, reading: Reading, fallback: Int) {
        name = declaration.name
        self.objectName = objectName
        self.root = root
        sharesAll = declaration.sharesAll
        distinguishesTypes = declaration.distinguishesTypes
        hasSecrets = !declaration.secret.isEmpty
        self.reading = reading
        self.fallback = fallback
        let spellings = reading.identity.map(\.paths)
        identityPaths = spellings.compactMap(\.first)
        identityMembers = Set(spellings.joined().map { MemberPath($0) })
        hasOwnIdentity = identityPaths.count == reading.identity.count
    }
}

extension CompiledModel.Part {
    /// The key paths within the object, the preferred one first; empty for values from the surroundings.
    var paths: [[String]] {
        guard case .member(let paths, _) = self else { return [] }
        return paths
    }
}

/// The declarations about a member other than its place.
struct MemberRule: Sendable {
    var property: String
    /// The conversion with the checks that a value must pass.
    var checked: ValueConversion?
    /// The bit among the model's required properties.
    var required: UInt64 = 0
    var isSecret = false
}
