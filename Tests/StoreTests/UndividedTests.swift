import Mapping
import TestSupport
import Testing

@testable import Store

/// Responses that contain more objects than are taken out of one.
@Suite struct UndividedTests {
    private static func list(_ count: Int) -> String {
        "[" + (0..<count).map { #"{"id":\#($0),"title":"t\#($0)"}"# }.joined(separator: ",") + "]"
    }

    private func bench() throws -> Bench { try Bench { $0.objectLimit = 10 } }

    private func write(to path: String, at time: Int64) -> CompletedWrite {
        CompletedWrite(upstream: "github", principal: .anonymous, context: "", path: path, time: time)
    }

    @Test func `a response with more objects than the limit is stored undivided`() async throws {
        let bench = try bench()
        let known = try await bench.receive("/issues?all", Self.list(10), issues)
        #expect(known.objects.count == 10 && known.warnings.isEmpty)
        let larger = try await bench.receive("/issues?more", Self.list(11), issues)
        #expect(larger.objects.isEmpty && larger.document != nil)
        #expect(larger.warnings.map(\.kind) == [.tooManyObjects])
        #expect(try await bench.body("/issues?more") == Self.list(11))
        #expect(try await bench.store.count().objects == 10)
    }

    @Test func `a write to the upstream removes undivided responses, also those requested before it`() async throws {
        let bench = try bench()
        let late = bench.response("/issues?late", Self.list(11), issues)
        try await bench.receive("/issues?more", Self.list(11), issues)
        try await bench.receive("/issues?few", Self.list(3), issues)
        bench.time.advance(1_000_000)
        try await bench.store.complete(write(to: "/elsewhere", at: bench.store.clock.now()))
        #expect(try await bench.body("/issues?more") == nil)
        #expect(try await bench.body("/issues?few") == Self.list(3))
        #expect(try await bench.store.receive(late).document == nil)
        #expect(try await bench.body("/issues?late") == nil)
        try await bench.receive("/issues?later", Self.list(11), issues)
        #expect(try await bench.body("/issues?later") == Self.list(11))
    }

    @Test func `a write that was under way when the daemon ended removes an undivided response`() async throws {
        let bench = try bench()
        try await bench.receive("/issues?more", Self.list(11), issues)
        _ = try await bench.store.markSuspect(Invalidation(of: "github", paths: ["/elsewhere"], at: 0))
        await bench.store.close()
        let again = try Bench(folder: bench.folder, time: bench.time) { $0.objectLimit = 10 }
        #expect(try await again.body("/issues?more") == nil)
    }

    @Test func `objects keyed by name count towards the limit of objects in a response`() async throws {
        let bench = try bench()
        let keyed = "{" + (0..<11).map { #""k\#($0)":{"id":\#($0)}"# }.joined(separator: ",") + "}"
        let receipt = try await bench.receive("/a", keyed, BodyRule(model: "Issue", arity: .keyed))
        #expect(receipt.warnings.map(\.kind) == [.tooManyObjects])
        #expect(try await bench.body("/a") == keyed)
    }
}
