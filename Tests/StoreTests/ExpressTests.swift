import Mapping
import Store
import Synchronization
import Testing

struct ExpressTests {
    @Test func `a write's mark does not wait for all that is being taken in`() async throws {
        let bench = try Bench { $0.queueLimit = 10_000 }
        let title = String(repeating: "t", count: 500)
        let list = "[" + (0..<200).map { #"{"id":\#($0),"title":"\#(title)"}"# }.joined(separator: ",") + "]"
        let committed = Atomic(0)
        let count = 400
        for number in 0..<count {
            let document = bench.answer("/issues?page=\(number)", list, issues)
            bench.store.receive(document) { _ in committed.add(1, ordering: .relaxed) }
        }
        let suspect = try await bench.store.markSuspect(upstream: "github", urls: ["/issues"])
        #expect(committed.load(ordering: .relaxed) < count)
        // What was handed over before an invalidation is not there after it, whichever was taken in first.
        try await bench.store.invalidate([InvalidationTarget(upstream: "github", path: "/issues")], settle: suspect)
        await bench.store.flush()
        #expect(try await bench.document("/issues?page=0") == nil)
        #expect(try await bench.document("/issues?page=\(count - 1)") == nil)
        await bench.store.close()
    }
}
