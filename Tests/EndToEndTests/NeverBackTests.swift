import Foundation
import TestSupport
import Testing

/// What was served from the cache is never followed by something older from the cache, with the default config.
@Suite(.scripts) struct NeverBackTests {
    private typealias Changing = CoherenceTests.Changing

    /// The usual models and routes; nothing is said of lag, and the end of each response waits for its commit.
    private static func config(_ origin: Origin, model: String = "", routes: String = "") -> String {
        """
        store: { withhold: 10s }
        upstreams: { api: { url: "\(origin.url)" } }
        models:
          User:
            identity: id
            keys: [login]
            \(model)
            properties: { login: login, title: title }
        routes:
          - { path: "users", model: [User] }
          - { path: "users/{id:#}", model: User, object: { id: id } }
          - { path: "other", model: [User], root: items }
          - { path: "teams/{id:#}", model: User, root: lead }
          \(routes)
        """
    }

    private static let again: FieldLines = ["Cache-Control": "no-cache"]

    @Test
    func
        `a list that shows a later modification holds after a write and a stub without one, and no early list goes back`()
        throws
    {
        @Sendable func user(_ title: String, _ at: Int?) -> String {
            let stamp = at.map { #","at":"2026-01-01T00:00:0\#($0)Z""# } ?? ""
            return #"{"id":1,"title":"\#(title)"\#(stamp)}"#
        }
        let state = Monitor(("v0", 0))
        let origin = try Origin { request in
            if request.method == "PATCH" { state.withLock { $0 = ("v1", 1) } }
            let (title, at) = state.current
            switch request.path {
            case "/users": return .json("[\(user(title, at))]", Fresh.hour)
            case "/other": return .json(#"{"items":[\#(user(title, at))]}"#, Fresh.hour)
            case "/teams/1": return .json(#"{"lead":\#(user(title, nil))}"#, Fresh.hour)
            default: return .json(user(title, at))
            }
        }
        let larder = try Larder(config: Self.config(origin, model: "modified: at"))
        #expect(try larder.get("/users").text == "[\(user("v0", 0))]")
        #expect(try larder.get("/teams/1").text.contains("v0"))
        #expect(try larder.request("PATCH", "/users/1", body: "{}").text == user("v1", 1))
        for path in ["/users", "/teams/1"] { #expect(try larder.get(path).text.contains("v1"), "\(path)") }
        state.withLock { $0 = ("v2", 2) }
        #expect(try larder.get("/other").text.contains(user("v2", 2)))
        for path in ["/other", "/users", "/teams/1", "/other", "/users"] {
            let hit = try larder.get(path)
            #expect(hit.text.contains("v2"), "\(path): \(hit.cacheStatus) \(hit.text)")
            // What never existed as a whole is not shown: the title of one state with the stamp of another.
            #expect(!hit.text.contains("at") || hit.text.contains(user("v2", nil).dropLast()), "\(hit.text)")
        }
    }

    @Test func `a response for some requests only displaces an older one for all`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            switch (request.path, request["X-Who"]) {
            case ("/users", "first"): OriginResponse.json("[]", ["Cache-Control": "no-store"]).after(gate)
            case ("/users", "second"): .json(#"[{"id":1,"title":"new"}]"#, ["Cache-Control": "max-age=0"])
            case ("/users", "third"): .json(#"[{"id":2,"title":"old"}]"#, Fresh.hour)
            default: .json("[]", Fresh.hour)
            }
        }
        let larder = try Larder(config: Self.config(origin))
        let first = Background { try larder.get("/users", Self.again + ["X-Who": "first"]) }
        #expect(origin.waitForRequests(1, "/users"))
        // It waits for the first one's response, which turns out not to be for it.
        let second = Background { try larder.get("/users", Self.again + ["X-Who": "second"]) }
        #expect(try larder.waitForFollowers(1))
        // After a write nobody joins.
        #expect(try larder.request("POST", "/else").status == 200)
        #expect(try larder.get("/users", ["X-Who": "third"]).text.contains("old"))
        #expect(try larder.get("/users").isHit)
        gate.open()
        #expect(try first.value().text == "[]")
        #expect(try second.value().text.contains("new"))
        #expect(try !larder.get("/users").text.contains("old"))
    }

    @Test func `two overlapping reads that disagree do not revert a document to its received value`() throws {
        let title = Monitor("v0")
        let gate = Gate()
        let origin = try Origin { request in
            // The slow one was made before the last change.
            let isSlow = request.number == 4
            let user = #"{"id":1,"title":"\#(isSlow ? "v3" : title.current)"}"#
            switch request.path {
            case "/users": return .json("[\(user)]", Fresh.hour)
            case "/teams/1": return .json(#"{"lead":\#(user)}"#, Fresh.hour)
            default: return isSlow ? OriginResponse.json(user, Fresh.hour).after(gate) : .json(user, Fresh.hour)
            }
        }
        let larder = try Larder(config: Self.config(origin))
        _ = try larder.get("/users")
        for value in ["v1", "v2", "v3"] {
            title.withLock { $0 = value }
            _ = try larder.get("/users/1", Self.again)
            #expect(try larder.get("/users").text.contains(value))
        }
        let slow = Background { try larder.get("/users/1", Self.again) }
        #expect(origin.waitForRequests(4, "/users/1"))
        title.withLock { $0 = "v4" }
        #expect(try larder.get("/teams/1").text.contains("v4"))
        gate.open()
        #expect(try slow.value().text.contains("v3"))
        // Nobody knows which of the two is newer; from the cache alone comes the settled value.
        let kept = try larder.get("/users", ["Cache-Control": "only-if-cached"])
        #expect(kept.text.contains("v4"), "\(kept.text)")
        #expect(kept.cacheStatus.contains("detail=doubt"))
        for path in ["/users", "/users/1", "/teams/1", "/users"] { #expect(try larder.get(path).text.contains("v4")) }
    }

    @Test func `a list that differs from a detail seen shortly before is settled by the detail`() throws {
        let blog = try Changing(["/users/1": #"{"id":1,"title":"v1"}"#, "/users": #"[{"id":1,"title":"v2"}]"#])
        let larder = try Larder(config: Self.config(blog.origin))
        #expect(try larder.get("/users/1").text.contains("v1"))
        #expect(try larder.get("/users").text.contains("v2"))
        // The list may lag behind the detail, or be newer: the detail, which does not lag, is asked for and tells.
        blog["/users/1"] = #"{"id":1,"title":"v2"}"#
        #expect(try larder.get("/users/1").text.contains("v2"))
        for _ in 0..<3 {
            for path in ["/users", "/users/1"] {
                let hit = try larder.get(path)
                #expect(hit.text.contains("v2"), "\(path): \(hit.text)")
                #expect(hit.isHit)
            }
        }
    }

    @Test func `a list's value counts everywhere once the list can no longer lag behind an earlier detail`() throws {
        let blog = try Changing(["/users/1": #"{"id":1,"title":"v1"}"#, "/users": #"[{"id":1,"title":"v2"}]"#])
        let config = Self.config(blog.origin).replacing("api: { url", with: "api: { lag: 1s, url")
        let larder = try Larder(config: config)
        _ = try larder.get("/users/1")
        #expect(try larder.get("/users").text.contains("v2"))
        #expect(
            try eventually {
                let list = try larder.get("/users")
                return list.isHit && list.text.contains("v2")
            }
        )
        for path in ["/users/1", "/users"] {
            let hit = try larder.get(path)
            #expect(hit.text.contains("v2"), "\(path): \(hit.text)")
            #expect(hit.isHit)
        }
        #expect(blog.origin.count("/users/1") == 1)
    }

    @Test func `a 404 under a key that can change makes the object unknown, and removes it from no list`()
        throws
    {
        let list = #"[{"id":1,"login":"ada","title":"t"},{"id":2,"login":"bela","title":"u"}]"#
        let blog = try Changing(["/users": list, "/people/ada": #"{"id":1,"login":"ada","title":"t"}"#])
        let routes = #"- { path: "people/{login}", model: User, object: { login: login } }"#
        let larder = try Larder(config: Self.config(blog.origin, model: "on_delete: remove", routes: routes))
        _ = try larder.get("/users")
        _ = try larder.get("/people/ada")
        // Renamed elsewhere: it lives on under another login.
        blog.bodies.withLock { $0["/people/ada"] = nil }
        blog["/users"] = list.replacing("ada", with: "augusta")
        #expect(try larder.get("/people/ada", Self.again).status == 404)
        let after = try larder.get("/users")
        #expect(after.text == blog["/users"])
        #expect(!after.isHit)
        #expect(try larder.admin("GET", "/objects/User/1").status == 200)
    }

    @Test(arguments: [(", ", ": "), (",", ":"), (",\n    ", ": ")] as [(String, String)])
    func `a nested list that grows to two elements has its document's separator, or is fetched again`(
        separator: String,
        colon: String
    ) throws {
        func body(_ tags: [String]) -> String {
            let tags = tags.map { "{\"name\"\(colon)\"\($0)\"}" }.joined(separator: separator)
            return "[{\"id\"\(colon)7\(separator)\"title\"\(colon)\"t\"\(separator)\"tags\"\(colon)[\(tags)]}]"
        }
        let blog = try Changing([
            "/posts": body(["x"]), "/tags": #"[{"name":"x"},{"name":"y"}]"#,
            "/posts/7": #"{"id":7,"title":"t","tags":[{"name":"x"},{"name":"y"}]}"#,
        ])
        let larder = try Larder(config: Configs.blog(blog.origin, upstream: ["lag: 30s"]))
        #expect(try larder.get("/posts").text == body(["x"]))
        blog["/posts"] = body(["x", "y"])
        _ = try larder.get("/posts/7")
        #expect(try larder.get("/posts").text == body(["x", "y"]))
    }

    @Test func `the raw view of a composed document is as it was received, also while the upstream fails`() throws {
        let blog = try Changing(
            ["/users": #"[{"id":1,"title":"v0"}]"#, "/users/1": #"{"id":1,"title":"v1"}"#],
            ["Cache-Control": "max-age=0, stale-if-error=3600"]
        )
        let larder = try Larder(config: Self.config(blog.origin))
        _ = try larder.get("/users")
        _ = try larder.get("/users/1")
        blog.origin.stop()
        let composed = try larder.get("/users")
        #expect(composed.text == #"[{"id":1,"title":"v1"}]"#, "\(composed.cacheStatus)")
        let raw = try larder.get("/users", ["Larder-View": "raw"])
        #expect(raw.text == #"[{"id":1,"title":"v0"}]"#, "\(raw.cacheStatus)")
    }

    @Test(arguments: [false, true])
    func `a document that still shows a deleted object is fetched again if its values differ`(
        afterWrite: Bool
    ) throws {
        let title = Monitor("v0")
        let origin = try Origin { request in
            let user = #"{"id":1,"title":"\#(title.current)"}"#
            switch (request.method, request.path) {
            case ("PATCH", _): return .empty(204)
            case (_, "/users"): return .json("[\(user)]", Fresh.hour)
            case (_, "/other"): return .json(#"{"items":[\#(user)]}"#, Fresh.hour)
            default: return .empty(404, ["Content-Length": "0"])
            }
        }
        let larder = try Larder(config: Self.config(origin, model: "on_delete: keep"))
        // What lists show is older by the lag than the write or the deletion, so that none of it is known to be newest.
        if afterWrite {
            _ = try larder.request("PATCH", "/users/1", body: "{}")
        } else {
            _ = try larder.get("/users/1")
        }
        _ = try larder.get("/users")
        title.withLock { $0 = "v1" }
        _ = try larder.get("/other")
        #expect(try larder.get("/users/1", Self.again).status == 404)
        title.withLock { $0 = "v2" }
        for path in ["/other", "/users", "/other"] {
            let response = try larder.get(path)
            #expect(response.text.contains("v2"), "\(path): \(response.cacheStatus) \(response.text)")
        }
    }
}
