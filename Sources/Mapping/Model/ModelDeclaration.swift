/// A declared type of object: its identity, and which of its members are shared between responses.
///
/// Entries of `identity`, `keys`, `local` and `modified` name a property, or else a key path of the JSON.
public struct ModelDeclaration: Sendable, Equatable {
    /// The model's name, `[A-Za-z][A-Za-z0-9_]*`, unique regardless of case.
    public var name: String
    /// The members that identify an object; if empty, objects of this model stay embedded in their owners.
    public var identity: [String]
    /// Further members by which an object is found, such as a login; objects are never merged by them.
    public var keys: [String]
    /// The declared properties; these move from one response into another.
    public var properties: [PropertyDeclaration]
    /// Whether undeclared members move as well (`share: all`).
    public var sharesAll: Bool
    /// Members that belong to the response, not to the object; they never move.
    public var local: [String]
    /// The member that says when the object was last modified; it decides before any clock.
    public var modified: String?
    /// The base of the model's cluster, whose identity it shares.
    public var base: String?
    /// The concrete models of a cluster, in the order in which they are tried.
    public var choices: [ModelChoice]
    /// How property names correspond to member names if no source is given.
    public var naming = Naming.exact
    /// Whether the number 7 and the string "7" identify different objects.
    public var distinguishesTypes = false
    /// Members that never reach the disk; a response that shows one is kept in memory only.
    public var secret: [String]
    /// The condition under which an object shows itself to be deleted.
    public var deletedWhen: Condition?
    /// What happens to documents that show a deleted object; nil inherits from the base, or else means `usual`.
    public var onDelete: DeletionPolicy?
    /// The version of the declaration; stored objects remember theirs.
    public var version: Int
    /// The changes of each version, applied to older objects when they are read.
    public var migrations: [Migration]

    /// Declares a model; rarely used properties are set afterwards.
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
        (self.name, self.identity, self.keys, self.properties) = (name, identity, keys, properties)
        (self.sharesAll, self.local, self.modified, self.secret) = (sharesAll, local, modified, secret)
        (self.base, self.choices, self.version, self.migrations) = (base, choices, version, migrations)
    }

    /// The entry for a member in `local`, given its JSON pointer without the leading slash: its property, or else its
    /// key path.
    public func keyPath(of member: String) -> String {
        let names = member.split(separator: "/", omittingEmptySubsequences: false).map { component in
            MemberPath(pointer: String(component)).name ?? String(component)
        }
        let property = properties.first { KeyPathSyntax.components(of: $0.from) == names }
        return property?.name ?? names.map(KeyPathSyntax.escaped).joined(separator: ".")
    }
}

/// How a property's name becomes a member's name (Milk).
public enum Naming: Sendable, Equatable {
    case exact
    /// `catID` becomes `cat_id`: words are joined by underscores.
    ///
    /// These acronyms are written in capitals in property names.
    case snakeCase(acronyms: [String])

    /// The members that an entry such as `identity: catID` may mean where no property has its name, the exact one first.
    func spellings(of entry: String) -> [String] {
        Models.isValidName(entry) ? MemberNaming(self).members(for: entry) : [entry]
    }
}

/// The changes of one version to a model's upstream JSON (Mantle's archives).
public struct Migration: Sendable, Equatable {
    public var to: Int
    public var renamed: [Rename]
    /// Members whose values are converted.
    public var converted: [Conversion]
    public var removed: [String]

    /// A member that has a new name.
    public struct Rename: Sendable, Equatable {
        public var from: String
        public var to: String

        /// Both names are of members of the stored object.
        public init(from: String, to: String) { (self.from, self.to) = (from, to) }
    }

    /// A member whose values have a new form: the conversion makes them of the former ones.
    public struct Conversion: Sendable, Equatable {
        public var member: String
        public var conversion: ConversionDeclaration

        /// The conversion is made of the declaration when the models are compiled.
        public init(member: String, conversion: ConversionDeclaration) {
            (self.member, self.conversion) = (member, conversion)
        }
    }

    /// The step to version `to`; what is left out does not change.
    public init(to: Int, renamed: [Rename] = [], converted: [Conversion] = [], removed: [String] = []) {
        (self.to, self.renamed, self.converted, self.removed) = (to, renamed, converted, removed)
    }
}
