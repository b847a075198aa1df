import Foundation
import TestSupport
import Testing

/// What is known of past requests: counted in the metrics and over a day by upstream and route, and one by one.
@Suite struct PastRequestsTests {
    /// An upstream below a prefix, some of whose responses are errors or must not be stored.
    private static func larder(_ bodies: @escaping @Sendable (_ path: String) -> String = { #"{"path":"\#($0)"}"# })
        throws -> Larder
    {
        let origin = try Origin { request in
            switch request.path {
            case "/users/500": .json("{}", status: 500)
            case "/secrets": .json("{}", ["Cache-Control": "no-store"])
            case "/elsewhere": .json("{}", status: 404)
            default: .json(bodies(request.path), Fresh.hour)
            }
        }
        return try Larder(origin, config: Configs.blog(origin, upstream: ["prefix: /blog"]))
    }

    /// A sample of the metrics; nil if there is no such series.
    private func sample(_ series: String, of larder: Larder) throws -> Int? {
        let lines = try larder.admin("GET", "/metrics").text.split(separator: "\n")
        return lines.first { $0.hasPrefix(series + " ") }.flatMap { $0.split(separator: " ").last }.flatMap { Int($0) }
    }

    private func series(_ route: String, _ outcome: String, _ status: String) -> String {
        #"larder_route_requests_total{upstream="blog",route="\#(route)",outcome="\#(outcome)",status="\#(status)"}"#
    }

    @Test func `the metrics count requests by upstream, route, outcome and status`() throws {
        let larder = try Self.larder()
        // Hits from memory are then counted one by one.
        _ = try larder.admin("GET", "/requests")
        for path in ["users/1", "users/1", "users/1", "users/1", "users/500", "elsewhere"] {
            _ = try larder.get("/blog/" + path)
        }
        let expected = [
            series("users/{id:#}", "miss", "2xx"): 1, series("users/{id:#}", "hit", "2xx"): 3,
            series("users/{id:#}", "miss", "5xx"): 1, series("other", "miss", "4xx"): 1,
            // What was there before has the labels that it had.
            #"larder_requests_total{outcome="hit"}"#: 3,
            #"larder_response_duration_seconds_count{upstream="blog",route="users/{id:#}"}"#: 2,
        ]
        for (name, count) in expected {
            #expect(try eventually { try sample(name, of: larder) == count }, "\(name)")
        }
    }

    @Test func `unwatched hits are counted by their route, too`() throws {
        let larder = try Self.larder()
        for _ in 1...200 { _ = try larder.get("/blog/users/1") }
        // Of each worker, as many may wait as make a sample.
        let name = series("users/{id:#}", "hit", "2xx")
        #expect(try eventually { (1...199).contains(try sample(name, of: larder) ?? 0) })
        #expect(try sample(series("other", "hit", "2xx"), of: larder) == nil)
        // Where hits are rare, each is counted by itself.
        #expect(
            try eventually {
                _ = try larder.get("/blog/posts/1")
                return try sample(series("posts/{id:#}", "hit", "2xx"), of: larder) ?? 0 > 0
            }
        )
    }

    @Test func `each request counts once, by what its client got`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(origin, config: Configs.plain(origin))
        let counts = {
            try ["miss", "bypass", "error"].map { outcome in
                try sample(#"larder_requests_total{outcome="\#(outcome)"}"#, of: larder) ?? 0
            }
        }
        #expect(try larder.get("/x").status == 200)
        #expect(try larder.client().request("OPTIONS", "*").status == 204)
        #expect(try larder.client().request("PUT", "/y", body: "{}").status == 200)
        #expect(try counts() == [1, 2, 0])
        let refused = try larder.get("/a;token=secret-1/b;c?d=secret-2", ["Host": "elsewhere.example"])
        #expect(refused.status == 421)
        origin.stop()
        #expect(try larder.client().request("PUT", "/y", body: "{}").status == 502)
        #expect(try eventually { try counts() == [1, 2, 2] })
        #expect(try larder.total("larder_requests_total") == 5)
        // It is unknown which parameters are secret.
        let list = try larder.admin("GET", "/requests").text
        #expect(list.contains("/a;…/b;…?…") && !list.contains("secret"))
    }

    @Test func `the hits of a replay are counted like others`() throws {
        let recorded = RecordedFolder()
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let recorder = try Larder.recording(origin, into: recorded.path)
        _ = try recorder.get("/users/1")
        #expect(recorder.terminate() == .exited(0))
        let larder = try Larder.replaying(recorded.path)
        for _ in 1...300 { #expect(try larder.get("/users/1").status == 200) }
        let count = { try larder.total("larder_route_requests_total") }
        #expect(try eventually { try (100...300).contains(count()) })
        _ = try larder.admin("GET", "/requests")
        let before = try count()
        for _ in 1...10 { _ = try larder.get("/users/1") }
        #expect(try eventually { try count() >= before + 10 })
        _ = try larder.get("/not-recorded")
        #expect(try sample(#"larder_requests_total{outcome="error"}"#, of: larder) == 1)
    }

    @Test func `the last day has outcomes and response times, of all requests or of one upstream and route`() throws {
        let larder = try Self.larder()
        _ = try larder.admin("GET", "/requests")
        for path in ["users/1", "users/1", "users/2", "users/500", "elsewhere"] { _ = try larder.get("/blog/" + path) }
        let figures = { (query: String) throws -> [String: Any] in
            try larder.admin("GET", "/history" + query).object["total"] as? [String: Any] ?? [:]
        }
        #expect(try eventually { try figures("")["requests"] as? Int == 5 })
        let route = "?upstream=blog&route=users/%7Bid:%23%7D"
        let users = try figures(route)
        #expect(users["hits"] as? Int == 1 && users["forwarded"] as? Int == 2 && users["failed"] as? Int == 1)
        #expect(users["requests"] as? Int == 4 && users["stale"] as? Int == 0)
        let half = try #require(users["p50"] as? Double)
        #expect(try half > 0 && half <= #require(users["p99"] as? Double))
        #expect(try figures("?route=other")["requests"] as? Int == 1)

        let history = try larder.admin("GET", "/history" + route).object
        let intervals = try #require(history["intervals"] as? [[String: Any]])
        #expect(history["interval"] as? Int == 600 && (1...2).contains(intervals.count))
        let names = (history["series"] as? [[String: Any]])?.compactMap { $0["route"] as? String }
        #expect(names == ["users/{id:#}", "other"], "the busiest first")

        for query in ["?route=usres", "?upstream=bolg", "?day=1"] {
            #expect(try larder.admin("GET", "/history" + query).status == 400, "\(query)")
        }
        // A route of the config without requests is known.
        #expect(try figures("?route=posts")["requests"] as? Int == 0)
    }

    // MARK: One request

    /// The last request with this outcome.
    private func last(_ outcome: String, of larder: Larder) throws -> [String: Any] {
        var found: [String: Any]?
        #expect(
            try eventually {
                let requests = try larder.admin("GET", "/requests").object["requests"] as? [[String: Any]] ?? []
                found = requests.last { $0["outcome"] as? String == outcome }
                return found != nil
            }
        )
        let id = try #require(found?["id"] as? Int)
        return try larder.admin("GET", "/requests/\(id)").object
    }

    @Test func `a past request leads to the stored response that it got`() throws {
        let versions = Monitor(0)
        let larder = try Self.larder { _ in
            #"{"id":1,"version":\#(versions.withLock { $0 += 1; return $0 })}"#
        }
        _ = try larder.admin("GET", "/requests")
        _ = try larder.get("/blog/notes/1", ["Authorization": "Bearer ada"])
        #expect(try larder.waitForDocuments(1))
        _ = try larder.get("/blog/notes/1", ["Authorization": "Bearer ada"])
        for outcome in ["miss", "hit"] {
            let known = try last(outcome, of: larder)
            let document = try #require(known["document"] as? Int, "\(known)")
            #expect(known["is_current"] as? Bool == true && known["note"] == nil, "\(known)")
            let shown = try larder.admin("GET", "/documents/\(document)").object
            #expect(shown["text"] as? String == #"{"id":1,"version":1}"# && shown["url"] as? String == "/blog/notes/1")
        }

        let hit = try #require(try last("hit", of: larder)["request"] as? [String: Any])
        let fields: FieldLines = ["Authorization": "Bearer ada", "Cache-Control": "no-cache"]
        _ = try larder.get("/blog/notes/1", fields)
        #expect(try larder.waitForQuiet())
        let later = try larder.admin("GET", "/requests/\(try #require(hit["id"] as? Int))").object
        #expect(later["is_current"] as? Bool == false && later["document"] != nil, "\(later)")
        #expect((later["note"] as? String)?.contains("after the request") == true, "\(later)")
    }

    @Test func `a past request whose response is not stored says so`() throws {
        let larder = try Self.larder()
        _ = try larder.get("/blog/secrets")
        let secret = try last("miss", of: larder)
        #expect(secret["document"] == nil)
        #expect((secret["note"] as? String)?.contains("no-store") == true, "\(secret)")
        _ = try larder.request("POST", "/blog/users", body: "{}")
        let write = try last("bypass", of: larder)
        #expect(write["document"] == nil && (write["note"] as? String)?.contains("not stored") == true, "\(write)")
        _ = try larder.get("/nowhere")
        let refused = try last("error", of: larder)
        #expect((refused["note"] as? String)?.contains("Larder's own") == true, "\(refused)")
        #expect(try larder.admin("GET", "/requests/999999").status == 404)
        #expect(try larder.admin("GET", "/requests/last").status == 400)
    }
}
