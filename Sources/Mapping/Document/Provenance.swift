/// Where what is known of one object comes from, member by member.
public struct Provenance: Sendable {
    /// The declared members in the order of their declaration, then those that are not declared.
    public var members: [Member]

    /// A value as one response showed it.
    public struct Sighting: Sendable, Equatable {
        /// As JSON; objects in it are shown by their identities.
        public var value: [UInt8]
        /// The sequence of the observation that showed it last.
        public var source: Int64
        /// When that was: the end of its interval, in microseconds of the store's clock.
        public var time: Int64
    }

    /// What a value that was gathered over several responses is made of.
    public struct Item: Sendable, Equatable {
        /// As JSON.
        public var value: [UInt8]
        /// The effective time of the response that showed it: of a read its start, of a write its end.
        public var time: Int64
    }

    /// How a member stands.
    public enum Standing: String, Sendable {
        /// Its value is settled.
        case known
        /// Its value is settled, and another one was seen that cannot be ordered against it.
        case doubt
        /// It came to be over several responses, by a policy of its own.
        case gathered
        /// No sound value is known.
        case quarantined
        /// A write or a deletion came after all that is known of it: it moves nowhere.
        case outdated
        /// It belongs to the response, by declaration.
        case local
        /// It belongs to the response, for want of a declaration.
        case undeclared
    }

    /// One member.
    public struct Member: Sendable {
        /// Its place in the upstream's JSON, as a JSON pointer.
        public var pointer: String
        /// The declared properties that are read from there.
        public var properties: [String] = []
        /// How it stands.
        public var standing: Standing
        /// How new values meet known ones.
        public var policy = MergePolicy.latest
        /// Whether it moves into other responses.
        public var moves = false
        /// The settled value, or the newest that is shown of it.
        public var value: [UInt8]?
        /// Which response showed that value last.
        public var shown: Sighting?
        /// What the settled value replaced, and why.
        public var replaced: Knowledge.Former?
        /// What stands against the settled value.
        public var challenger: Sighting?
        /// Values that fail their checks.
        public var quarantined: [Sighting] = []
        /// What a gathered value is made of.
        public var items: [Item] = []
    }
}

/// Which properties of a model are read from which place.
struct PropertyNames {
    private var byPointer: [String: [String]] = [:]
    private var order: [String: Int] = [:]

    init(model: Int, models: Models) {
        // Of a cluster, whatever its base and its concrete models declare.
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
                    // A member of an array's elements is known as part of the array.
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
