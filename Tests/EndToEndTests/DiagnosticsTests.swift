import TestSupport
import Testing

/// What an operator can see of the daemon's decisions and of its store's work.
@Suite(.scripts) struct DiagnosticsTests {
    private static func origin() throws -> Origin {
        try Origin { request in
            guard request.method == "GET" else { return .empty(204) }
            let user = #"{"id":1,"login":"ada","name":"x"}"#
            return .json(request.path == "/users" ? "[\(user)]" : user, Fresh.hour)
        }
    }

    private static let bound = #"routes: [{ path: "people/{login}", model: User, object: { login: login } }]"#

    @Test func `a fetch of a response that is not stale by age has its reason in Cache-Status, /requests and the log`()
        throws
    {
        let origin = try Self.origin()
        let config = Configs.blog(origin, upstream: [Self.bound], top: ["log: { level: debug }"])
        let larder = try Larder(config: config)
        _ = try larder.get("/users")
        #expect(try larder.waitForObjects(1, of: "User"))
        #expect(try larder.request("PATCH", "/people/ada", body: "{}").status == 204)
        let asked = try larder.get("/users")
        #expect(asked.cacheStatus.contains("fwd=stale") && asked.cacheStatus.contains("detail=outdated"))
        let reason = "a write may have changed User:1 since the document was observed"
        #expect(try eventually { try larder.admin("GET", "/requests").text.contains(reason) })
        #expect(larder.log.contains(reason))
    }

    @Test func `the debug log says why a response is not stored, and what each commit contains`() throws {
        let origin = try Origin { request in
            .json("{}", request.path == "/never" ? ["Cache-Control": "no-store"] : Fresh.hour)
        }
        let larder = try Larder(config: Configs.plain(origin, top: ["log: { level: debug }"]))
        _ = try larder.get("/kept")
        _ = try larder.get("/never")
        #expect(eventually { larder.log.contains("not stored") && larder.log.contains("1 response") })
        #expect(larder.log.contains("rule=no-store"))
    }

    @Test func `the metrics show the number, bytes, jobs and times of commits`() throws {
        let larder = try Larder(try Self.origin())
        _ = try larder.get("/users")
        #expect(try larder.waitForDocuments(1))
        #expect(
            try eventually {
                try larder.total("larder_commit_duration_seconds_count") > 0
                    && larder.total("larder_ingest_duration_seconds_count") == 1
            }
        )
        #expect(try larder.total("larder_committed_bytes_total") > 0)
        #expect(try larder.admin("GET", "/metrics").text.contains(#"larder_committed_jobs_total{job="response"} 1"#))
        #expect(try eventually { try larder.admin("GET", "/metrics").text.contains("\nlarder_writer_queue 0\n") })
    }
}
