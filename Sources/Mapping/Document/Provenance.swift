/// The sources of what is known of one object, member by member.
public struct Provenance: Sendable {
    /// The declared members in the order of their declaration, then the undeclared ones.
    public var members: [Member]

    /// A value as shown by one response.
    public struct Sighting: Sendable, Equatable {
        /// The value as JSON, with identities in place of objects.
        public var value: [UInt8]
        /// The sequence of the observation that last showed it.
        public var source: Int64
        /// The end of that observation's interval, in microseconds of the store's clock.
        public var time: Int64
    }

    /// One component of a value gathered over several responses.
    public struct Item: Sendable, Equatable {
        /// The value as JSON.
        public var value: [UInt8]
        /// The effective time of the response that showed it: the start of a read, the end of a write.
        public var time: Int64
    }

    /// The status of a member's value.
    public enum Standing: String, Sendable {
        /// The value is settled.
        case known
        /// The value is settled, but another one was seen that cannot be ordered against it.
        case doubt
        /// The value was gathered over several responses by the member's policy.
        case gathered
        /// No sound value is known.
        case quarantined
        /// A write or deletion came after everything known of the value, which moves nowhere.
        case outdated
        /// The member belongs to the response because it is declared `local`.
        case local
        /// The member belongs to the response because it is not declared.
        case undeclared
    }

    /// One member.
    public struct Member: Sendable {
        /// The JSON pointer of the member in the upstream's JSON.
        public var pointer: String
        /// The declared properties read from there.
        public var properties: [String] = []
        /// The status of its value.
        public var standing: Standing
        /// How new values are merged with known ones.
        public var policy = MergePolicy.latest
        /// Whether it moves into other responses.
        public var moves = false
        /// The settled value, or else the newest one shown.
        public var value: [UInt8]?
        /// The observation that last showed that value.
        public var shown: Sighting?
        /// The value that the settled one replaced, and why.
        public var replaced: Knowledge.Former?
        /// The value that puts the settled one in doubt.
        public var challenger: Sighting?
        /// Values that fail their checks.
        public var quarantined: [Sighting] = []
        /// The components of a gathered value.
        public var items: [Item] = []
    }
}

/// The properties of a model, by the place they are read from.
struct PropertyNames {
    private var byPointer: [String: [String]] = [:]
    private var order: [String: Int] = [:]

    init(model: Int, models: Models) {
        // For a cluster, the properties of its base and all its concrete models.
        var indexes = [model]
        var position = 0
        while position < indexes.count {
            let declaration = models.declarations[indexes[position]]
            for name in declaration.choices.map(\.model) + (declaration.base.map { [$0] } ?? []) {
                if let other = models.index(of: name), !indexes.contains(other) { indexes.append(other) }
            }
            position += 1
        }
        for declaration in indexes.map({ models.declarations[$0] }) {
            for property in declaration.properties {
                for source in Self.sources(of: property, naming: declaration.naming) {
                    guard let steps = KeyPathSyntax.steps(of: source) else { continue }
                    // A member of an array's elements is known only as part of the array.
                    let names = steps.prefix { $0 != .elements }.compactMap { [$0].names?.first }
                    let pointer = "/" + MemberPath(names).text
                    order[pointer] = min(order[pointer] ?? .max, order.count)
                    if byPointer[pointer]?.contains(property.name) != true {
                        byPointer[pointer, default: []].append(property.name)
                    }
                }
            }
        }
    }

    private static func sources(of property: PropertyDeclaration, naming: Naming) -> [String] {
        if !property.parts.isEmpty { return property.parts.map(\.from) }
        return property.from.isEmpty ? MemberNaming(naming).members(for: property.name) : [property.from]
    }

    subscript(pointer: String) -> [String] { byPointer[pointer] ?? [] }

    func position(_ member: Provenance.Member) -> Int { order[member.pointer] ?? .max }
}
