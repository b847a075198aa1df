import TestSupport
import Testing

/// Where a route's word counts in place of the upstream's, and where it does not.
@Suite(.scripts) struct OverrideTests {
    /// An origin that counts its responses to each path, and answers each as told.
    static func origin(_ answers: [String: (Int, FieldLines)]) throws -> Origin {
        try Origin { request in
            let (status, fields) = answers[request.path] ?? (200, [:])
            return .json("{\"n\":\(request.number)}", fields, status: status)
        }
    }

    static func larder(_ origin: Origin, _ rules: String...) throws -> Larder {
        try Larder(config: Configs.plain(origin, top: ["routes:"] + rules.map { "  - { \($0) }" }))
    }

    @Test(arguments: [
        "no-store", "private, no-cache", "max-age=0, must-revalidate", "no-store, no-cache=\"x\", s-maxage=0",
    ])
    func `with cache: force a response is stored and reused whatever its fields say, also after a restart`(
        _ control: String
    )
        throws
    {
        let fields: FieldLines = [
            "Cache-Control": control, "Vary": "*", "Expires": "0", "Pragma": "no-cache", "Set-Cookie": "a=b",
        ]
        let origin = try Self.origin(["/x": (200, fields), "/moved": (302, fields), "/gone": (410, fields)])
        let larder = try Self.larder(origin, "path: \"**\", cache: force, fresh: 5m")
        for path in ["/x", "/moved", "/gone"] {
            let first = try larder.get(path)
            #expect(first.says("larder;fwd=uri-miss;ttl=300;stored;detail=forced"), "\(path): \(first.cacheStatus)")
            let second = try larder.get(path, ["User-Agent": "another"])
            #expect(second.isHit && second.text == first.text && second.cacheStatus.hasSuffix(";detail=forced"))
            #expect(second["Set-Cookie"] == nil)
        }
        #expect(try larder.waitForDocuments(3))
        try larder.restart()
        #expect(try larder.get("/x").isHit)
        // The client's own word still counts.
        #expect(try !larder.get("/x", ["Cache-Control": "no-cache"]).isHit)
        #expect(try !larder.get("/y", ["Cache-Control": "no-store"]).isHit)
        #expect(try !larder.get("/y").isHit)
    }

    @Test(arguments: [500, 503, 401, 403, 202, 416])
    func `cache: force does not apply to failures, refusals and temporary responses`(_ status: Int) throws {
        let origin = try Self.origin(["/x": (status, ["Cache-Control": "no-store"])])
        let larder = try Self.larder(origin, "path: x, cache: force")
        #expect(try larder.get("/x").status == status)
        #expect(try larder.get("/x").cacheStatus == "larder;fwd=uri-miss")
        #expect(origin.count() == 2)
    }

    @Test func `a failure gets no lifetime from its route`() throws {
        let origin = try Self.origin(["/x": (500, [:]), "/y": (403, [:])])
        let larder = try Self.larder(origin, "path: \"**\", fresh: 5m")
        for path in ["/x", "/y"] {
            _ = try larder.get(path)
            #expect(try !larder.get(path).isHit)
        }
    }

    @Test func `with cache: never nothing is stored or served, not even a response stored before`() throws {
        let origin = try Self.origin(["/x": (200, Fresh.tagged("one"))])
        let folder = TemporaryFolder()
        var larder = try Larder(config: Configs.plain(origin), store: folder)
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        larder.terminate()
        larder = try Larder(
            config: Configs.plain(origin, top: ["routes:", "  - { path: x, cache: never }"]),
            store: folder
        )
        origin.forget()
        for _ in 0..<2 {
            let answer = try larder.get("/x")
            #expect(answer.cacheStatus == "larder;fwd=bypass;detail=never-by-route")
        }
        #expect(origin.requests.allSatisfy { $0["If-None-Match"] == nil })
        // The client's own validators are between it and the upstream.
        _ = try larder.get("/x", ["If-None-Match": "\"mine\""])
        #expect(origin.requests.last?["If-None-Match"] == "\"mine\"")
        #expect(try larder.get("/x", ["Cache-Control": "only-if-cached"]).status == 504)
        _ = try larder.admin("PUT", "/mode?mode=offline")
        #expect(try larder.get("/x").status == 504)
    }

    @Test func `fresh replaces the upstream's lifetime, and no-cache`() throws {
        let origin = try Self.origin([
            "/short": (200, ["Cache-Control": "max-age=1", "Age": "60"]), "/ask": (200, ["Cache-Control": "no-cache"]),
            "/silent": (200, [:]), "/unkept": (200, ["Cache-Control": "no-store"]),
        ])
        let larder = try Self.larder(origin, "path: \"**\", fresh: 5m")
        for path in ["/short", "/ask", "/silent"] {
            #expect(try larder.get(path).cacheStatus.hasSuffix("stored;detail=fresh-by-route"), "\(path)")
            let second = try larder.get(path)
            #expect(second.isHit && second.cacheStatus.hasSuffix(";detail=fresh-by-route"), "\(path)")
        }
        _ = try larder.get("/unkept")
        #expect(try !larder.get("/unkept").isHit)
        #expect(try larder.waitForDocuments(3))
        try larder.restart()
        #expect(try larder.get("/short").isHit)
    }

    @Test func `stale allows an old response to be served while a new one is fetched`() throws {
        let origin = try Self.origin(["/x": (200, ["Cache-Control": "max-age=1, must-revalidate", "Age": "60"])])
        let larder = try Self.larder(origin, "path: x, stale: 1h")
        _ = try larder.get("/x")
        let second = try larder.get("/x")
        #expect(second.isHit && second.cacheStatus.contains("ttl=-"))
        #expect(second.cacheStatus.hasSuffix(";detail=stale-by-route"))
        #expect(origin.waitForRequests(2))
    }

    @Test(arguments: [404, 410])
    func `a 404 or 410 is fresh for the route's negative lifetime, unless it names its own`(_ status: Int) throws {
        let origin = try Self.origin(["/x": (status, [:]), "/own": (status, ["Cache-Control": "max-age=0"])])
        let larder = try Self.larder(origin, "path: \"**\", negative: 1m")
        #expect(try larder.get("/x").says("larder;fwd=uri-miss;ttl=60;stored;detail=negative-by-route"))
        #expect(try larder.get("/x").cacheStatus.hasSuffix(";detail=negative-by-route"))
        _ = try larder.get("/own")
        #expect(try !larder.get("/own").isHit)
        try larder.restart()
        #expect(try larder.get("/x").isHit)
    }

    @Test func `a 404 has the negative lifetime even if the route has fresh and cache: force`() throws {
        let origin = try Self.origin(["/x": (404, Fresh.hour), "/y": (200, Fresh.hour)])
        let larder = try Self.larder(origin, "path: \"**\", cache: force, fresh: 1h, negative: 10s")
        #expect(try larder.get("/x").says("larder;fwd=uri-miss;ttl=10;stored;detail=negative-by-route"))
        #expect(try larder.get("/y").says("larder;fwd=uri-miss;ttl=3600;stored;detail=forced"))
    }

    @Test func `Vary counts except for the fields that the route ignores`() throws {
        let origin = try Self.origin(["/x": (200, Fresh.hour + ["Vary": "User-Agent, X-Colour"])])
        let larder = try Self.larder(origin, "path: x, vary: { ignore: [user-agent] }")
        let first = try larder.get("/x", ["User-Agent": "a", "X-Colour": "red"])
        #expect(first.cacheStatus.hasSuffix(";stored;detail=vary-by-route"))
        let other = try larder.get("/x", ["User-Agent": "b", "X-Colour": "red"])
        #expect(other.isHit && other.cacheStatus.hasSuffix(";detail=vary-by-route"))
        #expect(try larder.get("/x", ["User-Agent": "a", "X-Colour": "blue"]).cacheStatus.contains("fwd=vary-miss"))
    }
}
