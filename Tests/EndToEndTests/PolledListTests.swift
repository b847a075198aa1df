import Foundation
import TestSupport
import Testing

/// Lists that change elsewhere, with the default `lag`: a hit shows what the same URL said last.
@Suite(.scripts) struct PolledListTests {
    private typealias Changing = CoherenceTests.Changing

    private static func config(_ origin: Origin) -> String {
        """
        store: { withhold: 10s }
        upstreams: { api: { url: "\(origin.url)" } }
        models:
          User: { identity: id, properties: { title: title } }
        routes:
          - { path: "users", model: [User] }
          - { path: "search", model: [User] }
          - { path: "users/{id:#}", model: User, object: { id: id } }
        """
    }

    private static let again: FieldLines = ["Cache-Control": "no-cache"]

    private static func list(_ title: String) -> String { #"[{"id":1,"title":"\#(title)"}]"# }

    @Test func `each hit of a polled list shows its latest response`() throws {
        let blog = try Changing(["/users": Self.list("v0")])
        let larder = try Larder(config: Self.config(blog.origin))
        for number in 0..<5 {
            blog["/users"] = Self.list("v\(number)")
            #expect(try larder.get("/users", Self.again).text == Self.list("v\(number)"))
            for _ in 0..<2 {
                let hit = try larder.get("/users")
                #expect(hit.isHit)
                #expect(hit.text == Self.list("v\(number)"), "\(hit.cacheStatus)")
                #expect(!hit.cacheStatus.contains("doubt"))
            }
        }
        #expect(blog.origin.count("/users") == 5)
    }

    @Test func `after a restart a polled list's hits show its latest response`() throws {
        let blog = try Changing(["/users": Self.list("v0")])
        let larder = try Larder(config: Self.config(blog.origin))
        _ = try larder.get("/users")
        #expect(try larder.waitForDocuments(1))
        try larder.restart()
        blog["/users"] = Self.list("v1")
        #expect(try larder.get("/users", Self.again).text == Self.list("v1"))
        let hit = try larder.get("/users")
        #expect(hit.isHit && hit.text == Self.list("v1"), "\(hit.cacheStatus) \(hit.text)")
    }

    @Test func `after a write without a body a polled list is fetched again, until a detail shows the new value`()
        throws
    {
        let title = Monitor("v0")
        let origin = try Origin { request in
            if request.method == "PATCH" { title.withLock { $0 = "v1" } }
            if request.method == "PATCH" { return .empty(204) }
            let list = Self.list(title.current)
            return .json(request.path == "/users" ? list : String(list.dropFirst().dropLast()), Fresh.hour)
        }
        let larder = try Larder(config: Self.config(origin))
        _ = try larder.get("/users")
        #expect(try larder.request("PATCH", "/users/1", body: "{}").status == 204)
        // Within the lag a list may be from before the write.
        for _ in 0..<2 {
            let list = try larder.get("/users")
            #expect(!list.isHit && list.text == Self.list("v1"), "\(list.cacheStatus)")
        }
        _ = try larder.get("/users/1")
        _ = try larder.get("/users")
        for _ in 0..<3 {
            let hit = try larder.get("/users")
            #expect(hit.isHit, "\(hit.cacheStatus)")
            #expect(hit.text == Self.list("v1"))
        }
    }

    @Test(arguments: ["once", "on"])
    func `after a write a stream's last event equals the response to a GET`(mode: String) throws {
        let title = Monitor("v0")
        let origin = try Origin { request in
            if request.method == "PATCH" { title.withLock { $0 = "v1" } }
            return request.method == "PATCH" ? .empty(204) : .json(Self.list(title.current), Fresh.hour)
        }
        let larder = try Larder(config: Self.config(origin))
        _ = try larder.get("/users")
        let stream = mode == "on" ? try Follower(larder, "/users") : nil
        if let stream { #expect(stream.wait(for: 2)) }
        #expect(try larder.request("PATCH", "/users/1", body: "{}").status == 204)
        if let stream {
            #expect(stream.wait(for: Self.list("v1")))
        } else {
            #expect(try larder.get("/users", ["Larder-Live": "once"]).events.last?.text == Self.list("v1"))
        }
        #expect(try larder.get("/users").text == Self.list("v1"))
    }

    @Test func `a once stream says fresh if the upstream sent other bytes than were shown`() throws {
        let blog = try Changing(["/users/1": #"{"id":1,"title":"v1"}"#, "/users": Self.list("v1")])
        let larder = try Larder(config: Self.config(blog.origin))
        _ = try larder.get("/users/1")
        _ = try larder.get("/users")
        // A list that lags behind the detail: which one is newer is in doubt.
        blog["/users"] = Self.list("v0")
        _ = try larder.get("/users/1", Self.again)
        let events = try larder.get("/users", ["Larder-Live": "once"]).events
        #expect(events.map(\.name) == ["cached", "fresh"])
        #expect(events.first?.text == Self.list("v1"))
        #expect(events.last?.text == Self.list("v0"))
        // The settled value is what a GET from the cache alone shows.
        #expect(try larder.get("/users", ["Cache-Control": "only-if-cached"]).text == Self.list("v1"))
    }
}
