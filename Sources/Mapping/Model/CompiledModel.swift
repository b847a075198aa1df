/// One model, ready to be walked along with JSON.
///
/// Of a member of a cluster this holds what base and concrete model declare together. A class, so that the walk, which
/// has one in hand for every object, copies a reference and not a dozen fields.
final class CompiledModel: Sendable {
    /// A part of an identity, or a key.
    enum Part: Sendable {
        /// What stands in the object at one of these key paths, the spellings of one member; read by the capture with
        /// this number.
        case member(paths: [[String]], capture: Int)
        /// What stands around the object.
        case context(ContextValue, path: [String])
    }

    /// A concrete model of a cluster.
    struct Choice: Sendable {
        /// Nil: whatever is left.
        var condition: CompiledCondition?
        var model: Int
    }

    /// What of a model is read apart from its members' places.
    struct Reading: Sendable {
        /// Captures are numbered: first the identity's members, then the keys'.
        var captureCount = 0
        var identity: [Part] = []
        /// The names that `identity` has the parts by, for what a route binds.
        var identityNames: [String] = []
        var keys: [(name: String, part: Part)] = []
        /// The key paths of `modified`: the spellings of one member.
        var modifiedPaths: [[String]] = []
        /// The properties that an object should have; each a bit of what was seen.
        var required: [String] = []
        var deletedWhen: CompiledCondition?
        var onDelete = DeletionPolicy.stale
        var choices: [Choice] = []
        /// The models on the other side of its relations.
        var relations: Set<Int> = []
        /// Whether known members are simply the newest ones: no checks, and no policies but `latest` and `replace`.
        var isPlain = true
    }

    /// The name it is declared by.
    let name: String
    /// The name that its objects have: the one of the base whose identity it shares.
    let objectName: String
    /// The node of the object itself.
    let root: Int
    let sharesAll: Bool
    /// Whether the number 7 and the string "7" identify different objects.
    let distinguishesTypes: Bool
    let hasSecrets: Bool
    let reading: Reading
    /// What objects that no choice wants are read as.
    ///
    /// The model itself, together with those concrete models that no choice of its names.
    let fallback: Int
    /// Whether every part of the identity stands in the object.
    let hasOwnIdentity: Bool
    /// The key paths of those parts of the identity that do, each in the spelling that is preferred.
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
    /// The key paths within the object, the preferred one first; none for what stands around it.
    var paths: [[String]] {
        guard case .member(let paths, _) = self else { return [] }
        return paths
    }
}

/// What else is declared of a member than where it is.
struct MemberRule: Sendable {
    var property: String
    /// With checks: what a value goes through before it is shown.
    var checked: ValueConversion?
    /// The bit of the model's required properties.
    var required: UInt64 = 0
    var isSecret = false
}
