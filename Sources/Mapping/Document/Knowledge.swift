/// When the settled values of an object's members were observed, and which other values put them in doubt (law 3).
///
/// Times are microseconds of the store's clock.
public enum Knowledge: Sendable, Equatable {
    /// The observation of the base version was the last to show every member.
    case whole(isEmbedded: Bool)
    /// Members were observed at different times.
    case groups([Group])

    /// When a settled value was observed.
    public struct Clock: Sendable, Hashable {
        /// The value was true at some time between `lo` and `hi`.
        public var lo: Int64
        /// The end of that interval.
        public var hi: Int64
        /// The highest stamp seen with this value or the values it replaced.
        package var floor: ModificationTime?
        /// Whether this very value was seen with that stamp.
        package var isExact: Bool
        /// Since when only lower stamps have been seen.
        package var lowerSince: Int64?

        /// Creates the clock of a value observed with or without a stamp.
        package init(lo: Int64, hi: Int64, stamp: ModificationTime? = nil) {
            (self.lo, self.hi) = (lo, hi)
            (floor, isExact) = (stamp, stamp != nil)
        }
    }

    /// Members that share one clock.
    public struct Group: Sendable, Equatable {
        /// The sequence of the observation that last showed them.
        public var source: Int64
        public var clock: Clock
        /// The value that puts the settled one in doubt; the group then has one member.
        public var doubt: Doubt?
        /// The value that the settled one replaced; the group then has one member.
        public var former: Former?
        /// Until this time, a response that contradicts itself about the member shows its own literals.
        ///
        /// The group then has one member.
        public var contradictedUntil: Int64?
        /// JSON pointers without the leading slash; nil for all members that no other group names.
        public var members: [String]?

        package init(source: Int64, clock: Clock) { (self.source, self.clock) = (source, clock) }
    }

    /// Why a settled value is not certain.
    public struct Doubt: Sendable, Equatable {
        /// The value that cannot be ordered against the settled one, as raw JSON; empty if there is none any more.
        public var value: [UInt8]
        /// When it was observed: the start of the interval.
        public var lo: Int64
        /// The end of that interval.
        public var hi: Int64
        /// The latest time at which any third value was seen, or `Int64.min`.
        public var rest: Int64
        /// The sequence of the observation that last showed it.
        public var source: Int64
        /// The time from which documents that show the member are fetched again; `always` if they are fetched at
        /// each request.
        public var asksFrom: Int64

        /// For a member that the principal's own write may have changed: the settled value may be the one from before (law 10).
        static let always = Int64.min

        /// Creates a doubt.
        public init(value: [UInt8], lo: Int64, hi: Int64, rest: Int64, source: Int64, asksFrom: Int64) {
            (self.value, self.lo, self.hi) = (value, lo, hi)
            (self.rest, self.source, self.asksFrom) = (rest, source, asksFrom)
        }
    }

    /// The value that a settled one replaced, as raw JSON, and the rule by which; kept for display.
    public struct Former: Sendable, Equatable {
        public var value: [UInt8]
        public var rule: KnowledgeRule

        /// Creates a replaced value.
        public init(value: [UInt8], rule: KnowledgeRule) { (self.value, self.rule) = (value, rule) }

        /// The longest value that is kept, in bytes.
        static let limit = 256
    }

    /// The sequences of all observations named here.
    public var sources: Set<Int64> {
        guard case .groups(let groups) = self else { return [] }
        return Set(groups.flatMap { [$0.source, $0.doubt?.source].compactMap(\.self) })
    }

    /// The same knowledge if every value counts as observed at least until a time.
    ///
    /// After a crash, observations until the start may have been lost.
    public func observed(until time: Int64) -> Knowledge {
        guard time > 0, case .groups(let groups) = self else { return self }
        return .groups(
            groups.map { group in
                var group = group
                if group.clock.hi != Observation.beforeAll { group.clock.hi = max(group.clock.hi, time) }
                if let hi = group.doubt?.hi { group.doubt?.hi = max(hi, time) }
                return group
            }
        )
    }

    /// The doubtful members, as JSON pointers without the leading slash, and the time from which each is fetched again.
    public var doubts: [(member: String, asksFrom: Int64)] {
        guard case .groups(let groups) = self else { return [] }
        return groups.compactMap { group in
            guard let doubt = group.doubt, let member = group.members?.first else { return nil }
            return (member, doubt.asksFrom)
        }
    }
}

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
        public var value: [UInt8]
        /// The effective time of the response that showed it: the start of a read, the end of a write.
        public var time: Int64
    }

    /// The status of a member's value.
    public enum Standing: String, Sendable {
        case known
        /// The value is settled, but another one was seen that cannot be ordered against it.
        case doubt
        /// The value was gathered over several responses by the member's policy.
        case gathered = "merged"
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
        let family = reachable(from: [model, models.index(of: models.compiled[model].objectName) ?? model]) {
            models.compiled[$0].reading.choices.map(\.model)
        }
        for member in family.flatMap({ models.compiled[$0].members }) where member.index != nil {
            let property = member.declaration
            for source in property.parts.isEmpty ? member.spellings : property.parts.map(\.from) {
                guard let steps = KeyPathSyntax.steps(of: source) else { continue }
                // A member of an array's elements is known only as part of the array.
                let pointer = "/" + MemberPath(steps.leadingNames).text
                order[pointer] = min(order[pointer] ?? .max, order.count)
                if byPointer[pointer]?.contains(property.name) != true {
                    byPointer[pointer, default: []].append(property.name)
                }
            }
        }
    }

    subscript(pointer: String) -> [String] { byPointer[pointer] ?? [] }

    func position(_ member: Provenance.Member) -> Int { order[member.pointer] ?? .max }
}
