import TestSupport
import Testing

/// `aliases:`: one API at several addresses, of which all are the same to the cache.
@Suite(.scripts) struct AliasTests {
    private static let keys = ["aliases: { /api/v3: /, /api/graphql: /graphql }", "rewrite_links: true"]

    private static func origin() throws -> Origin {
        try Origin { request in
            .json(#"{"path":"\#(request.path)","url":"http://\#(request.fields["Host"] ?? "")/users/2"}"#, Fresh.hour)
        }
    }

    @Test func `a request by an alias and one by the path share a stored response`() throws {
        let origin = try Self.origin()
        let larder = try Larder(config: Configs.plain(origin, upstream: Self.keys))
        #expect(try larder.get("/api/v3/users/1?x=1").text.contains(#""path":"/users/1""#))
        #expect(try larder.waitForQuiet())
        for path in ["/users/1?x=1", "/api/v3/users/1?x=1", "/api/v3/./users/1?x=1"] {
            #expect(try larder.get(path).isHit, "\(path)")
        }
        #expect(origin.count() == 1)
        #expect(try larder.get("/api/graphql").text.contains(#""path":"/graphql""#))
        #expect(try larder.get("/api/v3").text.contains(#""path":"/""#))
        #expect(try larder.get("/api/v33").text.contains(#""path":"/api/v33""#))
    }

    @Test func `aliases lie below the prefix, and a write by one invalidates`() throws {
        let origin = try Self.origin()
        let larder = try Larder(config: Configs.plain(origin, upstream: Self.keys + ["prefix: /hub"]))
        #expect(try larder.get("/hub/users/1").status == 200)
        #expect(try larder.waitForQuiet())
        #expect(try larder.get("/hub/api/v3/users/1").isHit)
        #expect(try larder.request("PATCH", "/hub/api/v3/users/1", body: "{}").status == 200)
        #expect(try !larder.get("/hub/users/1").isHit)
        #expect(try larder.get("/api/v3/users/1").status == 404, "no upstream is there")
        #expect(try larder.get("/hub/users/1").text.contains("http://127.0.0.1:\(larder.port)/hub/users/2"))
    }

    @Test func `the GitHub preset serves an Enterprise server's paths`() throws {
        let origin = try Origin { request in .json(#"{"id":1,"login":"ada"}"#, Fresh.hour) }
        let larder = try Larder(arguments: ["--preset", "github", "--upstream", origin.url], folder: TemporaryFolder())
        #expect(try larder.get("/api/v3/users/ada").status == 200)
        #expect(try larder.request("POST", "/api/graphql", body: "{}").status == 200)
        #expect(origin.requests.map(\.path) == ["/users/ada", "/graphql"])
        #expect(try larder.get("/users/ada").isHit)
    }
}
