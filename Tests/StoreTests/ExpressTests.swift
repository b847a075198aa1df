import Mapping
import Store
import Testing

struct ExpressTests {
    @Test func `an invalidation that overtakes what is being taken in holds for it too`() async throws {
        let bench = try Bench { $0.queueLimit = 10_000 }
        let title = String(repeating: "t", count: 500)
        let list = "[" + (0..<200).map { #"{"id":\#($0),"title":"\#(title)"}"# }.joined(separator: ",") + "]"
        let count = 400
        for number in 0..<count {
            let document = bench.answer("/issues?page=\(number)", list, issues)
            bench.store.receive(document) { _ in }
        }
        let suspect = try await bench.store.markSuspect(upstream: "github", urls: ["/issues"])
        // What was handed over before an invalidation is not there after it, whichever was taken in first.
        try await bench.store.invalidate([InvalidationTarget(upstream: "github", path: "/issues")], settle: suspect)
        await bench.store.flush()
        #expect(try await bench.document("/issues?page=0") == nil)
        #expect(try await bench.document("/issues?page=\(count - 1)") == nil)
        await bench.store.close()
    }
}
