/// When the settled values of an object's members were observed, and which other values put them in doubt (law 3).
///
/// Times are microseconds of the store's clock.
public enum Knowledge: Sendable, Equatable {
    /// The observation of the base version was the last to show every member.
    case whole(isEmbedded: Bool)
    /// Members were observed at different times.
    case groups([Group])

    /// When a settled value was observed.
    public struct Clock: Sendable, Equatable {
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
        /// The time of the settled values.
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

        /// Creates a group.
        package init(
            source: Int64,
            clock: Clock,
            doubt: Doubt? = nil,
            former: Former? = nil,
            contradictedUntil: Int64? = nil,
            members: [String]? = nil
        ) {
            (self.source, self.clock, self.doubt, self.former) = (source, clock, doubt, former)
            (self.contradictedUntil, self.members) = (contradictedUntil, members)
        }
    }

    /// A value that cannot be ordered against the settled one.
    public struct Doubt: Sendable, Equatable {
        /// The other value, as raw JSON.
        public var value: [UInt8]
        /// When it was observed: the start of the interval.
        public var lo: Int64
        /// The end of that interval.
        public var hi: Int64
        /// The latest time at which any third value was seen, or `Int64.min`.
        public var rest: Int64
        /// The sequence of the observation that last showed it.
        public var source: Int64
        /// The time from which documents that show the member are fetched again.
        public var asksFrom: Int64

        /// Creates a doubt.
        public init(value: [UInt8], lo: Int64, hi: Int64, rest: Int64, source: Int64, asksFrom: Int64) {
            (self.value, self.lo, self.hi) = (value, lo, hi)
            (self.rest, self.source, self.asksFrom) = (rest, source, asksFrom)
        }
    }

    /// The value that a settled one replaced, kept for display.
    public struct Former: Sendable, Equatable {
        /// The value as raw JSON.
        public var value: [UInt8]
        /// The rule by which it was replaced.
        public var rule: KnowledgeRule

        /// Creates a replaced value.
        public init(value: [UInt8], rule: KnowledgeRule) {
            (self.value, self.rule) = (value, rule)
        }

        /// The longest value that is kept, in bytes.
        static let limit = 256
    }

    /// The sequences of all observations named here.
    public var sources: Set<Int64> {
        guard case .groups(let groups) = self else { return [] }
        return Set(groups.flatMap { [$0.source, $0.doubt?.source].compactMap(\.self) })
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
