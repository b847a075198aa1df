import Foundation
import TestSupport
import Testing

/// One identity, one object: what one response learns, every other response shows.
@Suite(.scripts) struct CoherenceTests {
    /// An origin whose answers the scenario changes as it goes.
    final class Changing: Sendable {
        let bodies: Monitor<[String: String]>
        let origin: Origin

        init(_ bodies: [String: String], _ fields: FieldLines = Fresh.hour) throws {
            let bodies = Monitor(bodies)
            let versions = Monitor(0)
            self.bodies = bodies
            origin = try Origin { request in
                guard let body = bodies.current[request.target] else { return .empty(404, ["Content-Length": "0"]) }
                return .json(body, fields + ["ETag": "\"v\(versions.next())\""])
            }
        }

        subscript(path: String) -> String {
            get { bodies.current[path] ?? "" }
            set { bodies.withLock { $0[path] = newValue } }
        }
    }

    static let list =
        #"[{"id": 1, "login":"ada","score":0.50, "name" : "Ada", "likes": 1.0}, {"id":2,"login":"bela","name":null}]"#

    @Test func `a fresh list shows a detail's newer values, and is otherwise unchanged`() throws {
        let blog = try Changing(["/users": Self.list, "/users/1": #"{"id":1,"login":"ada","name":"Ada L."}"#])
        let larder = try Larder(config: Configs.blog(blog.origin))

        let received = try larder.get("/users")
        #expect(received.text == Self.list)
        #expect(try larder.get("/users/1").text == #"{"id":1,"login":"ada","name":"Ada L."}"#)

        let expected = Self.list.replacingOccurrences(of: #""Ada""#, with: #""Ada L.""#)
        #expect(try larder.get("/users").text == expected)
        let composed = try larder.get("/users")
        #expect(composed.text == expected)
        #expect(composed.isHit)
        #expect(composed.cacheStatus.contains("detail=composed"))
        #expect(composed["ETag"]?.hasPrefix("\"larder-") == true)
        #expect(composed["Last-Modified"] == nil)
        #expect(composed["Content-Length"] == "\(composed.body.count)")
        #expect(blog.origin.count("/users") == 1)

        let raw = try larder.get("/users", ["Larder-View": "raw"])
        #expect(raw.text == Self.list)
    }

    @Test(arguments: ["64MiB", "0"])
    func `the raw view shows the bytes as received, also in place of a failure`(memory: String) throws {
        let fails = Monitor(false)
        let origin = try Origin { request in
            if fails.current { return .json("{}", status: 503) }
            return request.path == "/users"
                ? .json(Self.list, Fresh.never) : .json(#"{"id":1,"login":"ada","name":"Ada L."}"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin) + "\nmemory: { maximum_size: \(memory) }\n")
        _ = try larder.get("/users")
        _ = try larder.get("/users/1")
        #expect(try larder.waitForDocuments(2))
        fails.withLock { $0 = true }
        #expect(try larder.get("/users").text.contains("Ada L."))
        let raw = try larder.get("/users", ["Larder-View": "raw"])
        #expect(raw.text == Self.list)
        #expect(!raw.cacheStatus.contains("composed"))
    }

    @Test func `conditions on a composed response concern the composed bytes`() throws {
        let blog = try Changing(["/users": Self.list, "/users/1": #"{"id":1,"login":"ada","name":"Ada L."}"#])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let received = try larder.get("/users")
        let before = try #require(received["ETag"])
        _ = try larder.get("/users/1")
        #expect(try larder.get("/users").cacheStatus.contains("composed"))
        let composed = try larder.get("/users")
        let after = try #require(composed["ETag"])

        #expect(try larder.get("/users", ["If-None-Match": before]).status == 200)
        let unchanged = try larder.get("/users", ["If-None-Match": after])
        #expect(unchanged.status == 304)
        #expect(unchanged["ETag"] == after)
        #expect(try larder.request("HEAD", "/users")["Content-Length"] == "\(composed.body.count)")

        // Larder's own tag never goes upstream, in whatever field.
        _ = try larder.get("/users", ["If-None-Match": after, "Cache-Control": "no-cache"])
        let write = try larder.request("PATCH", "/users", ["If-Match": after], body: "[]")
        #expect(write.status == 412)
        #expect(blog.origin.requests.allSatisfy { $0["If-None-Match"]?.contains("larder-") != true })
        #expect(blog.origin.requests.allSatisfy { $0["If-Match"] == nil })
        #expect(blog.origin.count(method: "PATCH") == 0)
    }

    @Test func `a composed response survives a restart`() throws {
        let blog = try Changing(["/users": Self.list, "/users/1": #"{"id":1,"name":"Ada L."}"#])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users")
        _ = try larder.get("/users/1")
        #expect(try larder.get("/users").cacheStatus.contains("composed"))
        let composed = try larder.get("/users")
        #expect(larder.terminate() == .exited(0))
        blog.origin.stop()
        try larder.start()
        let again = try larder.get("/users")
        #expect(again.text == composed.text)
        #expect(again["ETag"] == composed["ETag"])
    }

    @Test func `only declared members move between documents, and local ones never`() throws {
        let blog = try Changing([
            "/search/users": #"{"total_count":1,"items":[{"id":1,"login":"ada","score":0.5,"rank":7}]}"#,
            "/users/1": #"{"id":1,"login":"ada2","score":9,"rank":9}"#,
        ])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/search/users")
        _ = try larder.get("/users/1")
        #expect(try larder.get("/search/users").cacheStatus.contains("composed"))
        #expect(
            try larder.get("/search/users").text
                == #"{"total_count":1,"items":[{"id":1,"login":"ada2","score":0.5,"rank":7}]}"#
        )
    }

    @Test func `an absent member changes nothing, and null is a value`() throws {
        let blog = try Changing([
            "/users": #"[{"id":1,"login":"ada","name":"Ada","company":"Engines"}]"#,
            "/users/1": #"{"id":1,"name":null}"#,
        ])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users")
        _ = try larder.get("/users/1")
        #expect(try larder.get("/users").cacheStatus.contains("composed"))
        #expect(try larder.get("/users").text == #"[{"id":1,"login":"ada","name":null,"company":"Engines"}]"#)
        #expect(try larder.get("/users/1").text == #"{"id":1,"name":null}"#)
    }

    @Test func `an equal value with another spelling changes nothing`() throws {
        let blog = try Changing([
            "/posts": #"[{"id":1,"likes":1.0,"title":"caf\u00e9 \/"}]"#,
            "/posts/1": #"{"id":1,"likes":1,"title":"café /"}"#,
        ])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let list = try larder.get("/posts")
        _ = try larder.get("/posts/1")
        let again = try larder.get("/posts")
        #expect(again.text == list.text)
        #expect(again["ETag"] == list["ETag"])
        #expect(!again.cacheStatus.contains("composed"))
    }

    @Test func `values of a list and a detail that overlap are in doubt, and a fetch settles them`() throws {
        let blog = try Changing(["/users/1": #"{"id":1,"name":"new"}"#])
        let gate = Gate()
        let bodies = blog.bodies
        blog.origin.behave { request in
            request.path == "/users"
                ? OriginResponse.json(#"[{"id":1,"name":"old"}]"#, Fresh.hour).after(gate)
                : .json(bodies.current[request.path] ?? "", Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(blog.origin))
        let slow = Background { try larder.get("/users") }
        blog.origin.waitForRequests(1, "/users")
        _ = try larder.get("/users/1")
        gate.open()
        #expect(try slow.value().text.contains("old"))
        // The two overlapped and disagree: nobody knows which is newer until one is asked for again.
        let asked = try larder.get("/users/1")
        #expect(asked.text == #"{"id":1,"name":"new"}"#)
        #expect(!asked.isHit)
        for path in ["/users", "/users/1"] {
            let settled = try larder.get(path)
            #expect(settled.text.contains(#""name":"new""#))
            #expect(settled.isHit)
            #expect(!settled.cacheStatus.contains("doubt"))
        }
        #expect(blog.origin.count("/users") == 1)
    }

    @Test func `a list lags behind a detail and does not override it`() throws {
        let blog = try Changing(["/users/1": #"{"id":1,"name":"new"}"#, "/users": #"[{"id":1,"name":"old"}]"#])
        let larder = try Larder(config: Configs.blog(blog.origin, upstream: ["lag: 1h"]))
        _ = try larder.get("/users/1")
        _ = try larder.get("/users")
        // Which of the two is newer nobody knows: the detail is asked for again, the list once, and then no more.
        for _ in 0..<2 { #expect(try larder.get("/users/1").text == #"{"id":1,"name":"new"}"#) }
        for _ in 0..<3 { #expect(try larder.get("/users").text == #"[{"id":1,"name":"new"}]"#) }
        #expect(blog.origin.count("/users") == 1)
        #expect(blog.origin.count("/users/1") == 2)
    }

    @Test func `objects with a modification time are ordered by it, not by arrival`() throws {
        let blog = try Changing([
            "/notes": #"[{"id":1,"text":"newer","updated_at":"2024-05-02T00:00:00Z"}]"#,
            "/notes/1": #"{"id":1,"text":"older","updated_at":"2024-05-01T23:59:59Z"}"#,
        ])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/notes")
        _ = try larder.get("/notes/1")
        #expect(try larder.get("/notes").text.contains("newer"))
        #expect(try larder.get("/notes/1").text.contains("newer"))
    }

    @Test func `a nested object shares its values with the object itself`() throws {
        let blog = try Changing([
            "/posts":
                #"[{"id":7,"title":"t","author":{"id":1,"login":"ada","name":"Ada"},"tags":[{"name":"x","color":"red"}]}]"#,
            "/users/1": #"{"id":1,"login":"ada","name":"Ada L.","email":"ada@example.org"}"#,
            "/posts/7": #"{"id":7,"title":"t2","tags":[{"name":"x","color":"blue"}]}"#,
        ])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/posts")
        _ = try larder.get("/users/1")
        _ = try larder.get("/posts/7")
        let expected =
            #"[{"id":7,"title":"t2","author":{"id":1,"login":"ada","name":"Ada L."},"tags":[{"name":"x","color":"blue"}]}]"#
        #expect(try larder.get("/posts").text == expected)
        #expect(try larder.get("/posts").text == expected)
        #expect(blog.origin.count("/posts") == 1)
    }

    @Test func `a changed reference shows the other object, or the document is fetched again`() throws {
        let blog = try Changing([
            "/posts": #"[{"id":7,"title":"t","author":{"id":1,"login":"ada"}}]"#,
            "/users/2": #"{"id":2,"login":"bela"}"#,
            "/posts/7": #"{"id":7,"author":2}"#, "/posts/8": #"{"id":7,"author":3}"#,
        ])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/posts")
        _ = try larder.get("/users/2")
        _ = try larder.get("/posts/7")
        #expect(
            try larder.get("/posts").text == #"[{"id":7,"title":"t","author":{"id":2,"login":"bela"}}]"#
        )
        // Of user 3 nothing is known: the list cannot be made up, so it is asked for.
        let asked = blog.origin.count("/posts")
        blog["/posts"] = #"[{"id":7,"title":"t","author":{"id":3,"login":"carl"}}]"#
        _ = try larder.get("/posts/8")
        #expect(try larder.get("/posts").text.contains("carl"))
        #expect(blog.origin.count("/posts") == asked + 1)
    }

    @Test func `a member that occurs twice, or disagrees with itself, is not observed`() throws {
        let blog = try Changing([
            "/users": #"[{"id":1,"name":"Ada"}]"#, "/users/1": #"{"id":1,"name":"x","name":"y"}"#,
            "/search/users": #"{"items":[{"id":1,"name":"p"},{"id":1,"name":"q"}]}"#,
        ])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users")
        for path in ["/users/1", "/search/users"] {
            #expect(try larder.get(path).text == blog[path])
            #expect(try larder.get(path).isHit)
        }
        #expect(try larder.get("/users").text == #"[{"id":1,"name":"Ada"}]"#)
        for path in ["/users/1", "/search/users"] { #expect(try larder.get(path).text == blog[path]) }
    }

    @Test func `a stale, dirty response is fetched without conditions`() throws {
        let blog = try Changing(
            ["/users": #"[{"id":1,"name":"Ada"}]"#, "/users/1": #"{"id":1,"name":"Ada L."}"#],
            // Stale when it comes.
            Fresh.never
        )
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users")
        _ = try larder.get("/users/1")
        #expect(try larder.waitForDocuments(2))
        blog["/users"] = #"[{"id":1,"name":"Ada L."},{"id":2,"name":"Bela"}]"#
        #expect(try larder.get("/users").text.contains("Bela"))
        #expect(blog.origin.requests.last?["If-None-Match"] == nil)
    }

    @Test func `objects are not shared between contexts`() throws {
        let blog = try Changing(["/users": #"[{"id":1,"name":"Ada"}]"#, "/users/1": #"{"id":1,"name":"Augusta"}"#])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users", ["Accept-Language": "en"])
        _ = try larder.get("/users/1", ["Accept-Language": "de"])
        #expect(try larder.get("/users", ["Accept-Language": "en"]).text == #"[{"id":1,"name":"Ada"}]"#)
    }

    @Test func `a request that accepts JSON has the same context as one without Accept`() throws {
        let blog = try Changing(["/users": #"[{"id":1,"name":"Ada"}]"#, "/users/1": #"{"id":1,"name":"Augusta"}"#])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users")
        _ = try larder.get("/users/1", ["Accept": "application/json"])
        #expect(try larder.get("/users").text == #"[{"id":1,"name":"Augusta"}]"#)
    }

    @Test func `without models no response is ever changed`() throws {
        let blog = try Changing(["/users": Self.list, "/users/1": #"{"id":1,"name":"Ada L."}"#])
        let larder = try Larder(blog.origin)
        _ = try larder.get("/users")
        _ = try larder.get("/users/1")
        #expect(try larder.waitForDocuments(2))
        #expect(try larder.get("/users").text == Self.list)
    }
}
