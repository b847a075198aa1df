import Mapping
import Store
import TestSupport

/// What the tests of writes and deletions have in common: a list of two issues, and writes to them.
protocol WriteMarkFixtures {}

extension WriteMarkFixtures {
    static var list: String { #"[{"id":1,"title":"a"}, {"id":2,"title":"b"}]"# }

    func bench(
        _ policy: DeletionPolicy = .stale,
        folder: TemporaryFolder = TemporaryFolder(),
        time: ManualTime = ManualTime()
    ) throws -> Bench {
        try Bench(folder: folder, time: time, onDelete: policy)
    }

    /// A write that ends a second from now.
    func write(
        _ bench: Bench,
        _ path: String,
        effect: CompletedWrite.Effect = .changed,
        bound: BoundObject? = nil,
        response: String? = nil,
        principal: PrincipalID = .anonymous,
        context: String = "",
        patterns: [String] = []
    ) throws -> CompletedWrite {
        bench.time.advance(1_000_000)
        let now = bench.store.clock.now()
        var write = CompletedWrite(
            upstream: "github",
            principal: principal,
            context: context,
            path: path,
            time: now,
            effect: effect,
            bound: bound
        )
        write.patterns = try patterns.map {
            InvalidationPattern(base: "/v1", pattern: try RoutePattern($0))
        }
        write.observation = response.map { response in
            ReceivedObservation(
                body: Array(response.utf8),
                start: now - 1000,
                rule: issue
            )
        }
        return write
    }

    var first: BoundObject { BoundObject(model: "Issue", identity: "1") }
    var second: BoundObject { BoundObject(model: "Issue", identity: "2") }

    func form(_ bench: Bench, _ url: String, principal: PrincipalID = .anonymous, context: String = "")
        async throws -> StoredDocument.Form?
    {
        try await bench.store.documents(at: bench.key(url, principal: principal, context: context)).first?.form
    }

    func isOutdated(
        _ bench: Bench,
        _ url: String,
        principal: PrincipalID = .anonymous,
        context: String = ""
    )
        async throws -> Bool
    {
        guard case .outdated = try await form(bench, url, principal: principal, context: context) else { return false }
        return true
    }
}
