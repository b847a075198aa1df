import Mapping
import Testing

@testable import HTTPSemantics
@testable import Proxy
@testable import Settings
@testable import Store
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

    @Test func `a write without a response counts as done, unless it cannot have been sent`() {
        #expect(outcome(nil, error: .reset(afterBytes: 0)).mayHaveChanged)
        #expect(outcome(nil, error: .firstByteTimeout).mayHaveChanged)
        #expect(!outcome(nil, error: .refused("")).mayHaveChanged)
        #expect(!outcome(nil, error: .connectTimeout).mayHaveChanged)
    }

    @Test func `a write invalidates its target, the collection, and the URLs that its response names`() throws {
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

    /// Orders, with an action, lines and a status of their own.
    private func shop() throws -> ProxiedUpstream {
        let yaml = """
            upstreams: { shop: { url: "https://api.example.com/v2" } }
            models: { Order: { identity: id }, Line: { identity: id }, Status: { identity: name } }
            routes:
              - { path: "orders", model: [Order] }
              - { path: "orders/{id}", model: Order, object: { id: id } }
              - { path: "orders/{id}", method: PATCH, model: Order, object: { id: id }, invalidates: [stats, "all/**"] }
              - { path: "orders/{id}/lines", method: GET, model: [Line] }
              - { path: "orders/{id}/cancel", method: POST, invalidates: ["customers/{id}"] }
            """
        let settings = ConfigFile.parse(yaml, file: "x", environment: [:]).settings
        return ProxiedUpstream(try CompiledUpstream(settings.upstreams[0]))
    }

    private func request(_ method: String, _ route: String, of upstream: ProxiedUpstream) throws -> ProxyRequest {
        let recorded = IncomingRequest(recorded: method, "/v2\(route)", fields: Fields(), upstream)
        let facts = RequestFacts(
            try #require(recorded),
            principal: .anonymous,
            otherFields: nil,
            ProxyFixture.hasher,
            credentialHasher: ProxyFixture.hasher
        )
        return ProxyRequest(facts)
    }

    @Test(arguments: [
        ("POST", "/orders/5/cancel", "5"), ("POST", "/orders/5/ship?fast=1", "5"), ("DELETE", "/orders/5/lock", "5"),
        ("PUT", "/orders/5/lock/", "5"), ("PATCH", "/orders/5", "5"), ("POST", "/orders/5/lines", nil),
        ("POST", "/orders/5/a/b", nil), ("POST", "/orders", nil), ("POST", "/elsewhere/5/cancel", nil),
    ])
    func `an action on an object is a write to it`(method: String, path: String, identity: String?) throws {
        let shop = try shop()
        #expect(shop.written(try request(method, path, of: shop)).first?.identity == identity)
    }

    @Test func `an action on an object invalidates the same responses as a write to that object`() throws {
        let shop = try shop()
        let cancel = try request("POST", "/orders/5/cancel", of: shop)
        #expect(outcome(204).outdatedPaths(by: cancel) == ["/v2/orders/5/cancel", "/v2/orders/5", "/v2/orders"])
        let further = shop.routeInvalidations(by: cancel, status: 204)
        #expect(further.paths == ["/v2/customers/5", "/v2/customers/5/", "/v2/stats", "/v2/stats/"])
        #expect(further.patterns.map { $0.matches("/v2/all/x") } == [true])
    }

    @Test func `a DELETE that ends an action, such as a lock, does not delete the object`() throws {
        let shop = try shop()
        let unlock = try request("DELETE", "/orders/5/lock", of: shop)
        #expect(outcome(204).effect(of: unlock) == .changed)
        #expect(outcome(204).effect(of: try request("DELETE", "/orders/5", of: shop)) == .deleted)
        let absent = outcome(404).completed(as: .absent, of: unlock, suspect: SuspectID(rawValue: 1), start: 0, end: 1)
        #expect(absent.paths == ["/v2/orders/5/lock"] && absent.bound == nil)
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
