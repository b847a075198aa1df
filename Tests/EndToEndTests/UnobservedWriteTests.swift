import Foundation
import TestSupport
import Testing

/// Writes of which nobody is told what they did: what shows their objects is stale, not wrong.
@Suite(.scripts) struct UnobservedWriteTests {
    /// An origin with one user at several places, and writes that it answers as the scenario wants.
    final class Users: Sendable {
        let name = Monitor("old")
        let write = Monitor<OriginResponse>(.empty(204))
        let origin: Origin

        init() throws {
            let (name, write) = (name, write)
            origin = try Origin { request in
                guard ["GET", "HEAD"].contains(request.method) else {
                    name.withLock { $0 = String(decoding: request.body, as: UTF8.self) }
                    return write.current
                }
                let user = #"{"id":1,"login":"ada","name":"\#(name.current)"}"#
                switch request.path {
                case "/users": return .json("[\(user)]", Fresh.hour)
                case "/search/users": return .json(#"{"items":[\#(user)]}"#, Fresh.hour)
                case "/nothing": return .json(#"{"items":[]}"#, Fresh.hour)
                default: return .json(user, Fresh.hour)
                }
            }
        }

        static let bound = #"routes: [{ path: "people/{login}", model: User, object: { login: login } }]"#

        /// A daemon that knows the user from a search.
        func larder() throws -> Larder {
            let larder = try Larder(origin, config: Configs.blog(origin, upstream: [Self.bound]))
            _ = try larder.get("/search/users")
            #expect(try larder.waitForObjects(1, of: "User"))
            #expect(try larder.get("/search/users").isHit)
            return larder
        }
    }

    static func search(_ name: String) -> String { #"{"items":[{"id":1,"login":"ada","name":"\#(name)"}]}"# }

    @Test func `after a write without a body, every response that shows its object is fetched again`() throws {
        let users = try Users()
        let larder = try users.larder()
        _ = try larder.get("/nothing")
        #expect(try larder.request("PATCH", "/people/ada", body: "new").status == 204)
        // Without waiting: the response was withheld until this holds.
        #expect(try larder.get("/search/users").text == Self.search("new"))
        #expect(try larder.get("/search/users").isHit)
        #expect(try larder.get("/nothing").isHit)
        // A second write in a row does the same.
        #expect(try larder.request("PATCH", "/people/ada", body: "newer").status == 204)
        #expect(try larder.get("/search/users").text == Self.search("newer"))
    }

    @Test func `after a write without a body, fetches have no conditions, and only-if-cached gets 504`() throws {
        let users = try Users()
        let larder = try users.larder()
        #expect(try larder.request("PATCH", "/people/ada", body: "new").status == 204)
        #expect(try larder.get("/search/users", ["Cache-Control": "only-if-cached"]).status == 504)
        _ = try larder.get("/search/users")
        #expect(users.origin.requests.last?["If-None-Match"] == nil)
    }

    @Test func `while the upstream is away, a response from before a write without a body is served as received`()
        throws
    {
        let users = try Users()
        let larder = try users.larder()
        #expect(try larder.request("PATCH", "/people/ada", body: "new").status == 204)
        users.origin.stop()
        let stale = try larder.get("/search/users")
        #expect(stale.status == 200)
        #expect(stale.text == Self.search("old"))
        #expect(stale.cacheStatus.contains("detail="))
    }

    @Test func `while the upstream is away, a response shows a detail's values from after the write`() throws {
        let users = try Users()
        let larder = try users.larder()
        #expect(try larder.request("PATCH", "/people/ada", body: "new").status == 204)
        #expect(try larder.get("/users/1").text.contains(#""name":"new""#))
        #expect(try larder.waitForQuiet())
        users.origin.stop()
        let search = try larder.get("/search/users")
        #expect(search.text == Self.search("new") && search.cacheStatus.contains("composed"), "\(search.cacheStatus)")
    }

    @Test(arguments: ["a", "b"])
    func `with the upstream away, a response after a write is not older than one served before the write`(
        writer: String
    ) throws {
        let users = try Users()
        let larder = try Larder(config: Configs.blog(users.origin, upstream: [Users.bound]))
        let ada: FieldLines = ["Authorization": "Bearer a"]
        _ = try larder.get("/search/users", ada)
        #expect(try larder.waitForObjects(1, of: "User"))
        users.name.withLock { $0 = "new" }
        _ = try larder.get("/users/1", ada)
        #expect(try eventually { try larder.get("/search/users", ada).text == Self.search("new") })
        let fields: FieldLines = ["Authorization": "Bearer \(writer)"]
        #expect(try larder.request("PATCH", "/people/ada", fields, body: "newest").status == 204)
        users.origin.stop()
        let search = try larder.get("/search/users", ada)
        #expect(search.text == Self.search("new") && search.cacheStatus.contains("detail="), "\(search.cacheStatus)")
    }

    @Test func `a write's object is known from the document at its path`() throws {
        let users = try Users()
        let larder = try users.larder()
        _ = try larder.get("/users/1")
        #expect(try larder.waitForDocuments(2))
        #expect(try larder.request("PUT", "/users/1", body: "new").status == 204)
        #expect(try larder.get("/search/users").text == Self.search("new"))
    }

    @Test(arguments: [#"{"id":1}"#, #"{"ok":true}"#, "[]"])
    func `a write's body without members of the object counts as no body`(body: String) throws {
        let users = try Users()
        let larder = try users.larder()
        users.write.withLock { $0 = .json(body) }
        #expect(try larder.request("PATCH", "/people/ada", body: "new").status == 200)
        #expect(try larder.get("/search/users").text == Self.search("new"))
    }

    @Test func `members that a write's response leaves out are fetched again`() throws {
        let users = try Users()
        let larder = try users.larder()
        users.write.withLock { $0 = .json(#"{"id":1,"login":"ada"}"#) }
        #expect(try larder.request("PATCH", "/people/ada", body: "new").status == 200)
        let search = try larder.get("/search/users")
        #expect(!search.isHit && search.text == Self.search("new"))
        #expect(try larder.get("/search/users").isHit)
        users.write.withLock { $0 = .json(#"{"id":1,"name":"newer"}"#) }
        #expect(try larder.request("PATCH", "/people/ada", body: "newest").status == 200)
        #expect(try larder.get("/search/users").text == Self.search("newest"))
    }

    @Test func `a list that lags behind a write with a partial response is fetched until a detail shows the members`()
        throws
    {
        let users = try Users()
        let larder = try Larder(config: Configs.blog(users.origin, upstream: [Users.bound, "lag: 1h"]))
        _ = try larder.get("/users")
        #expect(try larder.get("/users").isHit)
        users.write.withLock { $0 = .json(#"{"id":1,"login":"ada"}"#) }
        #expect(try larder.request("PATCH", "/users/1", body: "new").status == 200)
        for _ in 0..<2 {
            let list = try larder.get("/users")
            #expect(!list.isHit && list.text.contains("new"))
        }
        _ = try larder.get("/users/1")
        #expect(try eventually { try larder.get("/users").isHit })
    }

    @Test func `a member that a write leaves out is fetched again, also after a write without a body`() throws {
        let users = try Users()
        let larder = try Larder(config: Configs.blog(users.origin, upstream: [Users.bound, "lag: 1h"]))
        _ = try larder.get("/search/users")
        #expect(try larder.waitForObjects(1, of: "User"))
        #expect(try larder.request("PATCH", "/people/ada", body: "new").status == 204)
        #expect(try larder.get("/search/users").text == Self.search("new"))
        users.write.withLock { $0 = .json(#"{"id":1,"login":"ada"}"#) }
        #expect(try larder.request("PATCH", "/people/ada", body: "newest").status == 200)
        for _ in 1...2 { #expect(try larder.get("/search/users").text == Self.search("newest")) }
    }

    @Test func `a list that lags behind a write may be the first to show a member that the write left out`() throws {
        let origin = try Origin { request in
            guard request.method == "GET" else { return .json(#"{"id":1,"login":"ada"}"#) }
            let user = #"{"id":1,"login":"ada","name":"old"}"#
            return .json(request.path == "/users" ? "[\(user)]" : user, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: [Users.bound, "lag: 1h"]))
        #expect(try larder.request("PATCH", "/people/ada", body: "new").status == 200)
        for _ in 0..<2 { #expect(try !larder.get("/users").isHit) }
        _ = try larder.get("/users/1")
        #expect(try larder.waitForQuiet())
        _ = try larder.get("/users")
        #expect(try larder.get("/users").isHit)
    }

    @Test func `a write that began before another may be the first to show a member that the other left out`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            switch String(decoding: request.body, as: UTF8.self) {
            case "first":
                gate.wait()
                return .json(#"{"id":1,"login":"ada","name":"old"}"#)
            case "second": return .json(#"{"id":1,"login":"ada"}"#)
            default: return .json(#"[{"id":1,"login":"ada","name":"new"}]"#, Fresh.hour)
            }
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: [Users.bound, "lag: 1h"]))
        let first = Background { try larder.request("PATCH", "/people/ada", body: "first").status }
        #expect(eventually { origin.requests.count == 1 })
        #expect(try larder.request("PATCH", "/people/ada", body: "second").status == 200)
        gate.open()
        #expect(try first.value() == 200)
        // The first response was made before the second write.
        for _ in 1...3 { #expect(try larder.get("/users").text.contains("new")) }
    }

    @Test func `values that a write's response showed are not served after a later write without a body`() throws {
        let users = try Users()
        let larder = try users.larder()
        users.write.withLock { $0 = .json(#"{"id":1,"login":"ada","name":"first"}"#) }
        #expect(try larder.request("PATCH", "/people/ada", body: "first").status == 200)
        #expect(try larder.get("/search/users").text == Self.search("first"))
        users.write.withLock { $0 = .empty(204) }
        #expect(try larder.request("PATCH", "/people/ada", body: "second").status == 204)
        // Within the lag of the first response.
        for _ in 1...3 { #expect(try larder.get("/search/users").text == Self.search("second")) }
        #expect(try larder.get("/users").text.contains("second"))
        for _ in 1...3 { #expect(try larder.get("/users").text.contains("second")) }
    }

    @Test func `a write whose response never came leaves its object unknown`() throws {
        let users = try Users()
        let larder = try users.larder()
        users.write.withLock { $0 = .reset }
        #expect(try larder.request("PATCH", "/people/ada", body: "new").status == 502)
        #expect(try larder.get("/search/users").text == Self.search("new"))
    }

    @Test func `a write that a crash cut off leaves its object unknown after the next start`() throws {
        let users = try Users()
        let larder = try users.larder()
        let gate = Gate()
        users.write.withLock { $0 = OriginResponse.empty(204).after(gate) }
        let write = Background { try larder.request("PATCH", "/people/ada", body: "new") }
        #expect(users.origin.waitForRequests(1, "/people/ada"))
        larder.kill()
        gate.open()
        #expect(throws: (any Error).self) { try write.value() }
        try larder.start()
        #expect(try larder.get("/search/users").text == Self.search("new"))
        // Its own restarts do not undo it, nor do they make it stale again.
        try larder.restart()
        #expect(try larder.get("/search/users").isHit)
    }

    @Test func `a list that may lag behind a write without a body is fetched until a detail shows it, details once`()
        throws
    {
        let users = try Users()
        let larder = try Larder(config: Configs.blog(users.origin, upstream: [Users.bound, "lag: 1h"]))
        _ = try larder.get("/search/users")
        #expect(try larder.get("/search/users").isHit)
        #expect(try larder.request("PATCH", "/people/ada", body: "new").status == 204)
        #expect(try larder.get("/search/users").text == Self.search("new"))
        let again = try larder.get("/search/users")
        #expect(!again.isHit && again.text == Self.search("new"))
        #expect(try !larder.get("/users/1").isHit)
        let detail = try larder.get("/users/1")
        #expect(detail.isHit && detail.text.contains(#""name":"new""#))
        _ = try larder.get("/search/users")
        let list = try larder.get("/search/users")
        #expect(list.isHit && !list.cacheStatus.contains("doubt"))
    }

    @Test(arguments: ["PATCH", "DELETE"])
    func `a list that lags behind a write to an unknown object is not trusted after a restart either`(method: String)
        throws
    {
        let origin = try Origin { request in
            request.method == "GET" ? .json(#"[{"id":1,"login":"ada","name":"old"}]"#, Fresh.hour) : .empty(204)
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: [Users.bound, "lag: 1h"]))
        #expect(try larder.request(method, "/people/ada", body: "new").status == 204)
        try larder.restart()
        for _ in 1...2 { #expect(try !larder.get("/users").isHit) }
        larder.kill()
        try larder.start()
        for _ in 1...2 { #expect(try !larder.get("/users").isHit) }
    }

    @Test func `a stale list says doubt if another response has shown another value of an object in it`() throws {
        let isDown = Monitor(false)
        let origin = try Origin { request in
            guard !isDown.current else { return .reset }
            switch request.path {
            case "/users": return .json(#"[{"id":1,"login":"ada","name":"old"}]"#, Fresh.hour)
            case "/posts": return .json(#"[{"id":7,"author":{"id":1,"login":"ada","name":"new"}}]"#, Fresh.hour)
            default: return .empty(204)
            }
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: [Users.bound, "lag: 1h"]))
        let ada: FieldLines = ["Authorization": "ada"]
        // Another principal's write: since then, no list is certain to show the user as it is.
        #expect(try larder.request("PATCH", "/people/ada", ["Authorization": "bela"], body: "x").status == 204)
        _ = try larder.get("/users", ada)
        #expect(try larder.get("/posts", ada).text.contains("new"))
        #expect(try larder.waitForQuiet())
        isDown.withLock { $0 = true }
        let list = try larder.get("/users", ada)
        #expect(list.text == #"[{"id":1,"login":"ada","name":"old"}]"#)
        #expect(list.cacheStatus.contains("detail=stale+doubt"), "\(list.cacheStatus)")
    }

    @Test func `a list that lags behind a write without a body is fetched each time until a detail shows it`() throws {
        let users = try Users()
        let larder = try Larder(config: Configs.blog(users.origin, upstream: [Users.bound, "lag: 1h"]))
        _ = try larder.get("/users/1")
        _ = try larder.get("/search/users")
        _ = try larder.get("/users/1", ["Cache-Control": "no-cache"])
        #expect(try larder.request("PATCH", "/people/ada", body: "new").status == 204)
        // The detail had the last word before the write; nothing says that the list is not older.
        for _ in 1...3 {
            let list = try larder.get("/search/users")
            #expect(!list.isHit && list.text == Self.search("new"))
        }
        #expect(try larder.get("/users/1").text.contains(#""name":"new""#))
        let list = try larder.get("/search/users")
        #expect(list.isHit && list.text == Self.search("new"))
    }

    @Test func `a list that lags behind an own write is fetched, even if another principal has written since`()
        throws
    {
        let user = #"{"id":1,"login":"ada","name":"old"}"#
        let origin = try Origin { request in
            guard request.method == "GET" else { return .empty(204) }
            return .json(request.path == "/users" ? "[\(user)]" : user, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: [Users.bound, "lag: 1h"]))
        let mine: FieldLines = ["Authorization": "Bearer mine"]
        let theirs: FieldLines = ["Authorization": "Bearer theirs"]
        _ = try larder.get("/users", mine)
        #expect(try larder.get("/users", mine).isHit)
        for writer in [mine, theirs] {
            #expect(try larder.request("PATCH", "/people/ada", writer, body: "new").status == 204)
            for _ in 0..<2 { #expect(try !larder.get("/users", mine).isHit) }
        }
    }

    @Test func `a client reads its own write, even if another write without a body overlapped it`() throws {
        let users = try Users()
        let larder = try users.larder()
        let (gate, name) = (Gate(), users.name)
        users.origin.behave { request in
            switch (request.method, request.body) {
            case ("PATCH", Array("late".utf8)):
                OriginResponse.json(#"{"id":1,"login":"ada","name":"late"}"#).after(gate)
            case ("PATCH", _): .empty(204)
            default: .json(Self.search(name.current), Fresh.hour)
            }
        }
        let late = Background { try larder.request("PATCH", "/people/ada", body: "late") }
        #expect(users.origin.waitForRequests(1, "/people/ada"))
        name.withLock { $0 = "early" }
        #expect(try larder.request("PATCH", "/people/ada", body: "early").status == 204)
        // Newer than the untold write, and yet not known to be newer than the other one.
        #expect(try larder.get("/search/users").text == Self.search("early"))
        name.withLock { $0 = "late" }
        gate.open()
        #expect(try late.value().status == 200)
        for _ in 1...2 { #expect(try larder.get("/search/users").text == Self.search("late")) }
    }

    @Test func `a search requested before a write and received after it does not count as current`() throws {
        let users = try Users()
        let larder = try users.larder()
        let gate = Gate()
        let name = users.name
        users.origin.behave { request in
            if request.method == "PATCH" {
                name.withLock { $0 = "new" }
                return .empty(204)
            }
            let body = Self.search(name.current)
            return request.target.contains("slow")
                ? OriginResponse.json(body, Fresh.hour).after(gate) : .json(body, Fresh.hour)
        }
        let slow = Background { try larder.get("/search/users?q=slow") }
        #expect(users.origin.waitForRequests(2, "/search/users"))
        #expect(try larder.request("PATCH", "/people/ada", body: "new").status == 204)
        gate.open()
        #expect(try slow.value().text == Self.search("old"))
        for _ in 1...3 { #expect(try larder.get("/search/users?q=slow").text == Self.search("new")) }
    }

    @Test func `after a write in one language other languages and principals fetch again, and values never mix`() throws
    {
        let users = try Users()
        let larder = try users.larder()
        let german: FieldLines = ["Accept-Language": "de"]
        let other: FieldLines = ["Authorization": "Bearer b"]
        _ = try larder.get("/search/users", german)
        _ = try larder.get("/search/users", other)
        #expect(try larder.waitForDocuments(3))
        users.write.withLock { $0 = .json(#"{"id":1,"login":"ada","name":"new"}"#) }
        #expect(try larder.request("PATCH", "/people/ada", body: "neu").status == 200)
        // Told here: composed. Elsewhere: asked for.
        #expect(try larder.get("/search/users").text == Self.search("new"))
        #expect(users.origin.count("/search/users") == 3)
        #expect(try larder.get("/search/users", german).text == Self.search("neu"))
        #expect(try larder.get("/search/users", other).text == Self.search("neu"))
        #expect(users.origin.count("/search/users") == 5)
        #expect(try larder.get("/search/users", german).isHit)
        #expect(try larder.get("/search/users").isHit)
    }

    @Test func `paths that a route invalidates are fetched again, for every principal and query`() throws {
        let users = try Users()
        let rules = #"""
            routes: [{ path: "teams/{team}/members", method: POST, model: User, invalidates: ["teams/{team}/stats/**", "nothing"] }]
            """#
        let larder = try Larder(users.origin, config: Configs.blog(users.origin, upstream: [rules]))
        let other: FieldLines = ["Authorization": "Bearer b"]
        let paths = ["/teams/a/stats/x?page=2", "/teams/a/stats/x/y", "/nothing?x=1", "/teams/b/stats/x"]
        for path in paths {
            for fields in [[:], other] { _ = try larder.get(path, fields) }
        }
        #expect(try larder.waitForDocuments(8))
        users.write.withLock { $0 = .json(#"{"id":9,"login":"new","name":"n"}"#, status: 201) }
        #expect(try larder.request("POST", "/teams/a/members", body: "x").status == 201)
        for fields in [[:], other] {
            for path in paths.dropLast() { #expect(try !larder.get(path, fields).isHit) }
            #expect(try larder.get("/teams/b/stats/x", fields).isHit)
        }
    }

    @Test func `after a PUT that creates an object, the collection above it is fetched again`() throws {
        let users = try Users()
        let larder = try users.larder()
        _ = try larder.get("/users")
        #expect(try larder.get("/users").isHit)
        users.write.withLock { $0 = .json(#"{"id":2,"login":"b","name":"b"}"#) }
        #expect(try larder.request("PUT", "/users/2", body: "b").status == 200)
        #expect(try larder.get("/users").isHit)
        users.write.withLock { $0 = .json(#"{"id":2,"login":"b","name":"b"}"#, status: 201) }
        #expect(try larder.request("PUT", "/users/2", body: "b").status == 201)
        #expect(try !larder.get("/users").isHit)
    }
}
