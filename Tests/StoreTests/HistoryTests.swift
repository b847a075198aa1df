import Foundation
import Mapping
import TestSupport
import Testing

@testable import Store

/// Law 3 over every short history of one object: lists, details, embedded stubs, writes, 304s and 404s, one after the other
/// or overlapping, within the lag of lists or after it, with modification times or without.
///
/// A history is checked against the truth: no document of the object shows a state that never was, none shows an older one
/// than any showed before, unless it goes back itself, own writes and deletions are never forgotten, and in the end the truth is settled. Histories with
/// the same times run side by side in one store, each on an object of its own.
struct HistoryTests {
    private static let lag: Int64 = 30_000_000

    /// What happens in one step.
    private enum Kind: CaseIterable { case list, detail, stub, write, renewal, absence }

    private struct Event: CustomStringConvertible {
        let kind: Kind
        /// Whether a response shows what was true at the earliest instant that it may show, rather than at the latest.
        let isOld: Bool

        var description: String { isOld ? "old \(kind)" : "\(kind)" }
    }

    /// When a step takes place, and whether the object changes before its response is made.
    private struct Moment: CustomStringConvertible {
        enum Timing: CaseIterable { case soon, afterLag, overlapping }

        let timing: Timing
        let changes: Bool

        var description: String { changes ? "\(timing) with a change" : "\(timing)" }
    }

    /// One object, and what readers have seen of it.
    private final class History: @unchecked Sendable {  // One task at a time uses it.
        let id: Int
        let events: [Event]
        /// Its states and their beginnings; nil while it is deleted.
        var truth: [(since: Int64, state: Int?)] = [(.min, 0)]
        /// The newest state that was served from the store, or is known by a write or a deletion.
        var seen = 0
        /// What each document's responses showed, and when each was complete.
        var words: [String: [(state: Int, end: Int64)]] = [:]
        var failure: String?

        init(_ id: Int, _ events: [Event]) { (self.id, self.events) = (id, events) }

        var last: Int { truth.compactMap(\.state).last ?? 0 }

        func change(at time: Int64) { truth.append((time, last + 1)) }

        func state(at time: Int64) -> Int? { truth.last { $0.since <= time }?.state ?? nil }
    }

    private struct Setup {
        let bench: Bench
        let isStamped: Bool

        init(isStamped: Bool) throws {
            self.isStamped = isStamped
            var user = ModelDeclaration(
                name: "User",
                identity: ["id"],
                properties: [PropertyDeclaration(name: "name", from: "name")]
            )
            if isStamped { user.modified = "at" }
            let issue = ModelDeclaration(
                name: "Issue",
                identity: ["id"],
                properties: [PropertyDeclaration(name: "user", from: "user", relation: .one("User"))]
            )
            let models = try Models([user, issue])
            bench = try Bench { configuration in
                configuration.models = ["github": models]
                configuration.lag = Lag(lists: HistoryTests.lag)
            }
        }

        /// Lets some time pass, then a second: the interval of the next step.
        func nextInterval(after pause: Int64) -> (start: Int64, end: Int64) {
            bench.time.advance(pause)
            let start = bench.store.clock.now()
            bench.time.advance(1_000_000)
            return (start, bench.store.clock.now())
        }

        func user(_ id: Int, _ state: Int, isStub: Bool = false) -> String {
            let at = isStamped && !isStub ? #","at":"2026-01-01T00:00:\#(state < 10 ? "0" : "")\#(state)Z""# : ""
            return #"{"id":\#(id),"name":"v\#(state)"\#(at)}"#
        }
    }

    private static func urls(_ id: Int) -> [String] { ["/users?x=\(id)", "/users/\(id)", "/issues/\(id)"] }

    /// Does one step of a history within an interval.
    private static func step(
        _ history: History,
        _ event: Event,
        _ moment: Moment,
        from start: Int64,
        to end: Int64,
        in setup: Setup
    ) async throws {
        let (bench, id) = (setup.bench, history.id)
        let urls = urls(id)
        // Others change it after the request has left and before the response is made.
        if moment.changes, event.kind != .write { history.change(at: start + (end - start) / 2) }
        func received(_ url: String, _ body: String, _ rule: BodyRule, _ kind: Observation.Kind) -> ReceivedDocument {
            ReceivedDocument(
                key: bench.key(url),
                body: Array(body.utf8),
                start: start,
                end: end,
                kind: kind,
                rule: rule
            )
        }
        switch event.kind {
        case .list, .detail, .stub:
            let earliest = event.kind == .detail ? start : start - lag
            guard var state = history.state(at: event.isOld ? earliest : end) else { return }
            let url = urls[event.kind == .list ? 0 : event.kind == .detail ? 1 : 2]
            // No document goes back itself, except where two of its responses overlap.
            let earlier = history.words[url, default: []].filter { $0.end < start }
            state = max(state, earlier.map(\.state).max() ?? 0)
            history.words[url, default: []].append((state, end))
            switch event.kind {
            case .list: _ = try await bench.store.receive(received(urls[0], "[\(setup.user(id, state))]", users, .list))
            case .detail: _ = try await bench.store.receive(received(urls[1], setup.user(id, state), user, .detail))
            default:
                let body = #"{"id":\#(id),"user":\#(setup.user(id, state, isStub: true))}"#
                _ = try await bench.store.receive(received(urls[2], body, issue, .detail))
            }
        case .renewal:
            // A 304 says that the document as received is still true.
            guard let document = try await bench.document(urls[1]), document.form == .asReceived,
                let state = history.state(at: event.isOld ? start : end), shown(document) == state
            else { return }
            _ = try await bench.store.freshen(document.id, head: [], policy: [1], observedFrom: start, observedTo: end)
        case .write:
            history.change(at: start + (end - start) / 2)
            let state = history.last
            var write = CompletedWrite(
                upstream: "github",
                principal: .anonymous,
                context: "",
                path: urls[1],
                time: end,
                bound: BoundObject(model: "User", identity: "\(id)")
            )
            write.observation = ReceivedObservation(
                body: Array(setup.user(id, state).utf8),
                start: start,
                rule: user
            )
            write.paths = [urls[1]]
            try await bench.store.complete(write)
            history.seen = max(history.seen, state)
        case .absence:
            history.truth.append((start, nil))
            let bound = BoundObject(model: "User", identity: "\(id)")
            try await bench.store.commit(ObservedAbsence(key: bench.key(urls[1]), bound: bound, start: start))
            history.seen = max(history.seen, history.last + 1)
            // It is created again afterwards.
            history.change(at: end)
        }
    }

    private static func shown(_ document: StoredDocument) -> Int? {
        String(decoding: document.body, as: UTF8.self).firstMatch(of: /"v([0-9]+)"/).flatMap { Int($0.1) }
    }

    /// Checks all documents that could be served now.
    private static func check(_ history: History, in setup: Setup, after events: ArraySlice<Event>) async throws {
        for url in urls(history.id) {
            guard let document = try await setup.bench.document(url) else { continue }
            if case .outdated = document.form { continue }
            guard let state = shown(document) else { continue }
            if state < history.seen {
                history.failure =
                    history.failure
                    ?? "\(Array(events)): \(url) shows \(state) after \(history.seen)"
            }
            if state > history.last { history.failure = "\(url) shows \(state), which never was" }
            history.seen = max(history.seen, state)
        }
    }

    /// Runs all histories with these times; returns the failures.
    private static func failures(_ moments: [Moment], _ all: [[Event]], isStamped: Bool) async throws -> [String] {
        let setup = try Setup(isStamped: isStamped)
        let histories = all.enumerated().map { History($0.offset + 1, $0.element) }
        var last = setup.bench.store.clock.now()
        for (index, moment) in moments.enumerated() {
            let next = setup.nextInterval(after: moment.timing == .afterLag ? 2 * lag : 1_000_000)
            let start = moment.timing == .overlapping ? last : next.start
            last = start + 500_000
            try await inParallel(histories) { history in
                try await step(history, history.events[index], moment, from: start, to: next.end, in: setup)
                try await check(history, in: setup, after: history.events[...index])
            }
        }
        // After reads of everything that overlap with nothing, the truth is settled.
        for _ in 0..<2 {
            let (start, end) = setup.nextInterval(after: 2 * lag)
            try await inParallel(histories) { history in
                let calm = Moment(timing: .afterLag, changes: false)
                for kind in [Kind.list, .detail, .stub] {
                    let event = Event(kind: kind, isOld: false)
                    try await step(history, event, calm, from: start, to: end, in: setup)
                }
            }
        }
        try await inParallel(histories) { history in
            try await check(history, in: setup, after: history.events[...])
            for url in urls(history.id) where history.failure == nil {
                let document = try await setup.bench.document(url)
                if document.flatMap(shown) != history.last || document?.doubts != [] {
                    history.failure = "\(history.events): \(url) is not settled in the end"
                }
            }
        }
        await setup.bench.store.close()
        return histories.compactMap(\.failure).prefix(3).map { "\(moments) \($0)" }
    }

    private static func inParallel(_ histories: [History], _ work: @escaping @Sendable (History) async throws -> Void)
        async throws
    {
        try await withThrowingTaskGroup { group in
            for part in 0..<16 {
                group.addTask {
                    for index in stride(from: part, to: histories.count, by: 16) { try await work(histories[index]) }
                }
            }
            try await group.waitForAll()
        }
    }

    private static func sequences<Element>(of elements: [Element], _ count: Int) -> [[Element]] {
        count == 0 ? [[]] : sequences(of: elements, count - 1).flatMap { head in elements.map { head + [$0] } }
    }

    private static let events = Kind.allCases.flatMap { kind in
        // What a write and a 404 show is true at once.
        (kind == .write || kind == .absence ? [false] : [false, true]).map { Event(kind: kind, isOld: $0) }
    }

    /// All times of so many steps; the time of the first one makes no difference.
    private static func times(_ count: Int) -> [[Moment]] {
        sequences(of: moments, count).filter { $0[0].timing == .soon }
    }

    private static let moments = Moment.Timing.allCases.flatMap { timing in
        [false, true].map { Moment(timing: timing, changes: $0) }
    }

    /// With `LARDER_THOROUGH` set, every history of three steps, which takes many minutes, and more of the longer ones.
    private static let isThorough = getenv("LARDER_THOROUGH") != nil

    @Test(arguments: [false, true])
    func `in every history of two steps no value goes back, and all are settled in the end`(isStamped: Bool)
        async throws
    {
        for moments in Self.times(2) {
            let found = try await Self.failures(moments, Self.sequences(of: Self.events, 2), isStamped: isStamped)
            #expect(found == [])
        }
    }

    @Test(arguments: [3, 4, 5], [false, true])
    func `in longer histories no value goes back, and all are settled in the end`(length: Int, isStamped: Bool)
        async throws
    {
        var random = SeededGenerator(seed: UInt64(length) * 2 + (isStamped ? 1 : 0))
        let isWhole = Self.isThorough && length == 3
        let patterns = Self.times(3)
        for round in 0..<(isWhole ? patterns.count : Self.isThorough ? 500 : 5) {
            let moments =
                isWhole ? patterns[round] : (0..<length).map { _ in Self.moments.randomElement(using: &random)! }
            let histories =
                isWhole
                ? Self.sequences(of: Self.events, 3)
                : (0..<200).map { _ in (0..<length).map { _ in Self.events.randomElement(using: &random)! } }
            let found = try await Self.failures(moments, histories, isStamped: isStamped)
            #expect(found == [])
        }
    }
}
