/// When the settled values of an object's members were seen, and what stands against them (law 3).
///
/// Times are microseconds of the store's clock.
public enum Knowledge: Sendable, Equatable {
    /// All of it was last seen by the observation of the object's base version.
    case whole(isEmbedded: Bool)
    /// Members that were seen at different times.
    case groups([Group])

    /// When a settled value was seen.
    public struct Clock: Sendable, Equatable {
        /// The value was true at some time between `lo` and `hi`.
        public var lo: Int64
        /// The end of that interval.
        public var hi: Int64
        /// The highest stamp seen with the value, or with what it replaced.
        package var floor: ModificationTime?
        /// Whether this very value was seen with that stamp.
        package var isExact: Bool
        /// Since when only lower stamps have been seen.
        package var lowerSince: Int64?

        /// The clock of a value that was seen with a stamp, or without.
        package init(lo: Int64, hi: Int64, stamp: ModificationTime? = nil) {
            (self.lo, self.hi) = (lo, hi)
            (floor, isExact) = (stamp, stamp != nil)
        }
    }

    /// Members that share one clock.
    public struct Group: Sendable, Equatable {
        /// The sequence of the observation that showed them last.
        public var source: Int64
        /// When that was.
        public var clock: Clock
        /// What stands against the value; then the group has one member.
        public var doubt: Doubt?
        /// What the value replaced; then the group has one member.
        public var former: Former?
        /// Until when a response that contradicts itself about the member shows it as it came; then the group has one member.
        public var contradictedUntil: Int64?
        /// JSON pointers without the leading slash; nil: every member that no other group names.
        public var members: [String]?

        /// Members with a clock.
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
        /// When it was seen.
        public var lo: Int64
        /// The end of that interval.
        public var hi: Int64
        /// The latest time at which any third value was seen; `Int64.min`: none was.
        public var rest: Int64
        /// The sequence of the observation that showed it last.
        public var source: Int64
        /// From when on the documents that show the member are to be asked for again.
        public var asksFrom: Int64

        /// A challenger.
        public init(value: [UInt8], lo: Int64, hi: Int64, rest: Int64, source: Int64, asksFrom: Int64) {
            (self.value, self.lo, self.hi) = (value, lo, hi)
            (self.rest, self.source, self.asksFrom) = (rest, source, asksFrom)
        }
    }

    /// What a settled value replaced, for people who ask.
    public struct Former: Sendable, Equatable {
        /// As raw JSON.
        public var value: [UInt8]
        /// Why it gave way.
        public var rule: KnowledgeRule

        /// A value that gave way.
        public init(value: [UInt8], rule: KnowledgeRule) {
            (self.value, self.rule) = (value, rule)
        }

        /// Longer values are not kept.
        static let limit = 256
    }

    /// The observations that it names.
    public var sources: Set<Int64> {
        guard case .groups(let groups) = self else { return [] }
        return Set(groups.flatMap { [$0.source, $0.doubt?.source].compactMap(\.self) })
    }

    /// The members in doubt, as JSON pointers without the leading slash, and from when on each is asked for again.
    public var doubts: [(member: String, asksFrom: Int64)] {
        guard case .groups(let groups) = self else { return [] }
        return groups.compactMap { group in
            guard let doubt = group.doubt, let member = group.members?.first else { return nil }
            return (member, doubt.asksFrom)
        }
    }
}
