/// The models of one upstream, checked and compiled once.
public struct Models: Sendable {
    /// What was declared, in order.
    public let declarations: [ModelDeclaration]
    /// The compiled models, in the same order.
    let compiled: [CompiledModel]
    /// Every declared key path.
    let tree: PathTree
    /// How the mapped view is made.
    let plan: MappingPlan
    private let indexes: [String: Int]

    /// Checks and compiles.
    public init(_ declarations: [ModelDeclaration]) throws(MappingError) {
        self.declarations = declarations
        indexes = try Self.index(declarations)
        var tree = PathTree()
        var compiled: [CompiledModel] = []
        for declaration in declarations {
            var compiler = ModelCompiler(declaration, indexes: indexes)
            compiled.append(try compiler.compile(into: &tree))
        }
        self.tree = tree
        self.compiled = compiled
        plan = try MappingPlan(declarations)
    }

    /// No models: every answer stays as it is.
    public static let none = Models()

    private init() {
        (declarations, compiled, tree, plan, indexes) = ([], [], PathTree(), .none, [:])
    }

    /// The index of a model by its name.
    func index(of model: String) -> Int? { indexes[model] }

    private static func index(_ declarations: [ModelDeclaration]) throws(MappingError) -> [String: Int] {
        var indexes: [String: Int] = [:]
        var folded: [String: String] = [:]
        for (index, declaration) in declarations.enumerated() {
            let name = declaration.name
            guard isValidName(name) else { throw .invalidName(kind: "model", name: name, model: nil) }
            if let other = folded.updateValue(name, forKey: name.lowercased()) {
                throw .duplicateModel(name, other: other)
            }
            indexes[name] = index
        }
        return indexes
    }

    /// Whether a name is a letter followed by letters, digits and `_`.
    static func isValidName(_ name: String) -> Bool {
        guard let first = name.utf8.first, isLetter(first) else { return false }
        return name.utf8.allSatisfy(isNameByte)
    }

    /// Whether a byte may occur in a name.
    static func isNameByte(_ byte: UInt8) -> Bool {
        isLetter(byte) || byte &- UInt8(ascii: "0") < 10 || byte == UInt8(ascii: "_")
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }
}

/// One model, ready to be walked along with JSON.
struct CompiledModel: Sendable {
    let name: String
    /// The node of the object itself.
    let root: Int
    let sharesAll: Bool
    /// Captures are numbered: first the identity's members, then the keys, then `modified`.
    let identityCount: Int
    let keys: [String]
    /// The key path of `modified`.
    let modifiedPath: [String]?
    /// The key paths of the identity's members.
    let identityPaths: [[String]]

    var captureCount: Int { identityCount + keys.count + (modifiedPath == nil ? 0 : 1) }
    var modifiedCapture: Int { identityCount + keys.count }
    var hasIdentity: Bool { identityCount > 0 }
}
