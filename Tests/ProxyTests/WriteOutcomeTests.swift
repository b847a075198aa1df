import Mapping
import Store
import Testing

@testable import HTTPSemantics
@testable import Proxy
@testable import Settings
@testable import Upstream

@Suite struct WriteOutcomeTests {
    private func outcome(_ status: Int?, _ fields: [(String, String)] = [], error: UpstreamError? = nil) -> WriteOutcome
    {
        WriteOutcome(
            head: status.map {
                UpstreamHead(version: .http11, status: $0, reason: [], fields: Fields(fields.map { Field($0.0, $0.1) }))
            },
            body: status == nil ? nil : [],
            error: error
        )
    }

    private func outdatedPaths(_ method: String, _ url: String, _ outcome: WriteOutcome) throws -> [String] {
        let upstream = try ProxyFixture.upstream()
        return outcome.outdatedPaths(by: ProxyFixture.request(method, url, of: upstream))
    }

    @Test(arguments: [(200, true), (204, true), (303, true), (400, false), (409, false), (500, false)])
    func `the status of its response decides whether a write may have changed something`(
        status: Int,
        mayHaveChanged: Bool
    ) {
        #expect(outcome(status).mayHaveChanged == mayHaveChanged)
    }

    @Test func `a write whose response never came counts as one that happened, unless it cannot have been sent`() {
        #expect(outcome(nil, error: .reset(afterBytes: 0)).mayHaveChanged)
        #expect(outcome(nil, error: .firstByteTimeout).mayHaveChanged)
        #expect(!outcome(nil, error: .refused("")).mayHaveChanged)
        #expect(!outcome(nil, error: .connectTimeout).mayHaveChanged)
    }

    @Test func `the target, what the response names, and the collection are invalidated`() throws {
        #expect(try outdatedPaths("DELETE", "/posts/1?x=1", outcome(204)) == ["/posts/1", "/posts"])
        for status in [404, 410] {
            #expect(try outdatedPaths("DELETE", "/posts/1", outcome(status)) == ["/posts/1", "/posts"])
        }
        #expect(
            try outdatedPaths("POST", "/posts", outcome(201, [("Location", "/posts/9")])) == ["/posts", "/posts/9"]
        )
        #expect(
            try outdatedPaths("PUT", "/a/b/c", outcome(200, [("Content-Location", "https://api.example.com/d")]))
                == ["/a/b/c", "/d", "/a/b"]
        )
        #expect(
            try outdatedPaths("POST", "/posts", outcome(201, [("Location", "https://evil.example/x")])) == ["/posts"]
        )
    }

    @Test func `a token shows what invalidates a write's target, also by a pattern`() throws {
        let upstream = try ProxyFixture.upstream()
        let pattern = InvalidationPattern(base: "", pattern: try RoutePattern("posts/*"))
        let request = ProxyFixture.request("POST", "/posts/1?x=1", of: upstream)
        for (other, change) in [
            (Invalidation(of: upstream.storeKey, paths: ["/posts/1"], at: 7), .invalidated),
            (Invalidation(of: upstream.storeKey, paths: ["/posts/2"], at: 7), .written(at: 7)),
            (Invalidation(of: upstream.storeKey, paths: ["/tags"], patterns: [pattern], at: 7), .invalidated),
            (Invalidation(of: "other", paths: ["/posts/1"], patterns: [pattern], at: 7), .none),
        ] as [(Invalidation, InvalidationLog.Change)] {
            var log = InvalidationLog()
            let token = log.token
            log.append(other)
            #expect(log.change(since: token, for: request) == change)
        }
    }

    @Test func `without a response the target and its collection are in doubt`() throws {
        #expect(
            try outdatedPaths("PATCH", "/posts/1", outcome(nil, error: .firstByteTimeout)) == ["/posts/1", "/posts"]
        )
    }
}
