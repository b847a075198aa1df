import Mapping
import Synchronization
import TestSupport
import Testing

@testable import Store

/// Writes do not wait for queued responses.
@Suite(.scripts) struct ExpressTests {
    private static let title = String(repeating: "t", count: 20)
    private static let pages = 60

    /// Queues dozens of lists of as many issues; returns the count of those that have been stored.
    ///
    /// The writer waits before the first of them until something is queued that goes ahead.
    ///
    /// - Parameter end: until it is open, the writer waits for the same after each list, too.
    private func flood(_ bench: Bench, until end: Gate? = nil) async -> Counter {
        let (counter, hasBegun) = (Counter(), Gate())
        bench.store.receive(bench.response("/first", "[]", issues)) { _ in
            hasBegun.open()
            _ = eventually { bench.store.core.mailbox.hasExpress }
        }
        await hasBegun.waitAsync()
        for page in 0..<Self.pages {
            let list = (0..<60).map {
                #"{"id":\#($0),"title":"\#(page) \#(Self.title)","user":{"id":7,"login":"ada"}}"#
            }
            let document = bench.response("/issues?page=\(page)", "[\(list.joined(separator: ","))]", issues)
            bench.store.receive(document) { _ in
                if let end { _ = eventually { bench.store.core.mailbox.hasExpress || end.isOpenNow } }
                counter.add()
            }
        }
        return counter
    }

    final class Counter: Sendable {
        private let count = Mutex(0)
        var value: Int { count.withLock { $0 } }
        func add() { count.withLock { $0 += 1 } }
    }

    private func bench() throws -> Bench { try Bench { $0.queueLimit = 10_000 } }

    /// A write to a path, with a response a moment from now.
    private func write(_ bench: Bench, _ path: String, bound: BoundObject? = nil, telling body: String? = nil)
        -> CompletedWrite
    {
        bench.time.advance(1_000_000)
        let end = bench.store.clock.now()
        var write = CompletedWrite(
            upstream: "github",
            principal: .anonymous,
            context: "",
            path: path,
            time: end,
            bound: bound
        )
        write.paths = [path]
        write.observation = body.map {
            ReceivedObservation(
                body: Array($0.utf8),
                start: end - 1000,
                rule: path.hasPrefix("/users") ? user : issue
            )
        }
        return write
    }

    private func isOutdated(_ bench: Bench, _ url: String) async throws -> Bool {
        guard case .outdated = try await bench.document(url)?.form else { return false }
        return true
    }

    @Test func `an invalidation that overtakes queued responses applies to them, too`() async throws {
        let bench = try bench()
        let end = Gate()
        let flood = await flood(bench, until: end)
        let suspect = try await bench.store.markSuspect(Invalidation(of: "github", paths: ["/issues"], at: 0))
        var change = write(bench, "/issues")
        change.suspect = suspect
        // What was queued before an invalidation is not stored after it, in whichever order they were done.
        try await bench.store.complete(change)
        #expect(flood.value < Self.pages)
        end.open()
        await bench.store.flush()
        #expect(try await bench.document("/issues?page=0") == nil)
        #expect(try await bench.document("/issues?page=\(Self.pages - 1)") == nil)
        await bench.store.close()
    }

    @Test func `lists that were queued before a write show what its response showed`()
        async throws
    {
        let bench = try bench()
        let end = Gate()
        let flood = await flood(bench, until: end)
        let change = write(bench, "/issues/7", telling: #"{"id":7,"title":"new","user":{"id":7,"login":"bela"}}"#)
        try await bench.store.complete(change)
        #expect(flood.value < Self.pages)
        end.open()
        let after = try await bench.store.objects(ObjectQuery(model: "Issue", identity: "7")).rows
        #expect(after.map { String(decoding: $0.json, as: UTF8.self) }.first?.contains(#""new""#) == true)
        await bench.store.flush()
        #expect(flood.value == Self.pages)
        for page in [0, Self.pages / 2, Self.pages - 1] {
            let body = try #require(try await bench.body("/issues?page=\(page)"))
            #expect(body.contains(#"{"id":7,"title":"new","user":{"id":7,"login":"bela"}}"#))
            // Among lists the latest counts.
            #expect(body.contains(#"{"id":8,"title":"\#(Self.pages - 1) "#))
            #expect(!body.contains("ada"))
        }
        await bench.store.close()
    }

    @Test func `a write without a body makes earlier responses stale that are stored after it`() async throws {
        let bench = try bench()
        let end = Gate()
        let flood = await flood(bench, until: end)
        let change = write(bench, "/issues/7", bound: BoundObject(model: "Issue", identity: "7"))
        try await bench.store.complete(change)
        #expect(flood.value < Self.pages)
        end.open()
        await bench.store.flush()
        #expect(try await isOutdated(bench, "/issues?page=0"))
        #expect(try await isOutdated(bench, "/issues?page=\(Self.pages - 1)"))
        await bench.store.close()
    }

    @Test func `a write waits for a queued response that may show which object was written to`() async throws {
        let bench = try bench()
        // The user's key was never observed, but an object of that number is shown already.
        try await bench.receive("/early", #"[{"id":1001,"title":"a","user":{"id":7}}]"#, issues)
        try await bench.receive("/other", #"[{"id":1000,"title":"a","user":{"id":9}}]"#, issues)
        let flood = await flood(bench)
        bench.store.receive(bench.response("/users/9", #"{"id":9,"login":"bela"}"#, user)) { _ in flood.add() }
        try await bench.store.complete(write(bench, "/users/bela", bound: BoundObject(model: "User", keys: ["bela"])))
        #expect(flood.value == Self.pages + 1)
        #expect(try await isOutdated(bench, "/other"))
        #expect(try await !isOutdated(bench, "/early"))
        await bench.store.close()
    }

    @Test func `the response at a write's path shows which object it names, even if it is stored after the write`()
        async throws
    {
        let bench = try bench()
        try await bench.receive("/early", #"[{"id":1001,"title":"a","user":{"id":7}}]"#, issues)
        try await bench.receive("/others", #"[{"id":2,"title":"b","user":{"id":8}}]"#, issues)
        bench.store.receive(bench.response("/me", #"{"id":7,"login":"ada"}"#, user)) { _ in }
        // It waits for that one.
        try await bench.store.complete(write(bench, "/me"))
        #expect(try await isOutdated(bench, "/early"))
        #expect(try await bench.document("/me") == nil)
        // One that is still on its way cannot be waited for.
        let slow = bench.response("/you", #"{"id":8,"login":"bela"}"#, user)
        try await bench.store.complete(write(bench, "/you"))
        #expect(try await bench.document("/others")?.form == .asReceived)
        #expect(try await bench.store.receive(slow).document == nil)
        #expect(try await isOutdated(bench, "/others"))
        await bench.store.close()
    }

    @Test(arguments: [true, false])
    func `a response requested after a write's response is stored, although the write is committed later`(
        isPattern: Bool
    ) async throws {
        let bench = try bench()
        let early = bench.response("/issues/7", #"{"id":7,"title":"early"}"#, issue)
        var change = write(bench, isPattern ? "/users/7" : "/issues/7")
        if isPattern { change.patterns = [InvalidationPattern(base: "", pattern: try RoutePattern("issues/*"))] }
        bench.time.advance(1000)
        let late = bench.response("/issues/7", #"{"id":7,"title":"late"}"#, issue)
        bench.time.advance(1000)
        try await bench.store.complete(change)
        bench.time.advance(1000)
        let receipt = try await bench.store.receive(late)
        #expect(receipt.document != nil && receipt.isObserved)
        let refused = try await bench.store.receive(early)
        #expect(refused.document == nil && !refused.isObserved)
        #expect(try await bench.body("/issues/7") == #"{"id":7,"title":"late"}"#)
        await bench.store.close()
    }

    @Test func `a response that was queued before a write to its path is still observed`() async throws {
        let bench = try bench()
        try await bench.receive("/early", #"[{"id":8,"title":"old"}]"#, issues)
        // Longer ago than a list may lag.
        bench.time.advance(60_000_000)
        let end = Gate()
        let flood = await flood(bench, until: end)
        try await bench.store.complete(write(bench, "/issues", telling: #"{"id":1000,"title":"new"}"#))
        #expect(flood.value < Self.pages)
        end.open()
        await bench.store.flush()
        #expect(try await bench.document("/issues?page=3") == nil)
        #expect(try await bench.body("/early")?.contains("\(Self.pages - 1) ttt") == true)
        await bench.store.close()
    }

    @Test func `an object that was not found makes lists that were queued earlier outdated`() async throws {
        let bench = try bench()
        let end = Gate()
        let flood = await flood(bench, until: end)
        bench.time.advance(1_000_000)
        let absence = ObservedAbsence(
            key: bench.key("/issues/7"),
            bound: BoundObject(model: "Issue", identity: "7"),
            start: bench.store.clock.now()
        )
        try await bench.store.commit(absence)
        #expect(flood.value < Self.pages)
        end.open()
        await bench.store.flush()
        #expect(try await isOutdated(bench, "/issues?page=0"))
        #expect(try await isOutdated(bench, "/issues?page=\(Self.pages - 1)"))
        await bench.store.close()
    }

    @Test func `disagreements in a write's response are warned of`() async throws {
        let bench = try bench()
        let body =
            #"{"id":7,"title":"new","user":{"id":1,"login":"ada"},"labels":[{"id":2,"name":"x"},{"id":2,"name":"y"}]}"#
        try await bench.store.complete(write(bench, "/issues/7", telling: body))
        let warnings = try await bench.store.warnings(limit: 10).rows
        #expect(warnings.map(\.kind) == ["disagreement"])
        #expect(warnings.first?.subject == "Label.name")
        await bench.store.close()
    }
}
