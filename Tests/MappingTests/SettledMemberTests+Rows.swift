import Testing

@testable import Mapping

/// Rows of the table that need a story.
extension SettledMemberTests {
    private func seen(
        _ value: Int,
        _ lo: Int64,
        _ hi: Int64,
        stamp: Int? = nil,
        _ source: Observation.Kind = .detail
    ) -> Member.Observed {
        Member.Observed(value: value, lo: lo, hi: hi, stamp: stamp.flatMap { Self.stamps[$0] }, kind: source)
    }

    /// A list's word; lists lag by 10.
    private func word(
        _ value: Int,
        _ sent: Int64,
        _ completed: Int64,
        stamp: Int? = nil,
        of document: Document = .list,
        isNotModified: Bool = false
    ) -> Event {
        Event(document: document, sent: sent, completed: completed, value: value, isNotModified: isNotModified)
    }

    private func known(_ events: Event..., stamps: [Int: Int] = [:]) -> Known {
        var known = Known()
        for (index, event) in events.enumerated() {
            var seen = Self.observed(event, at: index, Setting(changes: [], lag: 10))
            seen.stamp = stamps[index].flatMap { Self.stamps[$0] }
            known.merge(seen, lag: 10)
        }
        return known
    }

    @Test func `W1 a write replaces the value although its response has a lower stamp`() {
        var member = Member(first: seen(1, 0, 1, stamp: 5))
        #expect(member.merge(seen(2, 3, 4, stamp: 3, .write), lag: 10) == .replaced(.lowerStampedWrite))
        #expect(!member.clock.isExact)
        // What it replaced has the higher stamp, and does not come back by it.
        #expect(member.merge(seen(1, 5, 6, stamp: 5), lag: 10) == .replaced(.newer))
    }

    @Test func `W2 an overlapping write with a lower stamp leaves the value, and a doubt until a later observation`() {
        var member = Member(first: seen(1, 0, 5, stamp: 5))
        #expect(member.merge(seen(2, 3, 6, stamp: 3, .write), lag: 10) == .unordered(until: 6))
        #expect(member.value == 1)
        #expect(!member.clock.isExact)
        #expect(member.doubt?.challenger?.value == 2)
        #expect(member.merge(seen(1, 6, 7, stamp: 5), lag: 10) == .confirmed)
        #expect(member.doubt != nil)
        #expect(member.merge(seen(1, 7, 8, stamp: 5), lag: 10) == .confirmed)
        #expect(member.doubt == nil)
    }

    @Test func `W3 a write that overlaps settles its value, and the former one becomes the challenger`() {
        var member = Member(first: seen(1, 0, 5))
        #expect(member.merge(seen(2, 3, 6, .write), lag: 10) == .unordered(until: 6))
        #expect(member.value == 2)
        #expect(member.doubt?.challenger?.value == 1)
        #expect(member.merge(seen(2, 7, 8), lag: 10) == .confirmed)
        #expect(member.doubt == nil)
    }

    @Test func `W4 after a write without a body, only a later observation ends the doubt`() {
        var member = Member(first: seen(1, 0, 5))
        member.doubt(until: 20)
        #expect(member.merge(seen(2, 15, 22, .list), lag: 10) == .doubted)
        #expect(member.merge(seen(2, 21, 23), lag: 10) == .replaced(.decided))
        #expect(member.doubt == nil)
    }

    @Test func `W5 an observation after a write without a body is settled, even if an overlapping read differs`() {
        var member = Member(first: seen(1, 5, 6))
        member.doubt(until: 8)
        // It was sent before the write.
        #expect(member.merge(seen(1, 1, 14), lag: 10) == .confirmed)
        var history = ObjectHistory(wrote: 8)
        history.unseen = 8
        #expect(member.merge(seen(2, 12, 16), lag: 10, history) == .replaced(.afterWrite))
        #expect(member.value == 2)
        #expect(member.doubt?.challenger?.value == 1)
        #expect(member.merge(seen(2, 15, 17), lag: 10, history) == .confirmed)
        #expect(member.doubt == nil)
    }

    @Test func `S1 a value that the upstream has gone back to is believed once it has lasted for the lag`() {
        var member = Member(first: seen(1, 0, 1, stamp: 5))
        #expect(member.merge(seen(0, 3, 4, stamp: 3), lag: 10) == .ignored)
        #expect(member.merge(seen(0, 8, 9, stamp: 3), lag: 10) == .ignored)
        #expect(member.merge(seen(0, 14, 15, stamp: 3, .list), lag: 10) == .ignored)
        #expect(member.merge(seen(0, 14, 15, stamp: 3), lag: 10) == .replaced(.wentBack))
        #expect(member.merge(seen(4, 16, 17, stamp: 4), lag: 10) == .replaced(.laterStamp))
    }

    @Test func `S3 a later stamp replaces the value within the lag, if the settled value had a stamp`() {
        var member = Member(first: seen(1, 0, 1, stamp: 1))
        #expect(member.merge(seen(2, -9, 2, stamp: 2, .list), lag: 10) == .replaced(.laterStamp))
        // A value without a stamp may be newer than the stamp that was seen last.
        #expect(member.merge(seen(3, 5, 6), lag: 10) == .replaced(.newer))
        #expect(member.merge(seen(2, -4, 7, stamp: 3, .list), lag: 10) == .doubted)
    }

    /// A value that the upstream has sent, at some time after it was true.
    private func delivery(_ value: Int, at time: Int64, stamp: Int?) -> Member.Observed {
        seen(value, Observation.beforeAll, time, stamp: stamp, .delivery)
    }

    @Test
    func `S3 a delivery with a later stamp replaces the value, and a later response is ordered against its arrival`() {
        var member = Member(first: seen(1, 0, 1, stamp: 1))
        #expect(member.merge(delivery(2, at: 9, stamp: 2), lag: 10) == .replaced(.laterStamp))
        #expect(member.clock.lo == 0)
        #expect(member.clock.hi == 9)
        #expect(member.merge(seen(3, 5, 8), lag: 10) == .doubted)
        #expect(member.merge(seen(3, 10, 11), lag: 10) != .ignored)
    }

    @Test func `S2 a delivery that comes again has a lower stamp, and is ignored`() {
        var member = Member(first: seen(2, 0, 1, stamp: 2))
        #expect(member.merge(delivery(1, at: 90, stamp: 1), lag: 10) == .ignored)
        #expect(member.value == 2)
        #expect(member.clock.hi == 1)
    }

    @Test func `C1 a delivery of the known value confirms it, and ends no doubt`() {
        var member = Member(first: seen(1, 0, 5))
        #expect(member.merge(seen(2, 3, 6), lag: 10) == .doubted)
        #expect(member.merge(delivery(1, at: 9, stamp: 4), lag: 10) == .confirmed)
        #expect(member.doubt != nil)
        #expect(member.clock.isExact)
    }

    @Test(arguments: [nil, 1, 2])
    func `a delivery that no stamp proves newer is ignored, however late it comes`(stamp: Int?) {
        var plain = Member(first: seen(1, 0, 1))
        #expect(plain.merge(delivery(2, at: 90, stamp: stamp), lag: 10) == .ignored)
        var stamped = Member(first: seen(1, 0, 1, stamp: 2))
        #expect(stamped.merge(delivery(3, at: 90, stamp: stamp), lag: 10) == .ignored)
        #expect(stamped.value == 1)
    }

    @Test func `D1 a list's later value replaces its earlier one at once`() {
        let known = known(word(1, 0, 1), word(2, 2, 3))
        #expect(known.member?.value == 2)
        #expect(known.member?.doubt == nil)
        #expect(known.member?.clock.lo == -8, "other documents are ordered by the lag as before")
        #expect(known.member?.source == 1)
    }

    @Test func `D1 does not order overlapping values, values of other documents, or a 304`() {
        #expect(self.known(word(1, 0, 2), word(2, 2, 3)).member?.value == 1)
        #expect(self.known(word(1, 0, 1), word(2, 2, 3, of: .otherList)).member?.value == 1)
        #expect(self.known(word(1, 0, 1), word(2, 2, 3, isNotModified: true)).member?.value == 1)
        // The other list has confirmed it since.
        let other = self.known(word(1, 0, 1), word(1, 2, 3, of: .otherList), word(2, 4, 5))
        #expect(other.member?.value == 1)
        #expect(other.member?.doubt?.challenger?.value == 2)
    }

    @Test func `D1 follows a 304 that confirmed the value last`() {
        let known = known(
            word(1, 0, 1),
            word(1, 2, 3, of: .otherList),
            word(1, 4, 5, isNotModified: true),
            word(2, 6, 7)
        )
        #expect(known.member?.value == 2)
    }

    @Test func `D1 never orders anything within the lag of an own write`() {
        let write = Event(document: .none, sent: 0, completed: 1, value: 1)
        let soon = known(write, word(1, 2, 3), word(0, 4, 5))
        #expect(soon.member?.value == 1)
        #expect(soon.member?.doubt?.challenger?.value == 0)
        #expect(known(write, word(1, 2, 3), word(2, 12, 13)).member?.value == 2)
    }

    @Test func `D1 keeps a doubt whose challenger is a different value, and ends one whose challenger it confirms`() {
        let lists = [word(1, 0, 1), word(2, 2, 3, of: .otherList)]
        let third = known(lists[0], lists[1], word(3, 4, 5))
        #expect(third.member?.value == 3)
        #expect(third.member?.doubt?.challenger?.value == 2)
        #expect(third.member?.clock.isExact == false)
        let same = known(lists[0], lists[1], word(2, 4, 5))
        #expect(same.member?.value == 2)
        #expect(same.member?.doubt == nil, "it has neither a challenger nor a third value")
        let rest = known(lists[0], word(3, 1, 2, of: .otherList), lists[1], word(2, 4, 5))
        #expect(rest.member?.value == 2)
        #expect(rest.member?.doubt?.challenger == nil)
        #expect(rest.member?.doubt?.rest == 2)
        let after = known(lists[0], lists[1], word(3, 14, 15))
        #expect(after.member?.doubt == nil, "its `lo` is after the challenger")
    }

    @Test func `D1 makes its stamp the floor, and is exact without a doubt`() {
        let stamped = known(word(1, 0, 1), word(2, 2, 3), stamps: [1: 4])
        #expect(stamped.member?.clock.floor == Self.stamps[4])
        #expect(stamped.member?.clock.isExact == true)
        let unstamped = known(word(1, 0, 1), word(2, 2, 3), stamps: [0: 4])
        #expect(unstamped.member?.clock.floor == Self.stamps[4])
        #expect(unstamped.member?.clock.isExact == false)
        let lower = known(word(1, 0, 1), word(2, 2, 3), stamps: [0: 4, 1: 3])
        #expect(lower.member?.value == 1, "a lower stamp is older, whichever document shows it")
    }

    @Test func `after a crash, every observation counts as lasting until the restart`() {
        var known = known(word(1, 0, 1))
        known.crash(restartingAt: 5)
        var late = known
        late.merge(Self.observed(word(2, 5, 8), at: 1, Setting(changes: [], lag: 10)), lag: 10)
        #expect(late.member?.value == 1, "its earlier word may be among what was lost")
        // A write may be, too.
        known.merge(Self.observed(word(2, 6, 8), at: 1, Setting(changes: [], lag: 10)), lag: 10)
        #expect(known.member?.value == 1)
        #expect(known.member?.doubt?.challenger?.value == 2)
    }

    @Test func `C4 of two challengers the one that is observed after all others settles the value`() {
        var member = Member(first: seen(1, 0, 10))
        #expect(member.merge(seen(2, 5, 12), lag: 0) == .doubted)
        #expect(member.merge(seen(3, 11, 14), lag: 0) == .doubted)
        #expect(member.value == 1)
        #expect(member.merge(seen(3, 15, 16), lag: 0) == .replaced(.decided))
        #expect(member.doubt == nil)
    }
}

extension SettledMember {
    /// Applies an observation of which no earlier word is known.
    fileprivate mutating func merge(_ seen: Observed, lag: Int64) -> Outcome {
        merge(seen, lag: lag, ObjectHistory())
    }
}
