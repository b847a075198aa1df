/// A declared type of object: how it is identified, what of it is shared between answers, and what is not.
///
/// `identity`, `keys`, `local` and `modified` name a property if one is so named, else a key path of the JSON.
public struct ModelDeclaration: Sendable, Equatable {
    /// The model's name, `[A-Za-z][A-Za-z0-9_]*`, unique whatever the case.
    public var name: String
    /// What identifies an object; empty: objects of this model stay embedded in their owners.
    public var identity: [String]
    /// Further members that name an object, such as a login; looked up, never merged by.
    public var keys: [String]
    /// The declared properties, which are what moves from one answer into another.
    public var properties: [PropertyDeclaration]
    /// Whether undeclared members move as well (`share: all`).
    public var sharesAll: Bool
    /// Members that belong to the answer, not to the object: they never move.
    public var local: [String]
    /// The member that says when the object was last modified; it decides before any clock.
    public var modified: String?
    /// The model whose identity this one shares: the base of the cluster that it belongs to.
    public var base: String?
    /// The concrete models that an object of this one may be of, in the order in which they are tried.
    public var choices: [ModelChoice]
    /// How names of properties correspond to names of members where none is given.
    public var naming = Naming.exact
    /// Whether the number 7 and the string "7" identify different objects.
    public var distinguishesTypes = false
    /// Members that never reach the disk: an answer that shows one is kept in memory only.
    public var secret: [String]
    /// When an object says of itself that it is deleted.
    public var deletedWhen: Condition?
    /// What becomes of documents that show an object which is gone; nil: what its base says, else `stale`.
    public var onDelete: DeletionPolicy?
    /// The version of the declaration; stored objects remember theirs.
    public var version: Int
    /// What changed with each version, applied to older objects when they are read.
    public var migrations: [Migration]

    /// Declares a model; what is rare is set afterwards.
    public init(
        name: String,
        identity: [String] = [],
        keys: [String] = [],
        properties: [PropertyDeclaration] = [],
        sharesAll: Bool = false,
        local: [String] = [],
        modified: String? = nil,
        base: String? = nil,
        choices: [ModelChoice] = [],
        secret: [String] = [],
        version: Int = 0,
        migrations: [Migration] = []
    ) {
        self.name = name
        self.identity = identity
        self.keys = keys
        self.properties = properties
        self.sharesAll = sharesAll
        self.local = local
        self.modified = modified
        self.base = base
        self.choices = choices
        self.secret = secret
        self.version = version
        self.migrations = migrations
    }
}

extension ModelDeclaration {
    /// A member, given as a JSON pointer without the leading slash, as `local` names it: by its property if it is one, else
    /// by its key path.
    public func keyPath(of member: String) -> String {
        let names = member.split(separator: "/", omittingEmptySubsequences: false).map { component in
            MemberPath(pointer: String(component)).name ?? String(component)
        }
        if let property = properties.first(where: { KeyPathSyntax.components(of: $0.from) == names }) {
            return property.name
        }
        return names.map { name in
            let isForeign = name == "$" || name.hasPrefix("/") || name.hasPrefix("{")
            return (isForeign ? "\\" : "")
                + name.replacing("\\", with: "\\\\").replacing(".", with: "\\.").replacing("[", with: "\\[")
        }.joined(separator: ".")
    }
}

/// How a property's name becomes the name of a member (Milk).
public enum Naming: Sendable, Equatable {
    /// They are the same.
    case exact
    /// `catID` is `cat_id`: words are joined by underscores, and these acronyms are written in capitals.
    case snakeCase(acronyms: [String])
}

/// What changed in a model's upstream JSON with one version (Mantle's archives).
public struct Migration: Sendable, Equatable {
    /// The version that objects have afterwards.
    public var to: Int
    /// Members that have another name since then: key path before, key path after.
    public var renamed: [Rename]
    /// Members whose values are converted.
    public var converted: [Conversion]
    /// Members that are no longer there.
    public var removed: [String]

    /// A member under another name.
    public struct Rename: Sendable, Equatable {
        /// The key path before.
        public var from: String
        /// The key path after.
        public var to: String

        /// Pairs the two.
        public init(from: String, to: String) {
            self.from = from
            self.to = to
        }
    }

    /// A member with values of another form.
    public struct Conversion: Sendable, Equatable {
        /// The key path of the member.
        public var member: String
        /// From the values before to those after.
        public var conversion: ConversionDeclaration

        /// Pairs a member with its conversion.
        public init(member: String, conversion: ConversionDeclaration) {
            self.member = member
            self.conversion = conversion
        }
    }

    /// Declares what changed.
    public init(to: Int, renamed: [Rename] = [], converted: [Conversion] = [], removed: [String] = []) {
        self.to = to
        self.renamed = renamed
        self.converted = converted
        self.removed = removed
    }
}
