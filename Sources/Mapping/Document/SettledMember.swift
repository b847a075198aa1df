/// A value of a member: JSON, compared by JSON's rules.
protocol MemberValue: Sendable {
    /// Whether two observations show the same value.
    func agrees(with other: Self) -> Bool
}

/// What is known of one member of one object, and the table by which observations change it (law 3).
///
/// Times are microseconds of the store's clock. Every observation is applied once, in the order of arrival.
struct SettledMember<Value: MemberValue>: Sendable {
    /// One observation of the member.
    struct Observed: Sendable {
        var value: Value
        /// The value was true at some time between `lo` and `hi`.
        var lo: Int64
        var hi: Int64
        /// The value of the model's `modified:` member, if the response shows it.
        var stamp: ModificationTime?
        /// The kind of response; embedded objects count as a list.
        var kind = Observation.Kind.list

        var isWrite: Bool { kind == .write }
    }

    /// A value that cannot be ordered against the settled one.
    struct Doubt: Sendable {
        var challenger: Value
        var lo: Int64
        var hi: Int64
        /// The latest `hi` of any third value.
        var rest = Int64.min
    }

    /// The effect of an observation.
    enum Outcome: Equatable {
        /// The settled value has changed.
        case replaced(KnowledgeRule)
        /// The settled value stands.
        case confirmed
        case ignored
        /// Two values compete, and only a later observation can decide.
        case doubted
        /// A write cannot be ordered against other observations.
        ///
        /// Neither value may be served until an observation whose `lo` is after this time (rows W2 and W3).
        case unordered(until: Int64)
    }

    private(set) var value: Value
    private(set) var clock: Knowledge.Clock
    private(set) var doubt: Doubt?

    /// Row F: the first observation.
    init(first seen: Observed) {
        value = seen.value
        clock = Knowledge.Clock(lo: seen.lo, hi: seen.hi, stamp: seen.stamp)
    }

    /// Restores the stored state.
    init(value: Value, clock: Knowledge.Clock, doubt: Doubt?) {
        (self.value, self.clock, self.doubt) = (value, clock, doubt)
    }

    /// Applies one observation, by the first row that fits.
    ///
    /// - Parameter lag: how long lower stamps must be seen before the upstream counts as having gone back.
    mutating func merge(_ seen: Observed, lag: Int64) -> Outcome {
        let isEqual = value.agrees(with: seen.value)
        let isNewer = seen.lo > clock.hi
        if seen.stamp.isBelow(clock.floor) {
            if seen.isWrite {
                // W1: the upstream's clocks differ; the last write holds.
                if isNewest(seen) { return replace(by: seen, keeping: clock.floor, .lowerStampedWrite) }
            } else if seen.kind == .detail, isNewer, !isEqual, let since = clock.lowerSince, seen.lo - since >= lag {
                return replace(by: seen, keeping: nil, .wentBack)  // S1
            } else {
                if isNewer, clock.lowerSince == nil { clock.lowerSince = seen.hi }
                return .ignored  // S2
            }
        } else if clock.isExact, doubt == nil, !isEqual, clock.floor.isBelow(seen.stamp) {
            return replace(by: seen, keeping: nil, .laterStamp)  // S3
        }
        if isEqual { return confirm(seen) }  // C1
        if isNewest(seen) { return replace(by: seen, keeping: clock.floor, .newer) }  // C2
        if seen.hi < clock.lo { return .ignored }  // C3
        if seen.isWrite { return .unordered(until: max(latest, seen.hi)) }  // W2, W3
        return challenge(seen)  // C4
    }

    /// The latest time at which any other value may have been true.
    private var latest: Int64 { doubt.map { max(clock.hi, $0.hi, $0.rest) } ?? clock.hi }

    private func isNewest(_ seen: Observed) -> Bool { (doubt == nil || seen.isWrite) && seen.lo > latest }

    private mutating func replace(by seen: Observed, keeping floor: ModificationTime?, _ rule: KnowledgeRule) -> Outcome
    {
        let isExact = seen.stamp != nil && !seen.stamp.isBelow(floor)
        value = seen.value
        clock = Knowledge.Clock(
            lo: max(clock.lo, seen.lo),
            hi: max(clock.hi, seen.hi),
            stamp: isExact ? seen.stamp : floor
        )
        clock.isExact = isExact
        doubt = nil
        return .replaced(rule)
    }

    private mutating func confirm(_ seen: Observed) -> Outcome {
        clock.lo = max(clock.lo, seen.lo)
        clock.hi = max(clock.hi, seen.hi)
        if let stamp = seen.stamp, !seen.stamp.isBelow(clock.floor) {
            (clock.floor, clock.isExact, clock.lowerSince) = (stamp, true, nil)
        }
        if let known = doubt, seen.lo > max(known.hi, known.rest) { doubt = nil }
        return .confirmed
    }

    private mutating func challenge(_ seen: Observed) -> Outcome {
        var doubt = doubt ?? Doubt(challenger: seen.value, lo: seen.lo, hi: seen.hi)
        if doubt.challenger.agrees(with: seen.value) {
            (doubt.lo, doubt.hi) = (max(doubt.lo, seen.lo), max(doubt.hi, seen.hi))
        } else {
            doubt.rest = max(doubt.rest, doubt.hi)
            (doubt.challenger, doubt.lo, doubt.hi) = (seen.value, seen.lo, seen.hi)
        }
        if doubt.lo > max(clock.hi, doubt.rest) {
            var settling = seen
            (settling.lo, settling.hi) = (doubt.lo, doubt.hi)
            return replace(by: settling, keeping: clock.floor, .decided)
        }
        self.doubt = doubt
        if seen.stamp == nil { clock.isExact = false }
        return .doubted
    }
}

/// Why a value replaced another one: the rows of the table in which that happens.
public enum KnowledgeRule: String, Sendable {
    /// W1: a write whose response has a lower stamp than known before.
    case lowerStampedWrite = "W1"
    /// S1: the upstream itself has gone back, and stays there.
    case wentBack = "S1"
    /// S3: its `modified` member is later.
    case laterStamp = "S3"
    /// C2: it was observed later.
    case newer = "C2"
    /// C4: it was the last one seen of two values in doubt.
    case decided = "C4"
}

extension ModificationTime? {
    /// Whether this stamp is lower than another; false if one is missing or they cannot be compared.
    func isBelow(_ other: ModificationTime?) -> Bool {
        guard let self, let other else { return false }
        return other.isLater(than: self) == true
    }
}
