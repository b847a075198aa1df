import Glibc
import TestSupport
import Testing

@testable import Mapping

extension Int: MemberValue {
    func agrees(with other: Int) -> Bool { self == other }
}

/// The table of law 3 against the truth: what the upstream's value was at each instant.
@Suite struct SettledMemberTests {
    private typealias Member = SettledMember<Int>

    /// How an upstream's value changes, and what its responses say of that.
    private struct Setting {
        /// At which instants the value becomes the next number.
        var changes: [Int64]
        var lag: Int64 = 2
        /// Whether an observation, given its position, has a stamp; stamps are the number, halved where they are coarse.
        var isStamped: (Int) -> Bool = { _ in false }
        var isCoarse = false

        func value(at time: Int64) -> Int { changes.count { $0 <= time } }
    }

    /// One request, and what its response showed.
    private struct Event: CustomStringConvertible {
        var source: Observation.Kind
        var sent: Int64
        var completed: Int64
        var value: Int

        var description: String { "\(source)[\(sent),\(completed)]=\(value)" }
    }

    /// What is known, and the newest that was served from it.
    private struct Known {
        var member: Member?
        /// Until when nothing that was observed may be served.
        var mark = Int64.min
        var served = -1

        mutating func merge(_ seen: Member.Observed, lag: Int64) {
            guard seen.lo > mark else { return }
            guard var known = member else { return member = Member(first: seen) }
            if case .unordered(let until) = known.merge(seen, lag: lag) {
                mark = until
                return member = nil
            }
            member = known
        }
    }

    private static let stamps = (0..<10).map { number in
        JSONSlice(Array("\(number)".utf8)).flatMap { ModificationTime($0) }
    }

    private static func observed(_ event: Event, at index: Int, _ setting: Setting) -> Member.Observed {
        let lag = event.source == .list ? setting.lag : 0
        let stamp = setting.isStamped(index) ? stamps[setting.isCoarse ? event.value / 2 : event.value] : nil
        return Member.Observed(
            value: event.value,
            lo: event.sent - lag,
            hi: event.completed,
            stamp: stamp,
            kind: event.source
        )
    }

    /// Checks every history of so many observations, in the order in which they are complete.
    private struct Checker {
        let setting: Setting
        let horizon: Int64
        /// The instant at which a write takes effect; nil: nothing is written.
        var writeAt: Int64?
        var failures: [String] = []
        var histories = 0

        mutating func check(_ count: Int) { descend(count, [], Known(), isWritten: false) }

        private mutating func descend(_ count: Int, _ events: [Event], _ known: Known, isWritten: Bool) {
            guard failures.count < 3 else { return }
            if count == 0 {
                histories += 1
                return settle(events, known)
            }
            let earliest = events.last?.completed ?? 0
            for completed in earliest...horizon {
                for sent in 0...completed {
                    for source in [Observation.Kind.list, .detail, .write] {
                        let values = values(source, sent, completed, isWritten)
                        for value in values {
                            let event = Event(source: source, sent: sent, completed: completed, value: value)
                            step(count, events + [event], known, isWritten || source == .write)
                        }
                    }
                }
            }
        }

        /// What a response may show: what was true at some instant of its interval.
        private func values(
            _ source: Observation.Kind,
            _ sent: Int64,
            _ completed: Int64,
            _ isWritten: Bool
        ) -> ClosedRange<Int> {
            switch source {
            case .list: return setting.value(at: sent - setting.lag)...setting.value(at: completed)
            case .detail: return setting.value(at: sent)...setting.value(at: completed)
            case .write:
                guard let writeAt, !isWritten, sent < writeAt, writeAt <= completed else { return 1...0 + 1 }
                return setting.value(at: writeAt)...setting.value(at: writeAt)
            }
        }

        private mutating func step(_ count: Int, _ events: [Event], _ before: Known, _ isWritten: Bool) {
            guard let last = events.last else { return }
            if last.source == .write, writeAt.map({ last.sent < $0 && $0 <= last.completed }) != true { return }
            var known = before
            known.merge(SettledMemberTests.observed(last, at: events.count - 1, setting), lag: setting.lag)
            if let value = known.member?.value {
                if value < known.served {
                    failures.append("\(setting.changes) \(events): served \(known.served), then \(value)")
                }
                if last.source == .write, value < last.value { failures.append("\(events): an own write is lost") }
                known.served = max(known.served, value)
            }
            descend(count - 1, events, known, isWritten: isWritten)
        }

        /// Once all is told, by reads that nothing overlaps, the truth is settled.
        private mutating func settle(_ events: [Event], _ before: Known) {
            var known = before
            let truth = setting.value(at: 1000)
            for time in [Int64(1000), 2000] {
                let event = Event(source: .detail, sent: time, completed: time + 1, value: truth)
                known.merge(SettledMemberTests.observed(event, at: 9, setting), lag: setting.lag)
            }
            if known.member?.value != truth || known.member?.doubt != nil {
                failures.append("\(setting.changes) \(events): not settled in the end")
            }
        }
    }

    /// With `LARDER_THOROUGH` set histories are longer and finer, which takes minutes in a debug build.
    private static let isThorough = getenv("LARDER_THOROUGH") != nil

    private static let truths: [[Int64]] = [[], [2], [1, 3], [2, 3]]

    @Test(arguments: [false, true])
    func `whatever three responses overlap, what is served never goes back and is settled in the end`(
        isStamped: Bool
    ) {
        for changes in Self.truths {
            var checker = Checker(
                setting: Setting(changes: changes, isStamped: { _ in isStamped }),
                horizon: Self.isThorough ? 5 : 4
            )
            checker.check(3)
            #expect(checker.failures == [])
            #expect(checker.histories > 1000)
        }
    }

    @Test(arguments: [false, true])
    func `the same with stamps on some responses, and with stamps that repeat`(isCoarse: Bool) {
        for odd in 0..<3 {
            for changes in Self.truths {
                var checker = Checker(
                    setting: Setting(changes: changes, isStamped: { $0 != odd }, isCoarse: isCoarse),
                    horizon: Self.isThorough ? 5 : 3
                )
                checker.check(3)
                #expect(checker.failures == [])
            }
        }
    }

    @Test(arguments: [false, true])
    func `an own write is never lost, and nothing goes back around it`(isStamped: Bool) {
        for (changes, write) in [([2], 2), ([1, 3], 1), ([1, 3], 3)] as [([Int64], Int64)] {
            var checker = Checker(
                setting: Setting(changes: changes, isStamped: { _ in isStamped }),
                horizon: Self.isThorough ? 5 : 4,
                writeAt: write
            )
            checker.check(3)
            #expect(checker.failures == [])
        }
    }

    @Test func `long random histories hold as well`() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<(Self.isThorough ? 200_000 : 10_000) {
            let changes = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                Int64.random(in: 1...9, using: &random)
            }.sorted()
            let mask = Int.random(in: 0..<64, using: &random)
            let setting = Setting(
                changes: changes,
                lag: Int64.random(in: 0...3, using: &random),
                isStamped: { mask >> $0 & 1 == 1 },
                isCoarse: Bool.random(using: &random)
            )
            var events = (0..<Int.random(in: 4...6, using: &random)).map { _ in
                let sent = Int64.random(in: 0...9, using: &random)
                let completed = Int64.random(in: sent...10, using: &random)
                let source: Observation.Kind = Bool.random(using: &random) ? .list : .detail
                let from = source == .list ? sent - setting.lag : sent
                let value = setting.value(at: Int64.random(in: from...completed, using: &random))
                return Event(source: source, sent: sent, completed: completed, value: value)
            }
            events.sort { $0.completed < $1.completed }
            var known = Known()
            for (index, event) in events.enumerated() {
                known.merge(Self.observed(event, at: index, setting), lag: setting.lag)
                let value = known.member?.value ?? known.served
                #expect(value >= known.served, "\(changes) \(events)")
                known.served = max(known.served, value)
            }
        }
    }

    @Test func `observations that do not overlap leave one state in whatever order they arrive`() {
        let setting = Setting(changes: [2, 5], lag: 0)
        let events = [(0, 1), (2, 3), (4, 4), (5, 6)].map { sent, completed in
            Event(source: .detail, sent: sent, completed: completed, value: setting.value(at: sent))
        }
        func orders(_ events: [Event]) -> [[Event]] {
            events.isEmpty
                ? [[]]
                : events.indices.flatMap { index in
                    var rest = events
                    let first = rest.remove(at: index)
                    return orders(rest).map { [first] + $0 }
                }
        }
        for order in orders(events) {
            var known = Known()
            for event in order { known.merge(Self.observed(event, at: 0, setting), lag: 0) }
            #expect(known.member?.value == 2, "\(order)")
            #expect(known.member?.clock.hi == 6, "\(order)")
        }
    }

    // MARK: Rows that need a story

    private func seen(
        _ value: Int,
        _ lo: Int64,
        _ hi: Int64,
        stamp: Int? = nil,
        _ source: Observation.Kind = .detail
    ) -> Member.Observed {
        Member.Observed(value: value, lo: lo, hi: hi, stamp: stamp.flatMap { Self.stamps[$0] }, kind: source)
    }

    @Test func `W1 a write whose response has a lower stamp replaces all the same`() {
        var member = Member(first: seen(1, 0, 1, stamp: 5))
        #expect(member.merge(seen(2, 3, 4, stamp: 3, .write), lag: 10) == .replaced(.lowerStampedWrite))
        #expect(!member.clock.isExact)
        // What it replaced has the higher stamp, and does not come back by it.
        #expect(member.merge(seen(1, 5, 6, stamp: 5), lag: 10) == .replaced(.newer))
    }

    @Test func `S1 an upstream that goes back is believed once it stays there for the lag`() {
        var member = Member(first: seen(1, 0, 1, stamp: 5))
        #expect(member.merge(seen(0, 3, 4, stamp: 3), lag: 10) == .ignored)
        #expect(member.merge(seen(0, 8, 9, stamp: 3), lag: 10) == .ignored)
        #expect(member.merge(seen(0, 14, 15, stamp: 3, .list), lag: 10) == .ignored)
        #expect(member.merge(seen(0, 14, 15, stamp: 3), lag: 10) == .replaced(.wentBack))
        #expect(member.merge(seen(4, 16, 17, stamp: 4), lag: 10) == .replaced(.laterStamp))
    }

    @Test func `S3 a later stamp replaces within the lag, if the settled value was seen with its own`() {
        var member = Member(first: seen(1, 0, 1, stamp: 1))
        #expect(member.merge(seen(2, -9, 2, stamp: 2, .list), lag: 10) == .replaced(.laterStamp))
        // A value without a stamp may be newer than the stamp that was seen last.
        #expect(member.merge(seen(3, 5, 6), lag: 10) == .replaced(.newer))
        #expect(member.merge(seen(2, -4, 7, stamp: 3, .list), lag: 10) == .doubted)
    }

    @Test func `C4 of two challengers the one that is seen after all others settles`() {
        var member = Member(first: seen(1, 0, 10))
        #expect(member.merge(seen(2, 5, 12), lag: 0) == .doubted)
        #expect(member.merge(seen(3, 11, 14), lag: 0) == .doubted)
        #expect(member.value == 1)
        #expect(member.merge(seen(3, 15, 16), lag: 0) == .replaced(.decided))
        #expect(member.doubt == nil)
    }
}
