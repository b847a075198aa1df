/// When the settled values of an object's members were observed, and which other values put them in doubt (law 3).
///
/// Times are microseconds of the store's clock.
public enum Knowledge: Sendable, Equatable {
    /// The observation of the base version was the last to show every member.
    case whole(isEmbedded: Bool)
    /// Members were observed at different times.
    case groups([Group])

    /// When a settled value was observed: it was true at some time between `lo` and `hi`.
    public struct Clock: Sendable, Hashable {
        public var lo: Int64
        public var hi: Int64
        /// The highest stamp seen with this value or the values it replaced.
        package var floor: ModificationTime?
        /// Whether this very value was seen with that stamp.
        package var isExact: Bool
        /// Since when only lower stamps have been seen.
        package var lowerSince: Int64?

        package init(lo: Int64, hi: Int64, stamp: ModificationTime? = nil) {
            (self.lo, self.hi, floor, isExact) = (lo, hi, stamp, stamp != nil)
        }
    }

    /// Members that share one clock; a member with a doubt, a former value or a contradiction has a group of its own.
    public struct Group: Sendable, Equatable {
        /// The sequence of the observation that last showed them.
        public var source: Int64
        public var clock: Clock
        public var doubt: Doubt?
        public var former: Former?
        /// Until this time, a response that contradicts itself about the member shows its own literals.
        public var contradictedUntil: Int64?
        /// JSON pointers without the leading slash; nil for all members that no other group names.
        public var members: [String]?

        package init(source: Int64, clock: Clock) { (self.source, self.clock) = (source, clock) }
    }

    /// Why a settled value is not certain.
    public struct Doubt: Sendable, Equatable {
        /// The value that cannot be ordered against the settled one, as raw JSON; empty if there is none any more.
        public var value: [UInt8]
        /// It was true at some time between `lo` and `hi`.
        public var lo: Int64
        public var hi: Int64
        /// The latest time at which any third value was seen, or `Int64.min`.
        public var rest: Int64
        /// The sequence of the observation that last showed it.
        public var source: Int64
        /// From when documents that show the member are fetched again; `always` if they are fetched at each request.
        public var asksFrom: Int64

        /// For a member that the principal's own write may have changed: its settled value may be older (law 10).
        static let always = Int64.min

        package init(value: [UInt8], lo: Int64, hi: Int64, rest: Int64, source: Int64, asksFrom: Int64) {
            (self.value, self.lo, self.hi) = (value, lo, hi)
            (self.rest, self.source, self.asksFrom) = (rest, source, asksFrom)
        }
    }

    /// The value that a settled one replaced, as raw JSON, and the rule by which; kept for display.
    public struct Former: Sendable, Equatable {
        public var value: [UInt8]
        public var rule: KnowledgeRule

        package init(value: [UInt8], rule: KnowledgeRule) { (self.value, self.rule) = (value, rule) }

        /// The longest value that is kept, in bytes.
        static let byteLimit = 256
    }

    /// The groups, if members were observed at different times.
    var groups: [Group] { if case .groups(let groups) = self { groups } else { [] } }

    /// The sequences of all observations named here.
    public var sources: Set<Int64> { Set(groups.flatMap { [$0.source, $0.doubt?.source].compactMap(\.self) }) }

    /// The same knowledge if every value counts as observed at least until a time.
    ///
    /// After a crash, observations until the start may have been lost.
    public func observed(until time: Int64) -> Knowledge {
        guard time > 0, case .groups(var groups) = self else { return self }
        for (index, group) in groups.enumerated() {
            if group.clock.hi != Observation.beforeAll { groups[index].clock.hi = max(group.clock.hi, time) }
            if let hi = group.doubt?.hi { groups[index].doubt?.hi = max(hi, time) }
        }
        return .groups(groups)
    }

    /// The doubtful members, as JSON pointers without the leading slash, and the time from which each is fetched again.
    public var doubts: [(member: String, asksFrom: Int64)] {
        groups.compactMap { group in
            group.doubt.flatMap { doubt in group.members?.first.map { ($0, doubt.asksFrom) } }
        }
    }
}
