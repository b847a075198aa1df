import Mapping
import TestSupport
import Testing

@testable import Store

/// What the store has of objects that a document only names.
struct RelatedObjectTests: WriteMarkFixtures {
    private static let one = BoundObject(model: "Issue", identity: "1")

    private func known(
        _ bench: Bench,
        _ name: BoundObject = one,
        principal: PrincipalID = .anonymous,
        context: String = "",
        selectedBy: String = ""
    ) async throws -> String? {
        let key = bench.key("/other", principal: principal, context: context)
        let found = try await bench.store.known([name], beside: key, selectedBy: selectedBy)
        return found.objects[name].map { String(decoding: $0.json, as: UTF8.self) }
    }

    @Test func `a related object has its newest shared members, and no local or undeclared ones`()
        async throws
    {
        let bench = try bench()
        let body = #"{"id":1,"score":3,"title":"a","x":1,"user":{"id":7,"login":"ada"},"labels":[{"id":"b"},{"id":2}]}"#
        try await bench.receive("/issues/1", body, issue)
        #expect(try await known(bench) == #"{"id":1,"labels":["b",2],"title":"a","user":7}"#)
        try await bench.receive("/issues", #"[{"id":1,"title":"b","number":5}]"#, issues, kind: .detail)
        #expect(try await known(bench) == #"{"id":1,"labels":["b",2],"number":5,"title":"b","user":7}"#)
        #expect(try await known(bench, BoundObject(model: "User", identity: "8")) == nil)
        await bench.store.close()
    }

    @Test func `a related object has the same principal, context and selection`() async throws {
        let bench = try bench()
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        try await bench.receive("/issues/1", #"{"id":1,"title":"a"}"#, issue)
        #expect(try await known(bench) == #"{"id":1,"title":"a"}"#)
        #expect(try await known(bench, principal: other) == nil)
        #expect(try await known(bench, context: "fr") == nil)
        #expect(try await known(bench, selectedBy: "fr") == nil)
        await bench.store.close()
    }

    @Test func `after a write without a body a related object is unknown until it is observed again`() async throws {
        let bench = try bench()
        try await bench.receive("/issues/1", #"{"id":1,"title":"a","number":5}"#, issue)
        try await bench.store.complete(write(bench, "/issues/1", bound: first))
        #expect(try await known(bench) == nil)
        try await bench.receive("/issues", #"[{"id":1,"title":"b"}]"#, issues)
        #expect(try await known(bench) == #"{"id":1,"title":"b"}"#)
        await bench.store.close()
    }

    @Test func `a deleted object is not shown as a related object`() async throws {
        let bench = try bench(.keep)
        try await bench.receive("/issues/1", #"{"id":1,"title":"a"}"#, issue)
        try await bench.store.complete(write(bench, "/issues/1", effect: .deleted, bound: first))
        #expect(try await known(bench) == nil)
        await bench.store.close()
    }

    @Test func `an object that overlapping responses disagree on is not shown as a related object`() async throws {
        let bench = try bench()
        // Both were asked for before either came.
        var one = bench.response("/issues/1", #"{"id":1,"title":"a"}"#, issue)
        var other = bench.response("/search", #"{"id":1,"title":"b"}"#, issue)
        other.start = one.start
        one.end = other.end
        _ = try await bench.store.receive(one)
        #expect(try await known(bench) == #"{"id":1,"title":"a"}"#)
        _ = try await bench.store.receive(other)
        #expect(try await known(bench) == nil)
        await bench.store.close()
    }

    @Test func `a related object that the store forgets counts as changed`() async throws {
        let bench = try Bench(maximumFileBytes: 4 << 20)
        try await bench.receive("/issues/1", #"{"id":1,"title":"a"}"#, issue)
        let found = try await bench.store.known([Self.one], beside: bench.key("/other"), selectedBy: "")
        let id = try #require(found.objects[Self.one]?.id)
        #expect(!bench.store.mayHaveChanged([id], since: found.sequence))
        let filler = String(repeating: "y", count: 3000)
        for number in 2..<2000 {
            try await bench.receive("/issues/\(number)", #"{"id":\#(number),"title":"\#(filler)"}"#, issue)
        }
        await bench.store.flush()
        #expect(try await known(bench) == nil)
        #expect(bench.store.mayHaveChanged([id], since: found.sequence))
        await bench.store.close()
    }
}
