import Glibc
import TestSupport
import Testing

@testable import Mapping

extension Int: MemberValue {
    func agrees(with other: Int) -> Bool { self == other }
}

/// The table of law 3 against the truth: what the upstream's value was at each instant.
@Suite struct SettledMemberTests {
    typealias Member = SettledMember<Int>

    /// How an upstream's value changes, and what its responses say of that.
    struct Setting {
        /// At which instants the value becomes the next number.
        var changes: [Int64]
        var lag: Int64 = 2
        /// Whether an observation, given its position, has a stamp; stamps are the number, halved where they are coarse.
        var isStamped: (Int) -> Bool = { _ in false }
        var isCoarse = false

        func value(at time: Int64) -> Int { changes.count { $0 <= time } }
    }

    /// One request, and what its response showed.
    struct Event: CustomStringConvertible {
        var document: Document
        var sent: Int64
        var completed: Int64
        var value: Int
        var isNotModified = false
        /// Whether it is a write whose response shows nothing.
        var isUnseen = false
        /// Whether the upstream has sent the value, at some time after it was true.
        var isDelivery = false

        var isWrite: Bool { document == .none && !isDelivery }
        var kind: Observation.Kind {
            switch document {
            case .none: isDelivery ? .delivery : .write
            case .detail: .detail
            case .list, .otherList: .list
            }
        }

        var description: String {
            "\(isWrite ? "write" : isDelivery ? "delivery" : "\(document)")[\(sent),\(completed)]=\(value)\(isNotModified ? " (304)" : "")\(isUnseen ? " (unseen)" : "")"
        }
    }

    /// What shows the member; a write is no document, nor is a delivery.
    enum Document: Int64, CaseIterable {
        case none, detail, list, otherList
    }

    /// What is known, and the newest that was served from it.
    struct Known {
        var member: Member?
        /// The time of a write that cannot be ordered against what was observed.
        var mark = Int64.min
        /// The time of the principal's own write that no response has shown.
        var unseen = Int64.min
        var wrote = Int64.min
        /// The time of the start after the last crash.
        var restarted = Int64.min
        var served = -1
        /// By source, the word of a document and its completion.
        var words: [Int64: LastWord] = [:]

        mutating func merge(_ seen: Member.Observed, lag: Int64) {
            if seen.isWrite { wrote = max(wrote, seen.hi) }
            words[seen.source] = seen.word.map { LastWord(document: $0.document, completed: seen.hi) }
            guard var known = member else {
                if seen.kind == .delivery { return }
                var first = Member(first: seen)
                first.doubt(until: mark)
                return member = first
            }
            known.doubt(until: mark)
            var history = ObjectHistory(wrote: wrote, restarted: restarted) { [words, restarted] source in
                words[source].map { LastWord(document: $0.document, completed: max($0.completed, restarted)) }
            }
            history.unseen = mark
            if case .unordered(let until) = known.merge(seen, lag: lag, history) { mark = max(mark, until) }
            member = known
        }

        /// A write whose response shows nothing.
        mutating func write(completed: Int64) {
            (wrote, mark, unseen) = (max(wrote, completed), max(mark, completed), completed)
        }

        /// The daemon ends, and may have lost its last observations.
        mutating func crash(restartingAt time: Int64) {
            restarted = time
            guard let known = member else { return }
            var clock = known.clock
            clock.hi = max(clock.hi, time)
            var doubt = known.doubt
            if let hi = doubt?.challenger?.hi { doubt?.challenger?.hi = max(hi, time) }
            member = Member(value: known.value, clock: clock, doubt: doubt, source: known.source)
        }

        /// What a hit shows after a response, if it is served from the cache: after a write that cannot be ordered, a document
        /// shows nothing but what is certainly newer, or what it and all others said since; the latter is not enough after an own
        /// write that no response has shown.
        func hit(after event: Event) -> Int? {
            guard let member else { return nil }
            if member.clock.lo > mark { return member.value }
            let isConfirmed =
                mark > unseen && event.sent > mark && event.value == member.value && member.doubt?.challenger == nil
            return isConfirmed ? member.value : nil
        }
    }

    static let stamps = (0..<10).map { number in
        JSONSlice(Array("\(number)".utf8)).flatMap { ModificationTime($0) }
    }

    static func observed(_ event: Event, at index: Int, _ setting: Setting) -> Member.Observed {
        let lag = event.kind == .list ? setting.lag : 0
        let hasStamp = event.isDelivery || setting.isStamped(index)
        let stamp = hasStamp ? stamps[setting.isCoarse ? event.value / 2 : event.value] : nil
        return Member.Observed(
            value: event.value,
            lo: event.isDelivery ? Observation.beforeAll : event.sent - lag,
            hi: event.completed,
            stamp: stamp,
            kind: event.kind,
            word: event.document == .none
                ? nil
                : DocumentWord(
                    document: event.document.rawValue,
                    sent: event.sent,
                    isNotModified: event.isNotModified
                ),
            source: Int64(index)
        )
    }

    /// Checks every history of so many observations, in the order in which they are complete.
    private struct Checker {
        let setting: Setting
        let horizon: Int64
        /// The instant at which a write takes effect; nil: nothing is written.
        var writeAt: Int64?
        /// Whether the write's response does not show its value.
        var isUnseen = false
        var documents: [Document] = [.list, .detail]
        /// Whether a document may be validated, by a 304 that stands for its last word.
        var hasNotModified = false
        /// Whether the upstream also sends values, late and more than once.
        var hasDeliveries = false
        /// After how many observations the daemon crashes and starts again, without having lost any.
        var crashAfter: Int?
        var failures: [String] = []
        var histories = 0

        mutating func check(_ count: Int) { descend(count, [], Known()) }

        private mutating func descend(_ count: Int, _ events: [Event], _ known: Known) {
            guard failures.count < 3 else { return }
            if count == 0 {
                histories += 1
                return settle(events, known)
            }
            var known = known
            let earliest = events.last?.completed ?? 0
            if let crashAfter, crashAfter == events.count { known.crash(restartingAt: earliest) }
            for completed in earliest...horizon {
                for sent in 0...completed {
                    if isCut(sent, after: events) { continue }
                    for event in responses(sent, completed, after: events) {
                        step(count, events + [event], known)
                    }
                }
            }
        }

        /// Whether a request was under way when the daemon crashed.
        private func isCut(_ sent: Int64, after events: [Event]) -> Bool {
            guard let crashAfter, crashAfter <= events.count, crashAfter > 0 else { return false }
            return sent <= events[crashAfter - 1].completed
        }

        /// What a request may get: what was true at some instant of its interval.
        private func responses(_ sent: Int64, _ completed: Int64, after events: [Event]) -> [Event] {
            var found: [Event] = []
            if let writeAt, sent < writeAt, writeAt <= completed, !events.contains(where: \.isWrite) {
                let value = setting.value(at: writeAt)
                found.append(
                    Event(document: .none, sent: sent, completed: completed, value: value, isUnseen: isUnseen)
                )
            }
            if hasDeliveries, sent == completed {
                for value in 0...setting.value(at: completed) {
                    var event = Event(document: .none, sent: sent, completed: completed, value: value)
                    event.isDelivery = true
                    found.append(event)
                }
            }
            for document in documents {
                let from = document == .detail ? sent : sent - setting.lag
                // No document goes back itself, except where two of its responses overlap.
                let earlier = events.filter { $0.document == document && $0.completed < sent }.map(\.value).max() ?? 0
                for value in setting.value(at: from)...setting.value(at: completed) where value >= earlier {
                    var event = Event(document: document, sent: sent, completed: completed, value: value)
                    found.append(event)
                    let last = events.last { $0.document == document }
                    guard hasNotModified, last?.value == value, last.map({ $0.completed < sent }) == true else {
                        continue
                    }
                    event.isNotModified = true
                    found.append(event)
                }
            }
            return found
        }

        private mutating func step(_ count: Int, _ events: [Event], _ before: Known) {
            guard let last = events.last else { return }
            var known = before
            if last.isUnseen {
                known.write(completed: last.completed)
                return descend(count - 1, events, known)
            }
            known.merge(SettledMemberTests.observed(last, at: events.count, setting), lag: setting.lag)
            if let value = known.hit(after: last) {
                if value < known.served {
                    failures.append("\(setting.changes) \(events): served \(known.served), then \(value)")
                }
                known.served = max(known.served, value)
            }
            let written = events.last { $0.isWrite }
            if let written, let value = known.hit(after: last), value < written.value {
                failures.append("\(events): an own write is lost")
            }
            descend(count - 1, events, known)
        }

        /// Once all is told, by reads that nothing overlaps, the truth is settled.
        private mutating func settle(_ events: [Event], _ before: Known) {
            var known = before
            let truth = setting.value(at: 1000)
            for time in [Int64(1000), 2000] {
                let event = Event(document: .detail, sent: time, completed: time + 1, value: truth)
                known.merge(SettledMemberTests.observed(event, at: Int(time), setting), lag: setting.lag)
            }
            if known.member?.value != truth || known.member?.doubt != nil {
                failures.append("\(setting.changes) \(events): not settled in the end")
            }
        }
    }

    /// With `LARDER_THOROUGH` set histories are longer and finer, which takes minutes in a debug build.
    private static let isThorough = getenv("LARDER_THOROUGH") != nil

    private static let truths: [[Int64]] = [[], [2], [1, 3], [2, 3]]
    /// For checks with more documents, which have many more histories.
    private static let fewTruths = isThorough ? truths : [[2], [1, 3]]

    @Test(arguments: [false, true])
    func `however three responses overlap, no served value goes back, and all are settled in the end`(
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
    func `served values never go back with stamps on some responses, nor with repeated stamps`(isCoarse: Bool) {
        for odd in 0..<3 {
            for changes in Self.truths {
                var checker = Checker(
                    setting: Setting(changes: changes, isStamped: { $0 - 1 != odd }, isCoarse: isCoarse),
                    horizon: Self.isThorough ? 5 : 3
                )
                checker.check(3)
                #expect(checker.failures == [])
            }
        }
    }

    @Test(arguments: [false, true])
    func `served values never go back with two lists and a detail that 304s validate`(isStamped: Bool) {
        for changes in Self.fewTruths {
            var checker = Checker(
                setting: Setting(changes: changes, isStamped: { _ in isStamped }),
                horizon: Self.isThorough ? 5 : 3,
                documents: [.list, .otherList, .detail],
                hasNotModified: true
            )
            checker.check(3)
            #expect(checker.failures == [])
            #expect(checker.histories > 1000)
        }
    }

    @Test(arguments: [false, true])
    func `served values never go back with late and repeated deliveries`(isCoarse: Bool) {
        for changes in Self.fewTruths {
            // All responses have a stamp, none has one, or all but one.
            for odd in -2..<3 {
                var checker = Checker(
                    setting: Setting(
                        changes: changes,
                        isStamped: { odd == -1 || odd >= 0 && $0 - 1 != odd },
                        isCoarse: isCoarse
                    ),
                    horizon: Self.isThorough ? 5 : 3,
                    hasDeliveries: true
                )
                checker.check(3)
                #expect(checker.failures == [])
                #expect(checker.histories > 1000)
            }
        }
    }

    @Test func `late and repeated webhook deliveries do not undo a client's own write`() {
        for (changes, write) in [([2], 2), ([1, 3], 1), ([1, 3], 3)] as [([Int64], Int64)] {
            for (isStamped, isUnseen) in [(false, false), (true, false), (true, true)] {
                var checker = Checker(
                    setting: Setting(changes: changes, isStamped: { _ in isStamped }),
                    horizon: 3,
                    writeAt: write,
                    isUnseen: isUnseen,
                    hasDeliveries: true
                )
                checker.check(3)
                #expect(checker.failures == [])
            }
        }
    }

    @Test(arguments: [1, 2])
    func `served values never go back if the daemon crashes between the responses`(after count: Int) {
        for changes in Self.fewTruths {
            for isStamped in [false, true] {
                var checker = Checker(
                    setting: Setting(changes: changes, isStamped: { _ in isStamped }),
                    horizon: Self.isThorough ? 5 : 3,
                    documents: [.list, .otherList, .detail],
                    crashAfter: count
                )
                checker.check(3)
                #expect(checker.failures == [])
            }
        }
    }

    @Test(arguments: [false, true])
    func `an own write is never lost, and no value goes back because of it`(isStamped: Bool) {
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

    @Test(arguments: [false, true])
    func `an own write whose response does not show it is never lost, and no value goes back because of it`(
        isStamped: Bool
    ) {
        for (changes, write) in [([2], 2), ([1, 3], 1), ([1, 3], 3)] as [([Int64], Int64)] {
            var checker = Checker(
                setting: Setting(changes: changes, isStamped: { _ in isStamped }),
                horizon: Self.isThorough ? 5 : 3,
                writeAt: write,
                isUnseen: true
            )
            checker.check(4)
            #expect(checker.failures == [])
        }
    }

    @Test func `an own write is never lost between two lists and a detail`() {
        for (changes, write) in [([2], 2), ([1, 3], 1), ([1, 3], 3)] as [([Int64], Int64)] {
            var checker = Checker(
                setting: Setting(changes: changes),
                horizon: Self.isThorough ? 5 : 3,
                writeAt: write,
                documents: [.list, .otherList, .detail],
                hasNotModified: true
            )
            checker.check(3)
            #expect(checker.failures == [])
        }
    }

    @Test func `in long random histories no served value goes back`() {
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
            var events = (0..<Int.random(in: 4...8, using: &random)).map { _ in
                let sent = Int64.random(in: 0...9, using: &random)
                let document = [Document.list, .otherList, .detail].randomElement(using: &random) ?? .list
                let completed = Int64.random(in: sent...10, using: &random)
                return Event(document: document, sent: sent, completed: completed, value: 0)
            }
            events.sort { $0.completed < $1.completed }
            var known = Known()
            for index in events.indices {
                var event = events[index]
                let from = event.document == .detail ? event.sent : event.sent - setting.lag
                let value = setting.value(at: Int64.random(in: from...event.completed, using: &random))
                // No document goes back itself, except where two of its responses overlap.
                let earlier = events[..<index].filter { $0.document == event.document && $0.completed < event.sent }
                event.value = max(value, earlier.map(\.value).max() ?? 0)
                events[index] = event
                known.merge(Self.observed(event, at: index, setting), lag: setting.lag)
                let served = known.hit(after: event) ?? known.served
                #expect(served >= known.served, "\(changes) \(events[...index])")
                known.served = max(known.served, served)
            }
        }
    }

    @Test func `observations that do not overlap leave one state in whatever order they arrive`() {
        let setting = Setting(changes: [2, 5], lag: 0)
        let documents: [[Document]] = [
            [.detail, .detail, .detail, .detail], [.list, .otherList, .detail, .list],
            [.list, .list, .otherList, .list],
        ]
        func orders(_ events: [Event]) -> [[Event]] {
            events.isEmpty
                ? [[]]
                : events.indices.flatMap { index in
                    var rest = events
                    let first = rest.remove(at: index)
                    return orders(rest).map { [first] + $0 }
                }
        }
        for documents in documents {
            let events = zip([(0, 1), (2, 3), (4, 4), (5, 6)] as [(Int64, Int64)], documents).map { times, document in
                Event(document: document, sent: times.0, completed: times.1, value: setting.value(at: times.0))
            }
            for order in orders(events) {
                // The words of one document arrive in theirs.
                let isInOrder = Document.allCases.allSatisfy { document in
                    let own = order.filter { $0.document == document }.map(\.sent)
                    return document == .detail || own == own.sorted()
                }
                guard isInOrder else { continue }
                var known = Known()
                for event in order { known.merge(Self.observed(event, at: Int(event.sent), setting), lag: 0) }
                #expect(known.member?.value == 2, "\(order)")
                #expect(known.member?.clock.hi == 6, "\(order)")
                #expect(known.member?.source == 5, "\(order)")
                #expect(known.member?.doubt == nil, "\(order)")
            }
        }
    }
}
