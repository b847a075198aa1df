import Testing

@testable import Store

/// Responses whose entity tags cover their bodies are found by URL, whoever's they are.
@Suite struct CoveredDocumentTests {
    private func receive(_ bench: Bench, _ url: String, _ body: String, of principal: PrincipalID, covered: Bool = true)
        async throws
    {
        var document = bench.response(url, body, principal: principal)
        document.findCoverage = { $0 == Array(body.utf8) && covered ? .received : nil }
        _ = try await bench.store.receive(document)
    }

    private func found(_ bench: Bench, _ url: String, context: String = "", upstream: UpstreamKey = "github")
        async throws
        -> String?
    {
        try await bench.store.firstCovered(ofURL: url, context: context, upstream: upstream) {
            String(decoding: $0.stored.body, as: UTF8.self)
        }
    }

    private func principal(_ bench: Bench, _ number: UInt8) async throws -> PrincipalID {
        try await bench.store.principal([UInt8](repeating: number, count: 32))
    }

    @Test func `the latest covered response of a URL and a context is found, and no other`() async throws {
        let bench = try Bench()
        let (one, two) = (try await principal(bench, 1), try await principal(bench, 2))
        #expect(try await found(bench, "/x") == nil)
        try await receive(bench, "/x", "first", of: one)
        try await receive(bench, "/x", "second", of: two)
        try await receive(bench, "/x?page=2", "another", of: one)
        try await receive(bench, "/x", "uncovered", of: .anonymous, covered: false)
        #expect(try await found(bench, "/x") == "second")
        #expect(try await found(bench, "/x", context: "accept=a") == nil)
        #expect(try await found(bench, "/x", upstream: "gitlab") == nil)
        // What the caller does not want is passed over.
        let other = try await bench.store.firstCovered(ofURL: "/x", context: "", upstream: "github") {
            $0.stored.body == Array("second".utf8) ? nil : String(decoding: $0.stored.body, as: UTF8.self)
        }
        #expect(other == "first")
        await bench.store.close()
    }

    @Test func `a search is short, however many responses a path has`() async throws {
        let bench = try Bench()
        let one = try await principal(bench, 1)
        try await receive(bench, "/x?old", "old", of: one)
        for page in 0..<ObjectStore.searchLimit - 1 { try await receive(bench, "/x?\(page)", "page", of: one) }
        #expect(try await found(bench, "/x?old") == "old")
        try await receive(bench, "/x?last", "page", of: one)
        #expect(try await found(bench, "/x?old") == nil)
        await bench.store.close()
    }

    @Test func `a response whose entity tag covers its body is no longer found once it is invalidated`() async throws {
        let bench = try Bench()
        try await receive(bench, "/x", "first", of: try await principal(bench, 1))
        let id = try #require(
            try await bench.store.firstCovered(ofURL: "/x", context: "", upstream: "github") { $0.stored.id }
        )
        #expect(try await bench.store.covered(id)?.stored.body == Array("first".utf8))
        try await bench.store.removePaths(of: Invalidation(of: "github", paths: ["/x"], at: bench.store.clock.now()))
        #expect(try await bench.store.covered(id)?.stored.body == nil)
        #expect(try await found(bench, "/x") == nil)
        await bench.store.close()
    }
}
