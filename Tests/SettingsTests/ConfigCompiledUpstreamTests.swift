import Mapping
import Testing

@testable import CachePolicy
@testable import Settings

struct ConfigCompiledUpstreamTests {
    private func compiled() throws -> CompiledUpstream {
        let yaml = """
            upstreams: { a: { url: "https://a.example" } }
            models: { User: { identity: id }, Problem: { identity: [] } }
            routes:
              - { path: "users/{id:#}", model: User, object: { id: id }, fresh: 5m }
              - { path: "users/*", cache: never }
              - { path: "odd", status: 404, model: User }
            errors:
              - { path: "**", model: Problem }
            """
        return try CompiledUpstream(
            try ConfigFile.parse(yaml, file: "x", environment: [:]).checked().settings.upstreams[0]
        )
    }

    @Test func `a response is looked up by method, path and status`() throws {
        let upstream = try compiled()
        let match = upstream.body(RouteSubject(method: "GET", path: "/users/7", status: 200))
        #expect(match?.bound == ["id": "7"])
        #expect(match.map { Array($0.captures.values) } == ["7"])
        #expect(upstream.body(RouteSubject(method: "GET", path: "/users/ann", status: 200)) == nil)
        #expect(upstream.body(RouteSubject(method: "GET", path: "/users/7", status: 500))?.rule.model == "Problem")
        #expect(upstream.body(RouteSubject(method: "GET", path: "/odd", status: 404))?.rule.model == "User")
        #expect(upstream.body(RouteSubject(method: "GET", path: "/elsewhere", status: 200)) == nil)
    }

    @Test func `a request has the cache settings of its route`() throws {
        let upstream = try compiled()
        #expect(upstream.overrides(method: "GET", path: "/users/7").fresh == .seconds(300))
        #expect(upstream.overrides(method: "HEAD", path: "/users/ann").cache == .never)
        #expect(upstream.overrides(method: "GET", path: "/x") == CacheOverrides())
    }
}
