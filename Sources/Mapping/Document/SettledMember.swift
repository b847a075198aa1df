/// A value of a member: JSON, compared by JSON's rules.
protocol MemberValue: Sendable {
    /// Whether two observations show the same value.
    func agrees(with other: Self) -> Bool
}

/// What is known of one member of one object, and the table by which observations change it (law 3).
///
/// Times are microseconds of the store's clock. Every observation is applied once, in the order of arrival.
struct SettledMember<Value: MemberValue>: Sendable {
    struct Observed: Sendable {
        var value: Value
        /// The value was true at some time between `lo` and `hi`.
        var lo: Int64
        var hi: Int64
        /// The value of the model's `modified:` member, if the response shows it.
        var stamp: ModificationTime?
        /// The kind of response; embedded objects count as a list.
        var kind = Observation.Kind.list
        /// The document that said it, and when; nil for a write.
        var word: DocumentWord?
        var source: Int64 = 0

        var isWrite: Bool { kind == .write }
        var challenger: Challenger { Challenger(value: value, lo: lo, hi: hi, source: source) }
    }

    /// Why a value is not certain: another one cannot be ordered against it, or a write has not been seen.
    struct Doubt: Sendable {
        /// Nil if there is none, or none any more.
        var challenger: Challenger?
        /// The latest `hi` of any third value, or the time of a write that no response showed.
        var rest = Int64.min

        /// The time after which an observation of the settled value ends the doubt.
        var end: Int64 { max(challenger?.hi ?? .min, rest) }
    }

    /// A value that cannot be ordered against the settled one.
    struct Challenger: Sendable {
        var value: Value
        var lo: Int64
        var hi: Int64
        /// The observation that showed it last: the one that was complete last.
        var source: Int64
    }

    enum Outcome: Equatable {
        case replaced(KnowledgeRule), confirmed, ignored
        /// Two values compete, and only a later observation can decide.
        case doubted
        /// A write cannot be ordered against other observations (rows W2 and W3): a document that was requested up to this
        /// time may have been served with any of the values.
        case unordered(until: Int64)
    }

    private(set) var value: Value
    private(set) var clock: Knowledge.Clock
    private(set) var doubt: Doubt?
    /// The observation that settled or confirmed the value last: the one that was complete last.
    private(set) var source: Int64
}

extension SettledMember {
    /// Row F: the first observation.
    init(first seen: Observed) {
        (value, source) = (seen.value, seen.source)
        clock = Knowledge.Clock(lo: seen.lo, hi: seen.hi, stamp: seen.kind == .seed ? nil : seen.stamp)
    }

    /// Row W4: a write was complete at this time, and no response shows its effect on the member.
    mutating func doubt(until time: Int64) {
        guard clock.lo <= time else { return }
        doubt = Doubt(challenger: doubt?.challenger, rest: max(doubt?.rest ?? .min, time))
    }

    /// Applies one observation, by the first row that fits.
    ///
    /// - Parameters:
    ///   - lag: how long lower stamps must be seen before the upstream counts as having gone back.
    ///   - history: what is known of earlier words and writes.
    mutating func merge(_ seen: Observed, lag: Int64, _ history: ObjectHistory) -> Outcome {
        let isEqual = value.agrees(with: seen.value)
        let isNewer = seen.lo > clock.hi
        if seen.kind == .seed { return accept(given: seen, isEqual: isEqual) }
        if seen.stamp.isBelow(clock.floor) {
            if seen.isWrite {
                // W1: the upstream's clocks differ; the last write holds.
                if isNewest(seen) { return replace(by: seen, .lowerStampedWrite) }
                if !isEqual, seen.hi >= clock.lo || doubt != nil { return mergeWrite(seen, settles: false) }  // W2
            } else if seen.kind == .detail, isNewer, !isEqual, let since = clock.lowerSince, seen.lo - since >= lag {
                clock.floor = nil
                return replace(by: seen, .wentBack)  // S1
            } else {
                if isNewer, clock.lowerSince == nil { clock.lowerSince = seen.hi }
                return .ignored  // S2
            }
        } else if clock.isExact, doubt == nil, !isEqual, clock.floor.isBelow(seen.stamp) {
            return replace(by: seen, .laterStamp)  // S3
        }
        if isEqual { return confirm(seen) }  // C1
        // When it was true is not known, so nothing but its stamp can show that it is newer.
        if seen.kind == .delivery { return .ignored }
        if let word = seen.word, isLater(word, seen, history) { return succeed(by: seen) }  // D1
        let isAfterWrite = !seen.isWrite && clock.lo <= history.unseen && seen.lo > history.unseen
        if isAfterWrite { return settle(afterWrite: seen) }  // W5
        if isNewest(seen) { return replace(by: seen, .newer) }  // C2
        if doubt == nil, seen.hi < clock.lo { return .ignored }  // C3
        if seen.isWrite, overlaps(seen) { return mergeWrite(seen, settles: true) }  // W3
        return challenge(seen)  // C4
    }

    /// The latest time at which any other value may have been true.
    private var latest: Int64 { max(clock.hi, doubt?.end ?? .min) }

    private func isNewest(_ seen: Observed) -> Bool { (doubt == nil || seen.isWrite) && seen.lo > latest }

    /// Whether a document that settled or confirmed the value last has said something else since.
    ///
    /// Within the lag of a write its word may be older than the write, and does not take the place of what was written.
    private func isLater(_ word: DocumentWord, _ seen: Observed, _ history: ObjectHistory) -> Bool {
        guard !word.isNotModified, let by = history.word(source), by.document == word.document else { return false }
        return word.sent > by.completed && seen.lo > max(history.wrote, history.restarted)
    }

    /// Whether an observation overlaps the settled value, the challenger or the rest.
    private func overlaps(_ seen: Observed) -> Bool {
        let opposes = doubt?.challenger.map { seen.lo <= $0.hi && $0.lo <= seen.hi } ?? false
        return opposes || seen.lo <= clock.hi && clock.lo <= seen.hi || seen.lo <= doubt?.rest ?? .min
    }

    private mutating func replace(by seen: Observed, _ rule: KnowledgeRule) -> Outcome {
        adopt(seen)
        doubt = nil
        return .replaced(rule)
    }

    /// Puts an observation in the place of the settled value; a stamp that is missing or lower keeps the floor.
    private mutating func adopt(_ seen: Observed) {
        let isExact = seen.stamp != nil && !seen.stamp.isBelow(clock.floor)
        let (lo, hi, floor) = (max(clock.lo, seen.lo), max(clock.hi, seen.hi), isExact ? seen.stamp : clock.floor)
        (value, source, clock) = (seen.value, seen.source, Knowledge.Clock(lo: lo, hi: hi, stamp: floor))
        clock.isExact = isExact
    }

    private mutating func confirm(_ seen: Observed) -> Outcome {
        if seen.hi >= clock.hi { source = seen.source }
        (clock.lo, clock.hi) = (max(clock.lo, seen.lo), max(clock.hi, seen.hi))
        if let stamp = seen.stamp, !seen.stamp.isBelow(clock.floor) {
            (clock.floor, clock.isExact, clock.lowerSince) = (stamp, true, nil)
        }
        if let known = doubt, seen.lo > known.end { doubt = nil }
        return .confirmed
    }

    /// D1: a document's later word takes the place of its earlier one, whatever other documents say.
    private mutating func succeed(by seen: Observed) -> Outcome {
        adopt(seen)
        if var known = doubt {
            if known.challenger?.value.agrees(with: seen.value) == true { known.challenger = nil }
            let isOver = known.challenger == nil && known.rest == .min || seen.lo > known.end
            doubt = isOver ? nil : known
            if !isOver { clock.isExact = false }
        }
        return .replaced(.laterWord)
    }

    /// W5: the settled value may be from before a write that no response has shown, and this one is not.
    ///
    /// It is settled even where the two overlap, which they do if a response that was under way during the write has
    /// confirmed the settled value.
    private mutating func settle(afterWrite seen: Observed) -> Outcome {
        guard seen.lo <= latest else { return replace(by: seen, .afterWrite) }
        settle(seen)
        clock.isExact = false
        return .replaced(.afterWrite)
    }

    /// Row G: a given value replaces what was complete before it; whatever is complete later is newer than it.
    private mutating func accept(given seen: Observed, isEqual: Bool) -> Outcome {
        guard !seen.stamp.isBelow(clock.floor), seen.lo > latest else { return .ignored }
        doubt = nil
        guard !isEqual else {
            clock.lo = max(clock.lo, seen.lo)
            return .confirmed
        }
        (value, source) = (seen.value, seen.source)
        clock = Knowledge.Clock(lo: seen.lo, hi: seen.hi, stamp: clock.floor)
        clock.isExact = false
        return .replaced(.newer)
    }

    /// W2 and W3: a write that overlaps what is known.
    private mutating func mergeWrite(_ write: Observed, settles: Bool) -> Outcome {
        let until = max(latest, write.hi)
        if settles { settle(write) } else { oppose(write.challenger) }
        if !settles { clock.isExact = false }
        return .unordered(until: until)
    }

    /// Puts an observation in the place of the settled value, which becomes the challenger.
    private mutating func settle(_ seen: Observed) {
        let former = Challenger(value: value, lo: clock.lo, hi: clock.hi, source: source)
        adopt(seen)
        oppose(former)
    }

    /// Makes a value the challenger; the intervals of one value are joined.
    private mutating func oppose(_ new: Challenger) {
        guard let known = doubt?.challenger, known.value.agrees(with: new.value) else {
            doubt = Doubt(challenger: new, rest: doubt?.end ?? .min)
            return
        }
        if new.hi >= known.hi { doubt?.challenger?.source = new.source }
        doubt?.challenger?.lo = max(known.lo, new.lo)
        doubt?.challenger?.hi = max(known.hi, new.hi)
    }

    private mutating func challenge(_ seen: Observed) -> Outcome {
        oppose(seen.challenger)
        if let doubt, let challenger = doubt.challenger, challenger.lo > max(clock.hi, doubt.rest) {
            var settling = seen
            (settling.lo, settling.hi, settling.source) = (challenger.lo, challenger.hi, challenger.source)
            return replace(by: settling, .decided)
        }
        if seen.stamp == nil { clock.isExact = false }
        return .doubted
    }
}

/// Why a value replaced another one: the rows of the table in which that happens.
public enum KnowledgeRule: String, Sendable {
    /// A write, although its response has a lower stamp than known before.
    case lowerStampedWrite = "W1"
    /// The upstream itself has gone back, and stays there.
    case wentBack = "S1"
    case laterStamp = "S3"
    /// The document that showed the former value last now shows this one.
    case laterWord = "D1"
    case newer = "C2"
    /// A write showed it, while another response showed the former value.
    case overlappingWrite = "W3"
    /// It was observed after a write that no response has shown, and the former value may be from before it.
    case afterWrite = "W5"
    /// It was the last one seen of two values in doubt.
    case decided = "C4"
}
