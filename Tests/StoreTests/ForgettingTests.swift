import Mapping
import TestSupport
import Testing

@testable import Store

struct ForgettingTests {
    private func digest(_ number: Int) -> [UInt8] {
        (0..<32).map { UInt8(truncatingIfNeeded: number >> ($0 % 4 * 8)) }
    }

    @Test func `principals without data are forgotten, and their numbers are never reused`() async throws {
        let bench = try Bench { $0.unusedPrincipals = 40 }
        let owner = try await bench.store.principal(digest(1))
        try await bench.receive("/mine", "mine", principal: owner, context: "accept=a")
        var ids: Set<PrincipalID> = [owner]
        for number in 2...200 { ids.insert(try await bench.store.principal(digest(number))) }
        #expect(ids.count == 200)
        await bench.store.flush()
        #expect(Int(sqlite(bench.folder.file(), "SELECT count(*) FROM _principals")) ?? .max <= 60)
        // A principal that comes again is a new one, and sees nothing of another's.
        #expect(!ids.contains(try await bench.store.principal(digest(2))))
        #expect(try await bench.store.principal(digest(1)) == owner)
        let key = bench.key("/mine", principal: owner, context: "accept=a")
        #expect(try await bench.store.documents(at: key).count == 1)
        await bench.store.close()
    }

    @Test func `a principal's number is not reused while any of its data exists`() async throws {
        let folder = TemporaryFolder()
        let bench = try Bench(folder: folder) { $0.unusedPrincipals = 4 }
        var forgotten: PrincipalID = .nobody
        for number in 1...20 { forgotten = max(forgotten, try await bench.store.principal(digest(number))) }
        // A response that arrives when its principal may have been forgotten already.
        try await bench.receive("/late", "late", principal: forgotten)
        await bench.store.close()
        _ = alter(folder.file(), "DELETE FROM _principals WHERE id = \(forgotten)")
        let again = try Bench(folder: folder)
        #expect(try await again.store.principal(digest(99)) > forgotten)
        // What is there of one who is not can be seen and cleaned.
        #expect(try await again.store.list(DocumentListing()).rows.map(\.url) == ["/late"])
        #expect(try await again.store.clean(CleanFilter()).removed.documents == 1)
        #expect(sqlite(folder.file(), "SELECT count(*) FROM _bodies") == "0")
        await again.store.close()
    }

    @Test func `a response is not stored if its principal was forgotten while it was on its way`() async throws {
        let bench = try Bench { $0.unusedPrincipals = 4 }
        let forgotten = try await bench.store.principal(digest(1))
        try await bench.receive("/issues", #"[{"id":1,"title":"a"}]"#, issues)
        for number in 2...20 { _ = try await bench.store.principal(digest(number)) }
        await bench.store.flush()
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _principals WHERE id = \(forgotten)") == "0")
        let receipt = try await bench.receive("/mine", #"[{"id":2,"title":"b"}]"#, issues, principal: forgotten)
        #expect(receipt.document == nil && !receipt.isInMemoryOnly)
        // Its writes still have an effect for others.
        bench.time.advance(1_000_000)
        let now = bench.store.clock.now()
        var write = CompletedWrite(
            upstream: "github",
            principal: forgotten,
            context: "",
            path: "/issues/1",
            time: now,
            bound: BoundObject(model: "Issue", identity: "1")
        )
        write.observation = ReceivedObservation(
            body: Array(#"{"id":1,"title":"new"}"#.utf8),
            start: now - 1000,
            rule: issue
        )
        try await bench.store.complete(write)
        try await bench.store.commit(
            ObservedAbsence(key: bench.key("/issues/3", principal: forgotten), bound: nil, start: now)
        )
        guard case .outdated = try await bench.document("/issues")?.form else {
            Testing.Issue.record("what was written is not asked for")
            return
        }
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _scopes WHERE principal = \(forgotten)") == "0")
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _documents") == "1")
        await bench.store.close()
    }

    @Test func `no principal inherits the deletions of one that was forgotten`() async throws {
        let bench = try Bench { $0.unusedPrincipals = 4 }
        let one = try await bench.store.principal(digest(1))
        let list = #"[{"id":1,"title":"a"}]"#
        try await bench.store.commit(
            ObservedAbsence(
                key: bench.key("/issues/1", principal: one),
                bound: BoundObject(model: "Issue", identity: "1"),
                start: bench.store.clock.now()
            )
        )
        var other: PrincipalID = .nobody
        for number in 2...20 { other = try await bench.store.principal(digest(number)) }
        await bench.store.flush()
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _scopes") == "0")
        // Soon enough after the deletion for a list to count as lagging behind it.
        #expect(try await !bench.receive("/issues", list, issues, principal: other).isDirty)
        #expect(try await bench.document("/issues", principal: other)?.form == .asReceived)
        await bench.store.close()
    }
}
