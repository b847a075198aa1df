import Foundation
import Mapping
import Synchronization
import TestSupport
import Testing

@testable import Store

struct StoreBoundsTests {
    /// Remembers the notices of a listener.
    final class Listener: ChangeListener {
        let changed = Mutex<[ObjectID]>([])
        let removed = Mutex<[Digest128]>([])

        func objectsChanged(_ objects: [ObjectID]) { changed.withLock { $0 += objects } }
        func documentsRemoved(_ keys: [Digest128]) { removed.withLock { $0 += keys } }
    }

    private let filler = String(repeating: "y", count: 3000)

    @Test func `the file stays within its bound, and the least recently used documents are evicted`() async throws {
        let maximum: Int64 = 4 << 20
        let bench = try Bench(maximumFileBytes: maximum)
        let listener = Listener()
        bench.store.setListener(listener)
        let favourite = try await bench.receive("/favourite", "keep me")
        for number in 0..<3000 {
            try await bench.receive("/issues/\(number)", #"{"id":\#(number),"title":"\#(filler)"}"#, issue)
            if number % 50 == 0, let id = favourite.document { bench.store.touchUsed([id]) }
            if number % 100 == 0 {
                let budget = bench.store.core.budget
                #expect(budget.fileBytes + budget.walBytes <= maximum)
            }
        }
        #expect(try await bench.body("/favourite") == "keep me")
        #expect(try await bench.body("/issues/2999") != nil)
        #expect(try await bench.body("/issues/0") == nil)
        // The last eviction may still be under way.
        await bench.store.flush()
        let count = try await bench.store.count()
        #expect(count.documents > 500)
        #expect(count.objects <= count.documents)
        #expect(listener.removed.withLock(\.count) == 3001 - count.documents)
        #expect(bench.store.statistics.evicted == Int64(3001 - count.documents))
        await bench.store.close()
        #expect(sqlite(bench.folder.file(), "PRAGMA integrity_check") == "ok")
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _versions") == "\(count.objects)")
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _observations") == "\(count.documents)")
    }

    @Test func `objects of a document outlive the eviction of other documents`() async throws {
        let bench = try Bench(maximumFileBytes: 4 << 20)
        let list = #"[{"id":0,"title":"zero"},{"id":1,"title":"one"}]"#
        let receipt = try await bench.receive("/list", list, issues)
        for number in 0..<2000 {
            try await bench.receive("/issues/\(number)", #"{"id":\#(number),"title":"\#(filler)"}"#, issue)
            if number % 50 == 0, let id = receipt.document { bench.store.touchUsed([id]) }
        }
        let document = try #require(try await bench.document("/list"))
        #expect(try await bench.store.received(document.id) == Array(list.utf8))
        await bench.store.close()
    }

    @Test func `a document too large for the store fails alone, and the store goes on`() async throws {
        let bench = try Bench(maximumFileBytes: 4 << 20)
        let huge = bench.response("/huge", String(repeating: "z", count: 6 << 20))
        let small = bench.response("/small", "1")
        let first = Task { try await bench.store.receive(huge) }
        let second = Task { try await bench.store.receive(small) }
        await #expect(throws: StoreError.self) { try await first.value }
        #expect(try await second.value.document != nil)
        #expect(bench.store.statistics.failures == 1)
        try await bench.receive("/after", "2")
        #expect(try await bench.body("/after") == "2")
        #expect(try await bench.body("/huge") == nil)
        await bench.store.close()
        #expect(sqlite(bench.folder.file(), "PRAGMA integrity_check") == "ok")
    }

    @Test func `callers wait for room in a full queue`() async throws {
        let bench = try Bench { $0.queueLimit = 4 }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<100 {
                let response = bench.response("/w/\(number)", "1")
                group.addTask {
                    let receipt = try await bench.store.receive(response)
                    #expect(receipt.document != nil)
                }
            }
            try await group.waitForAll()
        }
        // The last room is returned after the last completion.
        await bench.store.flush()
        #expect(bench.store.statistics.queued == 0)
        await bench.store.close()
    }

    @Test func `equal warnings are counted, and a limited number is kept`() async throws {
        let bench = try Bench()
        bench.store.warn(about: ["early"], "gone")
        await bench.store.flush()
        bench.time.advance(1000)
        bench.store.warn(about: (0..<1050).map { "\($0)" }, "m")
        bench.store.warn(about: ["7"], "again")
        await bench.store.flush()
        var rows: [StoredWarning] = []
        var next: Int64?
        repeat {
            let page = try await bench.store.warnings(limit: 300, after: next)
            rows += page.rows
            next = page.next
        } while next != nil
        #expect(rows.count == 1000)
        #expect(!rows.contains { $0.subject == "early" })
        #expect(rows.first { $0.subject == "7" }?.count == 2)
        await bench.store.close()
    }

    @Test func `the listener hears of changes before the caller goes on`() async throws {
        let bench = try Bench()
        let listener = Listener()
        bench.store.setListener(listener)
        let first = try await bench.receive("/issues", #"[{"id":1,"title":"old"},{"id":2}]"#, issues)
        listener.changed.withLock { $0 = [] }
        let second = try await bench.receive("/issues/1", #"{"id":1,"title":"new"}"#, issue)
        #expect(listener.changed.withLock { $0 } == second.objects)
        #expect(bench.store.mayHaveChanged(first.objects, since: first.sequence))
        #expect(!bench.store.mayHaveChanged(first.objects, since: second.sequence))
        listener.changed.withLock { $0 = [] }
        try await bench.receive("/issues/1", #"{"title":"n\u0065w","id":1.0}"#, issue)
        #expect(listener.changed.withLock { $0 }.isEmpty, "spelled differently is no change")
        await bench.store.close()
    }
}
