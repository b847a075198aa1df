import Basics
import Logging
import Mapping
import Store
import Synchronization
import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import Proxy

/// What a machine announces, and the position that its responses have.
@Suite struct FleetSharingTests {
    /// A server that holds announcements back until the test lets them through.
    private final class Link: FleetLink {
        struct State {
            var position: FleetPosition? = FleetPosition(epoch: 1, entry: EntryID(1, 0))
            var announced: [FleetNews] = []
            var waiting: [CheckedContinuation<FleetPosition?, Never>] = []
            var released: [Bool] = []
            var shared: [SharedDocument] = []
        }
        let state = Mutex(State())

        func shares(_ upstream: UpstreamKey) -> Bool { true }
        func position(in upstream: UpstreamKey) -> FleetPosition? { state.withLock(\.position) }
        func clientPosition(in upstream: UpstreamKey) async -> FleetPosition? { position(in: upstream) }
        func followedSince(_ upstream: UpstreamKey) -> Int64? { 0 }
        func reach(_ position: FleetPosition, in upstream: UpstreamKey) async -> Bool { true }
        func find(_ key: SharedKey) async -> FleetFinding { .alone }
        func share(_ document: SharedDocument, at key: SharedKey, from position: FleetPosition) {
            state.withLock { $0.shared.append(document) }
        }
        func spend(_ expense: SharedExpense, of limit: SharedLimit) async -> SharedBudget { .alone }
        func release(_ key: SharedKey, isForNow: Bool) { state.withLock { $0.released.append(isForNow) } }
        func announce(_ news: FleetNews, in upstream: UpstreamKey) async -> FleetPosition? {
            await withCheckedContinuation { continuation in
                state.withLock {
                    $0.announced.append(news)
                    $0.waiting.append(continuation)
                }
            }
        }

        /// Lets the first announcement through.
        func append(at entry: FleetPosition?) async {
            while true {
                let waiter = state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
                if let waiter { return waiter.resume(returning: entry) }
                await Task.yield()
            }
        }
    }

    private static let news = FleetNews(.withdrawn(1), start: 1, end: 1)
    private static func at(_ entry: UInt64, epoch: UInt64 = 1) -> FleetPosition {
        FleetPosition(epoch: epoch, entry: EntryID(entry, 0))
    }

    @Test func `a machine's position is given once the announcements under way are done, and includes them`() async {
        let link = Link()
        let sharing = FleetSharing(link, log: Logger(label: "test"))
        #expect(await sharing.announcedPosition(in: "a") == Self.at(1))
        let first = sharing.begin(in: "a")
        let settled = Task { await sharing.announcedPosition(in: "a") }
        #expect(await sharing.announcedPosition(in: "b") == Self.at(1))
        let announcing = Task { await sharing.announce(Self.news, first) }
        await link.append(at: Self.at(7))
        #expect(await settled.value == Self.at(7))
        await announcing.value
        // One that says nothing ends, too; and the server may be away.
        sharing.end(sharing.begin(in: "a"))
        #expect(await sharing.announcedPosition(in: "a") == Self.at(7))
        link.state.withLock { $0.position = nil }
        #expect(await sharing.announcedPosition(in: "a") == nil)
        link.state.withLock { $0.position = Self.at(1, epoch: 2) }
        #expect(await sharing.announcedPosition(in: "a") == Self.at(1, epoch: 2))
    }

    @Test func `a position includes news that are still being applied`() async {
        let sharing = FleetSharing(Link(), log: Logger(label: "test"))
        sharing.applies(Self.at(5), in: "a")
        sharing.applies(Self.at(4), in: "a")
        #expect(await sharing.announcedPosition(in: "a") == Self.at(5))
    }

    @Test func `a fetch for the fleet shares its response, or tells those who wait that there is none`() async {
        let link = Link()
        let sharing = FleetSharing(link, log: Logger(label: "test"))
        let key = SharedKey(upstream: "a", context: "", url: "/", credentials: nil)
        let document = document([])
        func turn(isAwaited: Bool = true, _ use: (FleetFetch) async -> Void = { _ in }) async {
            await use(FleetFetch(sharing, key, isAwaited: isAwaited))
        }
        // It waits for what is announced, which the response shows.
        let announcement = sharing.begin(in: "a")
        let first = Task {
            await turn {
                await $0.share(document)
                $0.refuse()
            }
        }
        #expect(link.state.withLock { $0.shared }.isEmpty)
        sharing.end(announcement, at: Self.at(9))
        await first.value
        #expect(link.state.withLock { $0.released }.isEmpty)
        #expect(link.state.withLock { $0.shared.map(\.announced) } == [Self.at(9)])
        await turn()
        await turn { $0.refuse() }
        await turn(isAwaited: false) { $0.refuse() }
        #expect(link.state.withLock { $0.released } == [true, false])
        link.state.withLock { $0.position = nil }
        await turn { await $0.share(document) }
        #expect(link.state.withLock { $0.shared.count } == 1)
        #expect(link.state.withLock { $0.released } == [true, false, true])
    }

    @Test func `a write of another machine is overdue after its time, or if there are too many`() {
        var suspects = FleetSuspects()
        let start = ContinuousClock.now
        func begin(_ number: Int, at second: Int) {
            let invalidation = Invalidation(of: "x", paths: ["/\(number)"], at: 0)
            suspects.begin(UInt64(number), invalidation, in: "a", at: start + .seconds(second))
        }
        func overdue(at second: Int) -> [String] {
            suspects.takeOverdue(at: start + .seconds(second)).map { "\($0.upstream ?? "") \($0.paths.first ?? "")" }
        }
        #expect(suspects.nextEnd == nil && overdue(at: 1_000).isEmpty)
        for number in 1...3 { begin(number, at: number) }
        suspects.end(1)
        suspects.end(1)
        suspects.end(9)
        #expect(suspects.nextEnd == start + .seconds(62))
        #expect(overdue(at: 61).isEmpty)
        #expect(overdue(at: 62) == ["a /2"])
        #expect(overdue(at: 62).isEmpty)
        #expect(overdue(at: 63) == ["a /3"])
        #expect(suspects.nextEnd == nil)
        for number in 0..<FleetSuspects.countLimit { begin(number, at: 100) }
        #expect(overdue(at: 100).isEmpty)
        begin(FleetSuspects.countLimit, at: 100)
        #expect(overdue(at: 100) == ["a /0"])
        // Those that have ended take no room.
        for number in 10_000..<40_000 {
            begin(number, at: 100)
            suspects.end(UInt64(number))
        }
        #expect(overdue(at: 100).isEmpty)
    }

    // MARK: Positions

    @Test(
        arguments: [
            ([], nil), ([""], .position), (["api=3-5-7"], .from(.init(epoch: 3, entry: EntryID(5, 7)))),
            (["other=9-9-9, api=3-5-7 ,api=3-6-0"], .from(.init(epoch: 3, entry: EntryID(6, 0)))),
            (["other=9-9-9", ""], .position), (["a=b=1-2-3"], .position), (["api"], .unreadable),
            (["api=1-2"], .unreadable),
            (["api=1-2-3-4"], .unreadable), (["api=+1-2-3"], .unreadable),
            (["api=1-2-99999999999999999999"], .unreadable),
            (["api=3-5-7, ?"], .unreadable),
        ] as [([String], PositionField.Wish?)]
    )
    func `of several positions for an upstream the latest counts`(lines: [String], wish: PositionField.Wish?) {
        let fields = Fields(lines.map { Field("Larder-Position", $0) })
        #expect(PositionField.wish(fields, of: "api") == wish)
    }

    @Test func `a response has a field with its position, or Cache-Status says that the machine is alone`() {
        func added(_ position: FleetPosition?, _ status: String) -> Fields {
            var fields = Fields([Field("Cache-Status", "other; hit"), Field("Cache-Status", status)])
            PositionField.add(position, to: &fields, of: "api")
            return fields
        }
        #expect(added(Self.at(5, epoch: 3), "larder; hit").text("larder-position") == "api=3-5-0")
        for (before, after) in [
            ("larder; hit; ttl=5", "larder; hit; ttl=5; detail=alone"),
            ("larder; hit; detail=stale", "larder; hit; detail=stale+alone"),
            ("larder; detail=a; hit", "larder; detail=a+alone; hit"),
        ] {
            let fields = added(nil, before)
            #expect(fields.all("cache-status").map { String(decoding: $0, as: UTF8.self) } == ["other; hit", after])
            #expect(!fields.contains("larder-position"))
        }
    }

    // MARK: Shared responses

    private func document(_ fields: [(String, String)], status: Int = 200, variant: [UInt8]? = nil) -> SharedDocument {
        SharedDocument(
            status: status,
            head: Fields(fields.map { Field($0.0, $0.1) }).encoded,
            body: Array("{}".utf8),
            variant: variant ?? VarySelection.none.bytes,
            sent: 1_000_000_000,
            completed: 1_000_500_000,
            lifetime: 60,
            objects: []
        )
    }

    @Test func `another machine's response has the age of its arrival there`() throws {
        let upstream = try ProxyFixture.upstream()
        let request = ProxyFixture.request(of: upstream)
        let shared = document([("Cache-Control", "max-age=60"), ("Age", "5"), ("ETag", "\"x\"")])
        let response = try #require(CachedResponse(shared, to: request, now: 1_020, wall: 2_000))
        #expect(response.policy.age(at: 1_020) == 25 && response.policy.lifetime == 60)
        #expect(response.body == Array("{}".utf8) && response.fields.text("etag") == "\"x\"")
        #expect(!response.fields.contains("age"))
    }

    @Test func `another machine's response that this one would not store is not used`() throws {
        let upstream = try ProxyFixture.upstream()
        let request = ProxyFixture.request("GET", "/x", [("Accept-Language", "de")], of: upstream)
        let fresh = ("Cache-Control", "max-age=60")
        func isUsed(_ document: SharedDocument, for request: ProxyRequest) -> Bool {
            CachedResponse(document, to: request, now: 1_020, wall: 2_000) != nil
        }
        #expect(isUsed(document([fresh]), for: request))
        #expect(isUsed(document([fresh], status: 404), for: request))
        for status in [0, 101, 206, 304, 500, 1_000] {
            #expect(!isUsed(document([fresh], status: status), for: request), "\(status)")
        }
        #expect(!isUsed(document([("Cache-Control", "no-store")]), for: request))
        #expect(!isUsed(document([fresh, ("Vary", "*")]), for: request))
        // Which variant it is must be the same here.
        #expect(!isUsed(document([fresh, ("Vary", "Accept-Language")]), for: request))
        let german = try #require(VarySelection(.fields(["accept-language"]), request: request.message.fields))
        #expect(isUsed(document([fresh, ("Vary", "Accept-Language")], variant: german.bytes), for: request))
        let other = ProxyFixture.request("GET", "/x", [("Accept-Language", "fr")], of: upstream)
        #expect(!isUsed(document([fresh, ("Vary", "Accept-Language")], variant: german.bytes), for: other))
        #expect(!isUsed(document([fresh], variant: [1, 2, 3]), for: request))
        let noStore = ProxyFixture.request("GET", "/x", [("Cache-Control", "no-store")], of: upstream)
        #expect(!isUsed(document([fresh]), for: noStore))
        var reversed = document([fresh])
        reversed.completed = 0
        #expect(!isUsed(reversed, for: request))
        var garbage = document([fresh])
        garbage.head = [0, 255, 10, 58, 13]
        // A response without fields is one without an explicit lifetime.
        #expect(CachedResponse(garbage, to: request, now: 1_020, wall: 2_000)?.policy.lifetime ?? 0 == 0)
    }
}
