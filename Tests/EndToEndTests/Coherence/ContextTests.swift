import Foundation
import TestSupport
import Testing

/// The same object in two representations, or for two users: what one learns the other never shows.
@Suite(.scripts) struct ContextTests {
    /// An origin that has bodies of its own for each value of a field.
    private final class Divided: Sendable {
        let bodies = Monitor([String: String]())
        let origin: Origin

        init(by field: String, _ fields: FieldLines = Fresh.hour) throws {
            let bodies = bodies
            origin = try Origin { request in
                let body = bodies.current["\(request[field] ?? "none") \(request.target)"]
                return body.map { .json($0, fields + ["ETag": "\"\(request[field] ?? "none")\""]) }
                    ?? .json("{}", status: 404)
            }
        }

        subscript(who: String, path: String) -> String {
            get { bodies.current["\(who) \(path)"] ?? "" }
            set { bodies.withLock { $0["\(who) \(path)"] = newValue } }
        }
    }

    @Test(
        arguments: [
            ("Accept-Language", "en", "de", Fresh.hour),
            ("Accept", "application/vnd.api.v1+json", "application/vnd.api.v2+json", Fresh.hour),
            ("X-Api-Version", "1", "2", Fresh.hour), ("Stripe-Version", "2024-01-01", "2025-01-01", Fresh.hour),
            ("Time-Zone", "UTC", "Europe/Berlin", Fresh.hour),
            ("Authorization", "Bearer aaa", "Bearer bbb", Fresh.hour), ("X-Api-Key", "aaa", "bbb", Fresh.hour),
            // What only `Vary` says.
            ("X-Units", "metric", "imperial", Fresh.hour + ["Vary": "Accept-Encoding, X-Units, X-Absent"]),
        ] as [(String, String, String, FieldLines)]
    )
    func `values never move between contexts`(field: String, one: String, other: String, fields: FieldLines) throws {
        let blog = try Divided(by: field, fields)
        for who in [one, other] {
            blog[who, "/posts"] = #"[{"id":7,"title":"t \#(who)","author":{"id":1,"login":"l \#(who)"}}]"#
            blog[who, "/posts/7"] = #"{"id":7,"title":"t \#(who)"}"#
        }
        let larder = try Larder(blog.origin, config: Configs.blog(blog.origin))
        let (mine, theirs): (FieldLines, FieldLines) = ([field: one], [field: other])
        _ = try larder.get("/posts", mine)
        let before = try larder.get("/posts", theirs)
        #expect(before.text == blog[other, "/posts"])
        #expect(try larder.waitForDocuments(2))

        // One learns of a title, of another author, and of a user whom the other's document comes to show.
        blog[one, "/posts/7"] = #"{"id":7,"title":"new","author":2}"#
        blog[one, "/users/2"] = #"{"id":2,"login":"second"}"#
        _ = try larder.get("/users/2", mine)
        _ = try larder.get("/posts/7", mine)
        #expect(try larder.waitForDocuments(4))
        func check() throws {
            let composed = try larder.get("/posts", mine)
            #expect(composed.text == #"[{"id":7,"title":"new","author":{"id":2,"login":"second"}}]"#)
            #expect(composed.cacheStatus.contains("composed"))
            let same = try larder.get("/posts", theirs)
            #expect(same.body == before.body)
            #expect(same["ETag"] == before["ETag"])
            #expect(same.isHit)
            #expect(!same.cacheStatus.contains("composed"))
        }
        try check()
        try larder.restart()
        try check()

        // The other's reference leads to a user of whom only the first knows: that is a miss.
        blog[other, "/posts/7"] = #"{"id":7,"author":2}"#
        blog[other, "/posts"] = #"[{"id":7,"title":"asked","author":{"id":2,"login":"other's"}}]"#
        _ = try larder.get("/posts/7", theirs)
        #expect(try larder.waitForDocuments(5))
        #expect(try larder.get("/posts", theirs).text == blog[other, "/posts"])
        #expect(try larder.get("/posts", mine).text == #"[{"id":7,"title":"new","author":{"id":2,"login":"second"}}]"#)
    }

    @Test func `a request without a field that a response varies by has no separate context`() throws {
        let blog = try Divided(by: "X-Units")
        blog["none", "/users"] = #"[{"id":1,"name":"Ada"}]"#
        blog["none", "/users/1"] = #"{"id":1,"name":"Augusta"}"#
        let bodies = blog.bodies
        blog.origin.behave { request in
            // As GitHub does: longer lists for some.
            let vary = request.path == "/users" ? "Accept, X-Units" : "Accept, Accept-Encoding, X-Requested-With"
            return .json(bodies.current["none \(request.target)"] ?? "", Fresh.hour + ["Vary": vary])
        }
        let larder = try Larder(blog.origin, config: Configs.blog(blog.origin))
        _ = try larder.get("/users", ["Accept": "application/json"])
        _ = try larder.get("/users/1")
        #expect(try larder.waitForDocuments(2))
        #expect(try larder.get("/users", ["Accept": "application/json"]).text == #"[{"id":1,"name":"Augusta"}]"#)
    }

    @Test func `variants are found, replaced and removed, whatever they vary by`() throws {
        let origin = try Origin { request in
            .json(#"[{"id":1,"name":"\#(request["X-Units"] ?? "")"}]"#, Fresh.hour + ["Vary": "X-Units"])
        }
        let larder = try Larder(origin, config: Configs.blog(origin))
        for number in 0..<70 { #expect(try larder.get("/users", ["X-Units": "\(number)"]).status == 200) }
        #expect(try eventually { try larder.documents() == 64 })
        try larder.restart()
        #expect(try larder.get("/users", ["X-Units": "69"]).isHit)
        #expect(try larder.get("/users", ["X-Units": "1"]).isHit == false)
        #expect(try larder.request("PUT", "/users", ["X-Units": "69"], body: "[]").status == 200)
        #expect(try eventually { try larder.documents() == 0 })
        #expect(try larder.get("/users", ["X-Units": "68"]).isHit == false)
    }
}
