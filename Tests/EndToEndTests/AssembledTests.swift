import Foundation
import TestSupport
import Testing

/// The mapped view of a detail that was never fetched, made of what lists have shown, while the upstream cannot be asked.
@Suite(.scripts) struct AssembledTests {
    private static let mapped: FieldLines = ["Larder-View": "mapped"]
    private static let list = #"[{"id":1,"login":"ada","name":"Ada","score":5,"x":1},{"id":2,"login":"bob"}]"#

    /// The path of a detail names its object.
    private static func config(_ origin: Origin, upstream: [String] = []) -> String {
        Configs.blog(origin, upstream: upstream).replacing(
            #"{id:#}", model: User }"#,
            with: #"{id:#}", model: User, object: { id: id } }"#
        )
    }

    private static func daemon() throws -> (origin: Origin, larder: Larder) {
        let origin = try Origin { request in
            if request.method != "GET" { return .empty(204) }
            return request.path == "/users"
                ? .json(list, Fresh.hour) : .json(#"{"id":1,"login":"asked"}"#, ["Cache-Control": "no-store"])
        }
        let larder = try Larder(origin, config: config(origin))
        #expect(try larder.get("/users").status == 200)
        return (origin, larder)
    }

    private func goOffline(_ larder: Larder) throws {
        #expect(try larder.admin("PUT", "/mode", body: #"{"mode":"offline"}"#).status == 200)
    }

    @Test func `offline, a detail that was never fetched is served in the mapped view`() throws {
        let (origin, larder) = try Self.daemon()
        try goOffline(larder)
        for _ in 0..<2 {
            let detail = try larder.get("/users/1", Self.mapped)
            // `score` is local, and `x` is not declared: both belong to the list.
            #expect(detail.status == 200 && detail.text == #"{"id":1,"login":"ada","name":"Ada"}"#)
            #expect(
                detail.cacheStatus.hasPrefix("larder;hit;ttl=") && detail.cacheStatus.hasSuffix(";detail=assembled")
            )
            #expect(detail["Content-Type"] == "application/json" && detail["Vary"]?.contains("Larder-View") == true)
            #expect(detail["Age"].flatMap { Int($0) } ?? -1 >= 0)
            let head = try larder.request("HEAD", "/users/1", Self.mapped)
            #expect(head.status == 200 && head.body.isEmpty && head["Content-Length"] == "\(detail.body.count)")
            #expect(head.cacheStatus.hasSuffix("detail=assembled"))
            let tag = try #require(detail["ETag"])
            #expect(try larder.get("/users/1", Self.mapped + ["If-None-Match": tag]).status == 304)
            #expect(try larder.get("/users/2", Self.mapped).text == #"{"id":2,"login":"bob"}"#)
            // After a restart it is the same; the mode is that of the config again.
            try larder.restart()
            try goOffline(larder)
        }
        #expect(origin.count() == 1)
    }

    @Test func `other views get 504, which names the mapped view only if the object is known`() throws {
        let (_, larder) = try Self.daemon()
        try goOffline(larder)
        for view in ["wire", "raw"] {
            let problem = try larder.get("/users/1", ["Larder-View": view])
            #expect(problem.status == 504 && problem.isProblem && problem.text.contains("`Larder-View: mapped`"))
            #expect(problem.cacheStatus == "larder;detail=offline")
        }
        let unknown = try larder.get("/users/9")
        #expect(unknown.status == 504 && !unknown.text.contains("Larder-View"))
        #expect(try larder.get("/users/9", Self.mapped).status == 504)
    }

    @Test func `nothing is assembled that another principal has seen, for a query, or while the upstream can be asked`()
        throws
    {
        let (origin, larder) = try Self.daemon()
        let asked = try larder.get("/users/1", Self.mapped)
        #expect(asked.text.contains("asked") && origin.count() == 2)
        let cached = try larder.get("/users/1", Self.mapped + ["Cache-Control": "only-if-cached"])
        #expect(cached.status == 504 && cached.cacheStatus == "larder;detail=only-if-cached")
        #expect(origin.count() == 2)
        try goOffline(larder)
        #expect(try larder.get("/users/2", Self.mapped + ["Authorization": "Bearer b"]).status == 504)
        #expect(try larder.get("/users/2", Self.mapped + ["Accept-Language": "fr"]).status == 504)
        #expect(try larder.get("/users/2?fields=name", Self.mapped).status == 504)
        #expect(try larder.get("/users/2", Self.mapped + ["Cache-Control": "only-if-cached"]).status == 200)
        #expect(try larder.request("PATCH", "/users/2", Self.mapped, body: "{}").status == 504)
    }

    @Test func `an object that is deleted, or that a write may have changed, is not served`() throws {
        let (_, larder) = try Self.daemon()
        #expect(try larder.request("DELETE", "/users/1").status == 204)
        #expect(try larder.request("PATCH", "/users/2", body: "{}").status == 204)
        try goOffline(larder)
        for path in ["/users/1", "/users/2"] {
            let problem = try larder.get(path)
            #expect(problem.status == 504 && !problem.text.contains("Larder-View"), "\(path)")
            #expect(try larder.get(path, Self.mapped).status == 504, "\(path)")
        }
    }

    @Test func `without the upstream the mapped view shows a known object, and the 502 of other views names that view`()
        throws
    {
        let (origin, larder) = try Self.daemon()
        _ = try larder.command("mode", "online")
        origin.stop()
        let detail = try larder.get("/users/1", Self.mapped)
        #expect(detail.status == 200 && detail.text == #"{"id":1,"login":"ada","name":"Ada"}"#)
        #expect(
            detail.cacheStatus.hasPrefix("larder;fwd=uri-miss;") && detail.cacheStatus.hasSuffix("detail=assembled")
        )
        #expect(try larder.request("HEAD", "/users/1", Self.mapped).status == 200)
        let failure = try larder.get("/users/1")
        #expect(failure.status == 502 && failure.text.contains("`Larder-View: mapped`"))
        #expect(try !larder.get("/users/9").text.contains("Larder-View"))
        #expect(try larder.get("/users/9", Self.mapped).status == 502)
        // A client that wants nothing stale gets nothing stale.
        #expect(try larder.get("/users/1", Self.mapped + ["Cache-Control": "no-cache"]).status == 502)
        try origin.restart()
        #expect(try larder.get("/users/1", Self.mapped).text.contains("asked"))
    }

    @Test func `with stale_if_error: 0s nothing is assembled in place of a failure`() throws {
        let origin = try Origin { _ in .json(Self.list, Fresh.hour + ["Age": "100"]) }
        let larder = try Larder(config: Self.config(origin, upstream: ["stale_if_error: 0s"]))
        _ = try larder.get("/users")
        origin.stop()
        #expect(try larder.get("/users/1", Self.mapped).status == 502)
    }

    @Test func `explain foretells that offline a known object is served in the mapped view`() throws {
        let (_, larder) = try Self.daemon()
        let foretold = try ExplainTests.explain(larder, "/users/1", ["Larder-View: mapped"])
        let offline = try #require(foretold["offline"] as? [String: Any])
        #expect(offline["action"] as? String == "serve" && offline["status"] as? Int == 200)
        #expect((offline["cache_status"] as? String)?.hasSuffix("detail=assembled") == true)
        #expect((offline["reason"] as? String)?.contains("its object is known from others") == true)
        #expect((foretold["online"] as? [String: Any])?["action"] as? String == "fetch")
        let failure = (foretold["upstream"] as? [String: Any])?["failure"] as? String
        #expect(failure?.contains("what is known of the object is served") == true)
        let wire = try #require(try ExplainTests.explain(larder, "/users/1")["offline"] as? [String: Any])
        #expect(wire["status"] as? Int == 504 && (wire["reason"] as? String)?.contains("Larder-View: mapped") == true)
    }

    @Test func `explain foretells that in an outage a known object is served in the mapped view`() throws {
        let origin = try Origin { _ in .json(Self.list, Fresh.hour) }
        let larder = try Larder(origin, config: Self.config(origin, upstream: ["patience: 100ms"]))
        #expect(try larder.get("/users").status == 200)
        origin.stop()
        #expect(
            try eventually {
                _ = try larder.get("/none")
                let upstreams = try larder.admin("GET", "/upstreams").object["upstreams"] as? [[String: Any]]
                return upstreams?.first?["is_held_back"] as? Bool == true
            }
        )
        let foretold = try ExplainTests.explain(larder, "/users/1", ["Larder-View: mapped"])
        let online = try #require(foretold["online"] as? [String: Any])
        #expect(online["action"] as? String == "serve" && online["status"] as? Int == 200, "\(online)")
        let detail = try larder.get("/users/1", Self.mapped)
        #expect(detail.status == 200 && detail.cacheStatus == (online["cache_status"] as? String)?.filter { $0 != " " })
        let wire = try #require(try ExplainTests.explain(larder, "/users/1")["online"] as? [String: Any])
        #expect(try larder.get("/users/1").status == wire["status"] as? Int)
    }

    @Test func `a seeded object is served offline like one that a list has shown`() throws {
        let (_, larder) = try Self.daemon()
        let body = #"{"id":7,"login":"eve"}"#
        #expect(try larder.admin("POST", "/objects/User", body: body).status == 200)
        try goOffline(larder)
        #expect(try larder.get("/users/7", Self.mapped).text == body)
    }
}
