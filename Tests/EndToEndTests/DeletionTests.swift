import Foundation
import TestSupport
import Testing

/// What is deleted, or found to be gone, in every response that shows it.
@Suite(.scripts) struct DeletionTests {
    static let list = #"[ {"id":1,"title":"a"}, {"id":2,"title":"b"} , {"id":3,"title":"c"} ]"#
    static let without1 = #"[ {"id":2,"title":"b"} , {"id":3,"title":"c"} ]"#

    static func config(_ origin: Origin, _ policy: String) -> String {
        """
        upstreams: { blog: { url: "\(origin.url)" } }
        models:
          Item: { identity: id, properties: { title: title }, on_delete: \(policy) }
        routes:
          - { path: "items", model: [Item] }
          - { path: "items/{id:#}", model: Item, object: { id: id } }
          - { path: "other", model: [Item], root: items }
        """
    }

    /// An origin that answers retrievals from a table, and writes with one response.
    static func origin(
        _ bodies: Monitor<[String: String]>,
        _ write: @escaping @Sendable (Origin.Request) -> OriginResponse
    )
        throws
        -> Origin
    {
        try Origin { request in
            guard ["GET", "HEAD"].contains(request.method) else { return write(request) }
            guard let body = bodies.current[request.path] else {
                return .json(#"{"message":"gone"}"#, Fresh.hour, status: 404)
            }
            return .json(body, Fresh.hour)
        }
    }

    static func bodies() -> Monitor<[String: String]> {
        Monitor(["/items": list, "/other": #"{"total":3,"items":\#(list)}"#, "/items/1": #"{"id":1,"title":"a"}"#])
    }

    @Test(arguments: ["stale", "remove", "keep"], [404, 410])
    func `after a 404 or 410 the stored response is not served, even if the error may not be stored`(
        policy: String,
        status: Int
    ) throws {
        let isGone = Monitor(false)
        let origin = try Origin { _ in
            isGone.current
                ? .json(#"{"message":"gone"}"#, ["Cache-Control": "no-store"], status: status)
                : .json(#"{"id":1,"title":"a"}"#, Fresh.hour)
        }
        let larder = try Larder(origin, config: Self.config(origin, policy))
        _ = try larder.get("/items/1")
        #expect(try larder.waitForDocuments(1))
        isGone.withLock { $0 = true }
        #expect(try larder.get("/items/1", ["Cache-Control": "no-cache"]).status == status)
        #expect(try larder.get("/items/1").status == status)
    }

    @Test func `lists that keep a deleted object all show it as it was last known`() throws {
        let bodies = Self.bodies()
        let origin = try Self.origin(bodies) { _ in .empty(204) }
        let larder = try Larder(config: Self.config(origin, "keep") + "\nstore: { withhold: 10s }")
        _ = try larder.get("/items")
        bodies.withLock { $0["/other"] = #"{"total":1,"items":[{"id":1,"title":"new"}]}"# }
        // Within the lag of lists nobody knows which of the two titles is newer, and then nobody can be asked any more.
        _ = try larder.get("/other")
        #expect(try larder.request("DELETE", "/items/1").status == 204)
        let titles = try ["/other", "/items", "/other"].map { path in
            let hit = try larder.get(path)
            #expect(hit.isHit, "\(hit.cacheStatus)")
            return hit.text.contains(#""new""#)
        }
        #expect(Set(titles).count == 1, "\(titles)")
    }

    @Test func `a member that a write may have changed since its object was made again is not served`() throws {
        let bodies = Self.bodies()
        bodies.withLock { $0["/items/1"] = nil }
        // The response shows nothing but the object's state.
        let origin = try Self.origin(bodies) { _ in .json(#"{"id":1,"state":"open"}"#) }
        let larder = try Larder(
            config: Self.config(origin, "keep").replacing("title: title", with: "title: title, state: state")
        )
        #expect(try larder.get("/items/1").status == 404)
        #expect(try larder.get("/items").status == 200)
        #expect(try larder.request("PATCH", "/items/1", body: #"{"title":"new"}"#).status == 200)
        bodies.withLock { $0["/items"] = Self.list.replacing(#""a""#, with: #""new""#) }
        #expect(try larder.get("/items").text.contains("new"))
    }

    @Test func `a list with other values of a kept object after its deletion is a hit that is marked as in doubt`()
        throws
    {
        let bodies = Self.bodies()
        let origin = try Self.origin(bodies) { _ in .empty(204) }
        let larder = try Larder(config: Self.config(origin, "keep") + "\nstore: { withhold: 10s }")
        _ = try larder.get("/items")
        #expect(try larder.request("DELETE", "/items/1").status == 204)
        bodies.withLock { $0["/items"] = #"[{"id":1,"title":"new"}]"# }
        _ = try larder.get("/items", ["Cache-Control": "no-cache"])
        let hit = try larder.get("/items")
        #expect(hit.isHit && hit.cacheStatus.contains("doubt"), "\(hit.cacheStatus)")
    }

    @Test(arguments: ["0", "16MiB"])
    func `after a 404 without Vary a stored response with Vary is not served`(
        memory: String
    )
        throws
    {
        let isGone = Monitor(false)
        let origin = try Origin { _ in
            isGone.current
                ? .json(#"{"message":"gone"}"#, Fresh.hour, status: 404)
                : .json(#"{"id":1,"title":"a"}"#, Fresh.hour + ["Vary": "Accept-Language"])
        }
        let larder = try Larder(config: Self.config(origin, "keep") + "\nmemory: { maximum_size: \(memory) }\n")
        _ = try larder.get("/items/1", ["Accept-Language": "de"])
        #expect(try larder.waitForDocuments(1))
        isGone.withLock { $0 = true }
        #expect(try larder.get("/items/1", ["Accept-Language": "de", "Cache-Control": "no-cache"]).status == 404)
        #expect(try larder.get("/items/1", ["Accept-Language": "de"]).status == 404)
    }

    @Test(arguments: [204, 200, 404, 410])
    func `RK-31: a deletion takes the object out of counts, views and lists at once`(status: Int)
        throws
    {
        let bodies = Self.bodies()
        let origin = try Self.origin(bodies) { _ in status == 200 ? .json(#"{"id":1,"title":"a"}"#) : .empty(status) }
        let larder = try Larder(origin, config: Self.config(origin, "remove"))
        for path in ["/items", "/other", "/items/1"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(3))
        #expect(try larder.waitForObjects(3, of: "Item"))
        bodies.withLock { $0["/items/1"] = nil }
        #expect(try larder.request("DELETE", "/items/1").status == status)
        // Without waiting: the response was withheld until this holds.
        let items = try larder.get("/items")
        #expect(items.text == Self.without1)
        #expect(items.isHit)
        #expect(items.cacheStatus.contains("composed"))
        // The envelope's own count is the upstream's.
        #expect(try larder.get("/other").text == #"{"total":3,"items":\#(Self.without1)}"#)
        #expect(try larder.get("/items/1").status == 404)
        #expect(origin.count("/items") == 1)
        #expect(try larder.admin("GET", "/objects/Item/1").status == 410)
        #expect(try larder.admin("GET", "/objects/Item/2").status == 200)
        #expect((try larder.count()["models"] as? [String: Any])?["Item"] as? Int == 2)
        #expect(try larder.sql("SELECT id FROM Item ORDER BY id") == ["2", "3"])
        // Once more, and after a crash.
        #expect(try larder.request("DELETE", "/items/1").status == status)
        #expect(try larder.get("/items").text == Self.without1)
        larder.kill()
        try larder.start()
        #expect(try larder.get("/items").text == Self.without1)
        #expect(origin.count("/items") == 1)
    }

    @Test
    func `by default a document with a deleted object is fetched again, or served as received without the upstream`()
        throws
    {
        let bodies = Self.bodies()
        let origin = try Self.origin(bodies) { _ in .empty(204) }
        let larder = try Larder(origin, config: Self.config(origin, "stale"))
        for path in ["/items", "/other"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(2))
        #expect(try larder.waitForObjects(3, of: "Item"))
        #expect(try larder.request("DELETE", "/items/1").status == 204)
        #expect(try larder.get("/other", ["Cache-Control": "only-if-cached"]).status == 504)
        bodies.withLock { $0["/items"] = Self.without1 }
        #expect(try larder.get("/items").text == Self.without1)
        origin.stop()
        #expect(try larder.get("/other").text == #"{"total":3,"items":\#(Self.list)}"#)
    }

    @Test(arguments: [#"{"deleted":true}"#, #"{"id":1}"#, #"{"id":1,"deleted":true}"#, #"{"id":1,"title":"a"}"#])
    func `with on_delete: keep a member that the response to the DELETE lacks stays known`(body: String) throws {
        let origin = try Self.origin(Self.bodies()) { _ in .json(body) }
        let larder = try Larder(origin, config: Self.config(origin, "keep"))
        for _ in 0..<2 {
            #expect(try larder.get("/items").text == Self.list)
            #expect(try larder.waitForQuiet())
            #expect(try larder.request("DELETE", "/items/1").status == 200)
            let answer = try larder.get("/items", ["Cache-Control": "only-if-cached"])
            #expect(answer.status == 200 && answer.text == Self.list, "\(answer.cacheStatus)")
        }
    }

    @Test func `with on_delete: keep a deleted object is still shown`() throws {
        let bodies = Self.bodies()
        let origin = try Self.origin(bodies) { _ in .empty(204) }
        let larder = try Larder(origin, config: Self.config(origin, "keep"))
        _ = try larder.get("/items")
        #expect(try larder.waitForObjects(3, of: "Item"))
        #expect(try larder.request("DELETE", "/items/1").status == 204)
        let items = try larder.get("/items")
        #expect(items.text == Self.list)
        #expect(items.isHit)
    }

    @Test func `with on_delete: keep an object is fetched again if a write before its deletion left a member unknown`()
        throws
    {
        let list = #"[{"id":1,"title":"a","state":"open"}]"#
        let bodies = Monitor(["/items": list])
        let origin = try Self.origin(bodies) { _ in .json(#"{"id":1,"state":"closed"}"#) }
        let config = Self.config(origin, "keep").replacing("title: title", with: "title: title, state: state")
        let larder = try Larder(origin, config: config)
        _ = try larder.get("/items")
        #expect(try larder.waitForObjects(1, of: "Item"))
        // It leaves out the title.
        #expect(try larder.request("PATCH", "/items/1", body: "{}").status == 200)
        #expect(try larder.get("/items/1").status == 404)
        #expect(try !larder.get("/items").isHit)
    }

    @Test func `with on_delete: keep an object is fetched again if only some members were shown since its last write`()
        throws
    {
        let bodies = Monitor([
            "/items": #"[{"id":1,"title":"a","state":"open"}]"#, "/other": #"{"items":[{"id":1,"title":"a"}]}"#,
        ])
        let origin = try Self.origin(bodies) { _ in .empty(204) }
        let config = Self.config(origin, "keep")
            .replacing("title: title", with: "title: title, state: state")
            .replacing("\" } }\nmodels", with: "\", lag: 0s } }\nmodels")
        let larder = try Larder(origin, config: config)
        _ = try larder.get("/items")
        #expect(try larder.waitForObjects(1, of: "Item"))
        #expect(try larder.request("PATCH", "/items/1", body: "{}").status == 204)
        // It has the title only.
        _ = try larder.get("/other")
        #expect(try larder.waitForQuiet())
        #expect(try larder.request("DELETE", "/items/1").status == 204)
        #expect(try !larder.get("/items").isHit)
    }

    @Test(arguments: ["GET", "HEAD"]) func `a 404 removes the object like a deletion, until it is found again`(
        method: String
    )
        throws
    {
        let bodies = Self.bodies()
        let origin = try Self.origin(bodies) { _ in .empty(204) }
        let larder = try Larder(origin, config: Self.config(origin, "remove"))
        _ = try larder.get("/items")
        #expect(try larder.waitForObjects(3, of: "Item"))
        bodies.withLock { $0["/items/1"] = nil }
        #expect(try larder.request(method, "/items/1").status == 404)
        #expect(try larder.get("/items").text == Self.without1)
        // It is back.
        bodies.withLock { $0["/items/1"] = #"{"id":1,"title":"again"}"# }
        #expect(try larder.get("/items/1", ["Cache-Control": "no-cache"]).text.contains("again"))
        #expect(try eventually { try larder.admin("GET", "/objects/Item/1").status == 200 })
        #expect(try larder.waitForQuiet())
        // Whether it stands in the list from before, nobody knows.
        #expect(try larder.get("/items").text == Self.list)
        #expect(origin.count("/items") == 2)
    }

    @Test(arguments: ["GET", "DELETE"])
    func `a 404 under a key that can change does not remove a renamed object from lists`(method: String) throws {
        let name = Monitor("jan")
        let origin = try Origin { request in
            switch request.path {
            case "/users": .json(#"[{"id":1,"login":"\#(name.current)"}]"#, Fresh.hour)
            case "/users/\(name.current)": .json(#"{"id":1,"login":"\#(name.current)"}"#, Fresh.hour)
            default: .json(#"{"message":"gone"}"#, Fresh.hour, status: 404)
            }
        }
        let config = """
            upstreams: { blog: { url: "\(origin.url)" } }
            models:
              User: { identity: id, keys: [login], properties: { login: login }, on_delete: remove }
            routes:
              - { path: "users", model: [User] }
              - { path: "users/{login}", model: User, object: { login: login } }
            """
        let larder = try Larder(origin, config: config)
        _ = try larder.get("/users")
        #expect(try larder.get("/users/jan").status == 200)
        name.withLock { $0 = "kim" }
        #expect(try larder.request(method, "/users/jan", ["Cache-Control": "no-cache"]).status == 404)
        #expect(try larder.get("/users").text == #"[{"id":1,"login":"kim"}]"#)
    }

    @Test func `two concurrent deletions have the effect of one`() throws {
        let bodies = Self.bodies()
        let count = Monitor(0)
        let origin = try Self.origin(bodies) { _ in count.next() == 0 ? .empty(204) : .empty(404) }
        let larder = try Larder(origin, config: Self.config(origin, "remove"))
        _ = try larder.get("/items")
        #expect(try larder.waitForObjects(3, of: "Item"))
        let answers = try together(2) { _ in try larder.request("DELETE", "/items/1").status }
        #expect(answers.allSatisfy { $0 == 204 || $0 == 404 })
        #expect(try larder.get("/items").text == Self.without1)
    }

    @Test func `hits of a response requested before a deletion and received after it do not show the object`() throws {
        let bodies = Self.bodies()
        let gate = Gate()
        let origin = try Origin { request in
            guard request.method == "GET" else { return .empty(204) }
            let answer = OriginResponse.json(bodies.current[request.path] ?? "", Fresh.hour)
            return request.target.contains("slow") ? answer.after(gate) : answer
        }
        let larder = try Larder(origin, config: Self.config(origin, "remove"))
        _ = try larder.get("/items")
        #expect(try larder.waitForObjects(3, of: "Item"))
        let lists = Background { try larder.get("/items?slow") }
        let detail = Background { try larder.get("/items/1?slow") }
        #expect(origin.waitForRequests(3))
        #expect(try larder.request("DELETE", "/items/1").status == 204)
        gate.open()
        #expect(try lists.value().text == Self.list)
        #expect(try detail.value().text.contains("a"))
        #expect(try larder.get("/items").text == Self.without1)
        #expect(try eventually { try larder.get("/items?slow").isHit })
        #expect(try larder.get("/items?slow").text == Self.without1)
        bodies.withLock { $0["/items/1"] = nil }
        #expect(try !larder.get("/items/1?slow").isHit)
    }

    @Test func `after a crash during a deletion, documents that show the object are fetched again`() throws {
        let bodies = Self.bodies()
        let gate = Gate()
        let origin = try Self.origin(bodies) { _ in OriginResponse.empty(204).after(gate) }
        let larder = try Larder(origin, config: Self.config(origin, "remove"))
        _ = try larder.get("/other")
        #expect(try larder.waitForDocuments(1))
        let deletion = Background { try larder.request("DELETE", "/items/1") }
        #expect(origin.waitForRequests(1, "/items/1"))
        larder.kill()
        gate.open()
        #expect(throws: (any Error).self) { try deletion.value() }
        try larder.start()
        bodies.withLock { $0["/other"] = #"{"total":2,"items":\#(Self.without1)}"# }
        #expect(try larder.get("/other").text == #"{"total":2,"items":\#(Self.without1)}"#)
    }

    @Test func `an object created under a deleted id is a new object`() throws {
        let bodies = Self.bodies()
        let origin = try Self.origin(bodies) { request in
            request.method == "POST" ? .json(#"{"id":1,"title":"other"}"#, status: 201) : .empty(204)
        }
        let larder = try Larder(origin, config: Self.config(origin, "keep"))
        _ = try larder.get("/other")
        #expect(try larder.waitForDocuments(1))
        #expect(try larder.request("DELETE", "/items/1").status == 204)
        bodies.withLock { $0["/items/1"] = nil }
        #expect(try larder.get("/items/1").status == 404)
        bodies.withLock { $0["/items/1"] = #"{"id":1,"title":"other"}"# }
        #expect(try larder.request("POST", "/items", body: "{}").status == 201)
        // Known as absent no longer, and nothing of it moves into what showed its predecessor.
        #expect(try larder.get("/items/1").text == #"{"id":1,"title":"other"}"#)
        #expect(try larder.get("/other", ["Cache-Control": "only-if-cached"]).status == 504)
        #expect(try larder.admin("GET", "/objects/Item/1").status == 200)
    }

    @Test func `after a deletion other principals' responses are fetched again`() throws {
        let bodies = Self.bodies()
        let origin = try Self.origin(bodies) { _ in .empty(204) }
        let larder = try Larder(origin, config: Self.config(origin, "remove"))
        let other: FieldLines = ["Authorization": "Bearer b"]
        _ = try larder.get("/items", other)
        _ = try larder.get("/items")
        #expect(try larder.waitForDocuments(2))
        #expect(try larder.request("DELETE", "/items/1").status == 204)
        #expect(try larder.get("/items").text == Self.without1)
        #expect(try !larder.get("/items", other).isHit)
    }
}
