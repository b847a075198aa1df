import Glibc
import Testing

@testable import Mapping

/// One answer that shows the object: everything about it that law 3 asks for.
private struct Sight: CustomStringConvertible {
    var kind: Observation.Kind = .detail
    var start: Int64
    var end: Int64
    /// What it shows: nil is absent.
    var value: String?
    var title: String?
    /// The raw JSON of `updated_at`; nil is absent.
    var modified: String?

    var description: String { "\(kind)[\(start),\(end)]\(body)" }

    var body: String {
        let members = [("value", value), ("title", title), ("updated_at", modified)]
        return "{\"id\":1" + members.compactMap { name, json in json.map { ",\"\(name)\":\($0)" } }.joined() + "}"
    }

    func contribution(_ sequence: Int64) -> Contribution {
        Contribution(
            observation: Observation(sequence: sequence, start: start, end: end, kind: kind),
            version: sequence,
            payload: Array(body.utf8)
        )
    }
}

/// What law 3 says is known of a member, told plainly and without regard to cost: by all answers that ever came.
private struct PlainLaw {
    let lag: Int64

    func known(_ member: KeyPath<Sight, String?>, of history: [Sight]) -> String {
        // Who does not mention it says nothing.
        var sights = history.filter { $0[keyPath: member] != nil }
        // `modified` decides before any clock.
        sights = sights.filter { sight in !sights.contains { Self.isModifiedLater($0, than: sight) } }
        // A write is as new as its answer, a read as old as its request.
        if let write = sights.filter({ $0.kind == .write }).map(\.end).max() {
            let reads = sights.filter { $0.kind != .write && $0.start >= write + ($0.kind == .list ? lag : 0) }
            sights = reads.isEmpty ? sights.filter { $0.kind == .write && $0.end == write } : reads
        }
        // Of reads, those count that none is wholly later than; a list may lag behind a detail.
        if sights.allSatisfy({ $0.kind != .write }) {
            sights = sights.filter { sight in !sights.contains { isLater($0, than: sight) } }
        }
        let values = Set(sights.compactMap { $0[keyPath: member] })
        return values.count == 1 ? values.first ?? "" : values.isEmpty ? "unknown" : "disputed"
    }

    private func isLater(_ read: Sight, than other: Sight) -> Bool {
        if read.kind == .list, other.kind == .detail { return read.start >= other.end + lag && isApart(read, other) }
        if read.kind == .detail, other.kind == .list, other.start >= read.end, other.start < read.end + lag {
            return true
        }
        return isApart(read, other)
    }

    private func isApart(_ later: Sight, _ earlier: Sight) -> Bool {
        later.start >= earlier.end && !(earlier.start >= later.end)
    }

    /// The dates of these histories sort as text; numbers are single digits.
    private static func isModifiedLater(_ sight: Sight, than other: Sight) -> Bool {
        guard let mine = sight.modified, let theirs = other.modified, isTime(mine), isTime(theirs) else { return false }
        return (mine.first == "\"") == (theirs.first == "\"") && mine > theirs
    }

    private static func isTime(_ json: String) -> Bool {
        json.hasPrefix("\"20") || json.first.map { $0.isNumber } ?? false
    }
}

/// Every short history, in every order of arrival, against the plain law.
@Suite struct OrderOfKnowledgeTests {
    /// One check of many, with the models and the time that lists lag.
    private struct Checker {
        let models: Models
        let lag: Int64
        private(set) var failures: [String] = []
        private(set) var histories = 0

        init(lag: Int64 = 0) throws {
            self.lag = lag
            models = try Models([
                ModelDeclaration(
                    name: "Dated",
                    identity: ["id"],
                    properties: [Tracker.property("value"), Tracker.property("title")],
                    modified: "updated_at"
                )
            ])
        }

        /// Takes in a history in every order, sharing what orders have in common.
        mutating func check(_ history: [Sight]) {
            histories += 1
            descend(history, arrived: [], ObjectState(), ["unknown", "unknown"])
        }

        private mutating func descend(_ history: [Sight], arrived: [Int], _ state: ObjectState, _ before: [String]) {
            guard failures.count < 5 else { return }
            if arrived.count == history.count { return checkEnd(history, arrived, state, before) }
            for next in history.indices where !arrived.contains(next) {
                var state = state
                let sight = history[next].contribution(Int64(next + 1))
                let isChanged = state.merge(sight, model: "Dated", models: models, lag: lag)
                let order = arrived + [next]
                let known = known(state)
                compare(order.map { history[$0] }, known)
                // The date itself is a member, too.
                if isChanged != (known != before), history[next].modified == nil, !isFirst(order) {
                    failures.append("\(order.map { history[$0] }): said to have changed: \(isChanged)")
                }
                descend(history, arrived: order, state, known)
            }
        }

        /// The first answer always tells of something new: the object.
        private func isFirst(_ order: [Int]) -> Bool { order.count == 1 }

        /// What is known after these, in this order, is what the law says of all of them.
        private mutating func compare(_ arrived: [Sight], _ known: [String]) {
            let law = PlainLaw(lag: lag)
            let expected = [law.known(\.value, of: arrived), law.known(\.title, of: arrived)]
            for (known, expected) in zip(known, expected) where known != expected {
                if known == "disputed" || expected == "disputed", overlap(arrived) { continue }
                failures.append("\(arrived): \(known) instead of \(expected)")
            }
        }

        /// Whether a list overlapped with a detail that came after another one.
        private func overlap(_ history: [Sight]) -> Bool {
            history.contains { list in
                list.kind == .list
                    && history.contains { $0.kind == .detail && $0.start < list.end && list.start < $0.end }
            }
        }

        private func known(_ state: ObjectState) -> [String] {
            guard let model = models.index(of: "Dated") else { return [] }
            let resolved = state.resolved(model: model, models: models, lag: lag)
            return ["value", "title"].map { member in
                switch resolved[MemberPath([member])] {
                case .value(let member): text(Array(member.value.bytes))
                case .disputed: "disputed"
                case nil: "unknown"
                }
            }
        }

        /// Each answer shows what is known, where it shows the member at all, and its own where nobody knows better.
        private mutating func checkEnd(
            _ history: [Sight],
            _ arrived: [Int],
            _ state: ObjectState,
            _ known: [String]
        ) {
            guard arrived == Array(history.indices) else { return }
            var again = state
            for (index, sight) in history.enumerated() where !overlap(history) {
                let sight = sight.contribution(Int64(index + 1))
                if again.merge(sight, model: "Dated", models: models, lag: lag) || self.known(again) != known {
                    failures.append("\(history): taken in twice, \(history[index]) changes something")
                }
            }
            let composer = Composer(models: models, lag: lag)
            for sight in history {
                var shown = sight
                if sight.value != nil, known[0] != "disputed" { shown.value = known[0] }
                if sight.title != nil, known[1] != "disputed" { shown.title = known[1] }
                let composition = composer.compose(
                    skeleton: Reference.literal(ObjectName(model: "Dated", identity: "1")),
                    pins: [Array(sight.body.utf8)]
                ) { _ in state }
                let body =
                    switch composition {
                    case .unchanged: sight.body
                    case .composed(let body, _): text(body)
                    case .unknown(let reason): reason
                    }
                if body != shown.body { failures.append("\(history): \(sight) shows \(body)") }
            }
        }
    }

    /// Every choice of so many out of these, each as often as may be, the order aside.
    private static func choices(_ sights: [Sight], _ count: Int, _ body: ([Sight]) -> Void) {
        func choose(from first: Int, _ chosen: [Sight]) {
            if chosen.count == count { return body(chosen) }
            for index in first..<sights.count { choose(from: index, chosen + [sights[index]]) }
        }
        choose(from: 0, [])
    }

    /// With `LARDER_THOROUGH` set the histories are made of more answers, which takes minutes in a debug build.
    private static let isThorough = getenv("LARDER_THOROUGH") != nil

    private static let reads: [(Int64, Int64)] = [(0, 1), (1, 2), (0, 2), (1, 3), (2, 3), (0, 3)]

    /// The answers of a history with these values, by their position.
    private static func with(_ values: [Int], _ history: [Sight]) -> [Sight] {
        zip(history, values).map { sight, value in
            var sight = sight
            sight.value = "\(value)"
            return sight
        }
    }

    private static func sights(_ kind: Observation.Kind, _ count: Int) -> [Sight] {
        reads.prefix(count).map { Sight(kind: kind, start: $0.0, end: $0.1) }
    }

    private static func writes(_ ends: Int64...) -> [Sight] { ends.map { Sight(kind: .write, start: 0, end: $0) } }

    @Test func `three reads and writes at any times`() throws {
        var checker = try Checker()
        let sights =
            Self.isThorough ? Self.sights(.detail, 6) + Self.writes(1, 2, 3) : Self.sights(.detail, 5) + Self.writes(1)
        for values in Self.isThorough ? [[1, 2, 3], [1, 1, 2], [1, 2, 1], [2, 1, 1]] : [[1, 2, 3], [1, 2, 1]] {
            Self.choices(sights, 3) { checker.check(Self.with(values, $0)) }
        }
        #expect(checker.failures == [])
        #expect(checker.histories >= 112)
    }

    @Test func `four reads and writes at any times`() throws {
        var checker = try Checker()
        let sights = Self.sights(.detail, Self.isThorough ? 6 : 3) + Self.writes(1)
        Self.choices(sights, 4) { checker.check(Self.with([1, 2, 3, 2], $0)) }
        #expect(checker.failures == [])
        #expect(checker.histories >= 35)
    }

    @Test func `members that are absent, null or there`() throws {
        var checker = try Checker()
        let members: [(String?, String?)] = [("1", nil), ("null", nil), (nil, "1"), ("2", "2")]
        let times = [Sight(start: 0, end: 1), Sight(start: 0, end: 3), Sight(start: 2, end: 3)]
        let sights = times.prefix(Self.isThorough ? 3 : 2).flatMap { sight in
            members.map { Sight(start: sight.start, end: sight.end, value: $0.0, title: $0.1) }
        }
        let last = [Sight(start: 2, end: 3, value: "null"), Sight(kind: .write, start: 0, end: 1, value: "3")]
        Self.choices(sights + last, 3) { checker.check($0) }
        #expect(checker.failures == [])
        #expect(checker.histories >= 220)
    }

    @Test func `dates of modification that are equal, apart, of two kinds, unreadable or missing`() throws {
        var checker = try Checker()
        let dates: [String?] = [nil, "1", "2", #""2024-01-01T00:00:00Z""#, "\"soon\""]
        let times: [(Int64, Int64)] = Self.isThorough ? [(0, 1), (2, 3), (4, 5), (0, 5)] : [(0, 1), (2, 3)]
        let sights = times.enumerated().flatMap { index, time in
            dates.map { Sight(start: time.0, end: time.1, value: "\(index)", modified: $0) }
        }
        Self.choices(sights, 3) { checker.check($0) }
        #expect(checker.failures == [])
        #expect(checker.histories >= 220)
    }

    @Test func `four answers of which some say when the object was modified`() throws {
        var checker = try Checker()
        var sights = [
            Sight(start: 0, end: 1, value: "1", modified: "2"), Sight(start: 2, end: 3, value: "2"),
            Sight(start: 4, end: 5, value: "3", modified: "1"), Sight(start: 6, end: 7, value: "4", modified: "3"),
            Sight(start: 1, end: 6, value: "5"),
        ]
        if Self.isThorough {
            sights.append(Sight(kind: .write, start: 2, end: 4, value: "6"))
            sights.append(Sight(start: 3, end: 8, title: "7", modified: "2"))
        }
        for left in sights.indices {
            var history = sights
            history.remove(at: left)
            if history.count == 4 { checker.check(history) } else { Self.choices(history, 4) { checker.check($0) } }
        }
        #expect(checker.failures == [])
    }

    @Test(arguments: [0, 1, 2] as [Int64]) func `lists that lag behind writes and other lists`(lag: Int64) throws {
        var checker = try Checker(lag: lag)
        let sights =
            Self.isThorough ? Self.sights(.list, 6) + Self.writes(0, 1, 2) : Self.sights(.list, 5) + Self.writes(0)
        Self.choices(sights, 3) { checker.check(Self.with([1, 2, 3], $0)) }
        #expect(checker.failures == [])
    }

    /// A list that overlapped with a detail may be in dispute with it, though it is known to lag behind an earlier one.
    ///
    /// Which details there have been before the newest is not kept for the sake of such a list. It never overrides either.
    @Test(arguments: [0, 1, 2] as [Int64]) func `lists that lag behind details never override them`(lag: Int64) throws {
        var checker = try Checker(lag: lag)
        let count = Self.isThorough ? 6 : 3
        Self.choices(Self.sights(.list, count) + Self.sights(.detail, count), 3) {
            checker.check(Self.with([1, 2, 3], $0))
        }
        #expect(checker.failures == [])
    }
}
