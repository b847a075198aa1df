import Foundation
import TestSupport
import Testing

/// Requests, writes and answers that overlap in time.
@Suite(.scripts) struct OverlapTests {
    /// Answers end before what they tell is taken in.
    private static let brief = "store: { withhold: 1ms }"

    /// Whoever speaks this language is answered in it, and slowly where there is a gate.
    private static func variant(_ request: Origin.Request, _ fields: FieldLines = Fresh.hour) -> OriginResponse {
        .text(String(repeating: request["X-Lang"] ?? "-", count: 100), fields + ["Vary": "X-Lang"])
    }

    @Test func `a client that joins while another variant arrives does not get that one`() throws {
        let gate = Gate()
        let origin = try Origin { Self.variant($0) }
        origin.behave { request in
            request["X-Lang"] == "a" ? Self.variant(request).split(at: 120, by: gate) : Self.variant(request)
        }
        let larder = try Larder(origin)
        let first = try larder.client()
        try first.send("GET /x HTTP/1.1\r\nHost: localhost\r\nX-Lang: a\r\n\r\n")
        #expect(try first.head().status == 200)
        #expect(try larder.get("/x", ["X-Lang": "b"]).text == String(repeating: "b", count: 100))
        gate.open()
        #expect(try first.bytes(100) == Array(String(repeating: "a", count: 100).utf8))
    }

    @Test func `a client that waits for the revalidation of one variant gets its own`() throws {
        let gate = Gate()
        let origin = try Origin {
            Self.variant($0, ["Cache-Control": "max-age=0", "ETag": "\"\($0["X-Lang"] ?? "")\""])
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["X-Lang": "a"])
        origin.behave { request in
            let fields: FieldLines = ["ETag": "\"\(request["X-Lang"] ?? "")\"", "Vary": "X-Lang"]
            guard request["If-None-Match"] != "\"a\"" else { return OriginResponse.notModified(fields).after(gate) }
            return Self.variant(request, fields)
        }
        let first = Background { try larder.get("/x", ["X-Lang": "a", "Cache-Control": "max-age=0"]) }
        origin.waitForRequests(2)
        let second = Background { try larder.get("/x", ["X-Lang": "b"]) }
        // It asks for itself, and is told of a tag of its own that it has come in vain.
        #expect(origin.waitForRequests(3))
        gate.open()
        #expect(try first.value().text.hasPrefix("aa"))
        #expect(try second.value().text.hasPrefix("bb"))
    }

    @Test func `a 304's restrictions apply although a write came before it`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            switch (request.method, request.number) {
            case ("GET", 0): .json(#"[{"id":1,"login":"ada","name":"old"}]"#, Fresh.tagged("l", 0))
            case ("GET", 1): OriginResponse.notModified(["Cache-Control": "max-age=0, must-revalidate"]).after(gate)
            case ("PATCH", _): .json(#"{"id":1,"login":"ada","name":"new"}"#)
            default: .reset
            }
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        #expect(try larder.waitForDocuments(1))
        let list = Background { try larder.get("/users") }
        #expect(origin.waitForRequests(2))
        #expect(try larder.request("PATCH", "/users/1", body: #"{"name":"new"}"#).status == 200)
        gate.open()
        // The 304 confirms nothing, and the whole cannot be had: it must not be served without asking any more.
        #expect(try list.value().status >= 500)
        #expect(try larder.get("/users").status >= 500)
    }

    @Test func `a response freshened by a 304 shows later changes of its objects`() throws {
        let origin = try Origin { request in
            if request.path == "/users/1" { return .json(#"{"id":1,"login":"ada","name":"new"}"#, Fresh.hour) }
            if request["If-None-Match"] != nil { return .notModified(Fresh.tagged("l")) }
            return .json(#"[{"id":1,"login":"ada","name":"old"}]"#, Fresh.tagged("l", 0))
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        #expect(try larder.waitForObjects(1, of: "User"))
        #expect(try larder.get("/users").cacheStatus.contains("fwd-status=304"))
        #expect(try larder.get("/users").isHit)
        _ = try larder.get("/users/1")
        #expect(try larder.get("/users").text == #"[{"id":1,"login":"ada","name":"new"}]"#)
    }

    @Test(arguments: ["64MiB", "0"])
    func `after a response that a concurrent write outdates, the one before it is not served again`(memory: String)
        throws
    {
        let (write, read) = (Gate(), Gate())
        // So many that they are still being taken apart when the next request comes.
        let others = (2...5_000).map { #"{"id":\#($0),"login":"u\#($0)","name":"n"}"# }.joined(separator: ",")
        func list(_ name: String) -> OriginResponse {
            .json(#"{"items":[{"id":1,"login":"ada","name":"\#(name)"},\#(others)]}"#, Fresh.hour)
        }
        let first = list("first")
        let origin = try Origin { _ in first }
        let larder = try Larder(
            config: "memory: { maximum_size: \(memory) }\n" + Configs.blog(origin, top: [Self.brief])
        )
        _ = try larder.get("/search/users")
        #expect(try larder.waitForDocuments(1))
        let second = list("second")
        origin.behave { request in
            request.method == "PATCH" ? OriginResponse.json(#"{"id":7}"#).after(write) : second.after(read)
        }
        let patch = Background { try larder.request("PATCH", "/posts/7", body: "{}") }
        origin.waitForRequests(2)
        let again = Background { try larder.get("/search/users", ["Cache-Control": "no-cache"]) }
        origin.waitForRequests(3)
        write.open()
        #expect(try patch.value().status == 200)
        read.open()
        #expect(try again.value().text.contains(#""name":"second""#))
        #expect(try larder.get("/search/users").text.contains(#""name":"second""#))
    }

    @Test(arguments: ["64MiB", "0"])
    func `a 304 does not freshen a response that a write changed meanwhile, in memory or not`(memory: String)
        throws
    {
        let gate = Gate()
        let old = OriginResponse.json(#"[{"id":1,"login":"ada","name":"old"}]"#, Fresh.tagged("l"))
        let origin = try Origin { _ in old }
        let larder = try Larder(config: "memory: { maximum_size: \(memory) }\n" + Configs.blog(origin))
        _ = try larder.get("/users")
        #expect(try larder.waitForDocuments(1))
        origin.behave { request in
            if request.method == "PATCH" { return .json(#"{"id":1,"login":"ada","name":"new"}"#) }
            if request["If-None-Match"] != nil { return OriginResponse.notModified(Fresh.tagged("l")).after(gate) }
            return .json(#"[{"id":1,"login":"ada","name":"new"}]"#, Fresh.tagged("m"))
        }
        let list = Background { try larder.get("/users", ["Cache-Control": "no-cache"]) }
        origin.waitForRequests(2)
        #expect(try larder.request("PATCH", "/users/1", body: "{}").status == 200)
        gate.open()
        #expect(try list.value().text == #"[{"id":1,"login":"ada","name":"new"}]"#)
    }

    @Test(arguments: ["64MiB", "0"])
    func `a 304 does not count once newer values that arrived before it are stored`(memory: String) throws {
        let gate = Gate()
        let origin = try Origin { request in
            if request.path == "/users/1" { return .json(#"{"id":1,"login":"ada","name":"new"}"#, Fresh.hour) }
            if request["If-None-Match"] != nil { return OriginResponse.notModified(Fresh.tagged("l")).after(gate) }
            let name = request.number == 0 ? "old" : "new"
            return .json(#"[{"id":1,"login":"ada","name":"\#(name)"}]"#, Fresh.tagged("l", 0))
        }
        let larder = try Larder(
            config: "memory: { maximum_size: \(memory) }\n" + Configs.blog(origin, top: [Self.brief])
        )
        _ = try larder.get("/users")
        #expect(try larder.waitForDocuments(1))
        let list = Background { try larder.get("/users", ["Cache-Control": "no-cache"]) }
        origin.waitForRequests(2)
        let lock = try CommitLock(larder)
        #expect(try larder.get("/users/1").text.contains("new"))
        gate.open()
        #expect(try list.value().cacheStatus.contains("fwd-status=304"))
        #expect(lock.isHeld)
        lock.release()
        #expect(try larder.waitForDocuments(2))
        _ = try larder.request("POST", "/notes", body: "{}")
        // It would be good for an hour, if the 304 had counted.
        let next = try larder.get("/users")
        #expect(!next.isHit && next.text.contains("new"))
        #expect(origin.requests.last?["If-None-Match"] == nil)
    }

    @Test func `a list requested before a write, and received after it, does not hide the write`() throws {
        let gate = Gate()
        // So many that they are still being taken apart when the next request comes.
        let others = (2...5_000).map { #"{"id":\#($0),"login":"u\#($0)","name":"n"}"# }.joined(separator: ",")
        let origin = try Origin { request in
            if request.method == "PATCH" { return .json(#"{"id":1,"login":"ada","name":"new"}"#) }
            let list = #"{"items":[{"id":1,"login":"ada","name":"old"},\#(others)]}"#
            return OriginResponse.json(list, Fresh.hour).after(gate)
        }
        let larder = try Larder(config: Configs.blog(origin, top: [Self.brief]))
        let list = Background { try larder.get("/search/users") }
        origin.waitForRequests(1)
        #expect(try larder.request("PATCH", "/users/1", body: "{}").status == 200)
        gate.open()
        #expect(try list.value().text.contains(#""name":"old""#))
        origin.behave { _ in .json(#"{"items":[{"id":1,"login":"ada","name":"new"}]}"#, Fresh.hour) }
        #expect(try larder.get("/search/users").text.hasPrefix(#"{"items":[{"id":1,"login":"ada","name":"new"}"#))
    }

    @Test func `two reads with a write between them are ordered`() throws {
        let gate = Gate()
        let name = Monitor("old")
        let origin = try Origin { request in
            if request.method == "PATCH" { name.withLock { $0 = "new" } }
            let user = #"{"id":1,"login":"ada","name":"\#(name.current)"}"#
            if request.path == "/posts/7" {
                return OriginResponse.json(#"{"id":7,"author":\#(user)}"#, Fresh.hour).after(gate)
            }
            return .json(request.path == "/users" ? "[\(user)]" : user, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        #expect(try larder.waitForObjects(1, of: "User"))
        let slow = Background { try larder.get("/posts/7") }
        origin.waitForRequests(1, "/posts/7")
        #expect(try larder.request("PATCH", "/users/1", body: "{}").status == 200)
        // Takes the write's place as what is known.
        #expect(try larder.get("/users/1").text.contains("new"))
        #expect(try larder.waitForDocuments(2))
        gate.open()
        #expect(try slow.value().text.contains("old"))
        #expect(try larder.waitForQuiet())
        #expect(try larder.get("/users").text.contains("new"))
    }

    @Test func `a write invalidates its target in any spelling of its escapes`() throws {
        let count = Monitor(0)
        let origin = try Origin { request in
            request.method == "GET" ? .text("v\(count.current)", Fresh.hour) : .text("\(count.next())")
        }
        let larder = try Larder(origin)
        let before = try larder.get("/a%2fb").text
        _ = try larder.request("PUT", "/a%2fb", body: "x")
        #expect(try larder.get("/a%2fb").text != before)
        #expect(try larder.get("/a%2Fb").isHit)
    }

    @Test func `two Accept lines are one list, also for a hit in memory`() throws {
        let origin = try Origin { .json(#"{"accept":"\#($0["Accept"] ?? "")"}"#, Fresh.hour) }
        let larder = try Larder(origin, "--workers", "1")
        _ = try larder.get("/x", ["Accept": "text/html"])
        #expect(try larder.get("/x", ["Accept": "text/html"]).isHit)
        #expect(try larder.get("/x", ["Accept": "application/json"] + ["Accept": "text/html"]).isHit == false)
    }

    @Test func `only the client that fetches gets the cookie of a rewritten response`() throws {
        let origin = try Origin([:])
        let (url, cookie) = (origin.url, "s=1; Path=/")
        origin.behave { _ in .json(#"{"url":"\#(url)/x"}"#, Fresh.hour + ["Set-Cookie": cookie]) }
        let larder = try Larder(config: Configs.plain(origin, upstream: ["rewrite_links: true"]))
        #expect(try larder.get("/x")["Set-Cookie"] == cookie)
        let hit = try larder.get("/x")
        #expect(hit.isHit)
        #expect(hit["Set-Cookie"] == nil)
    }

    @Test func `a response that a write outdates does not hide the one that was fetched after the write`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            switch (request.method, request.number) {
            case ("GET", 0): OriginResponse.text("one", Fresh.hour).after(gate)
            case ("GET", _): .text("two", Fresh.hour)
            default: .empty(204)
            }
        }
        let larder = try Larder(origin)
        let slow = Background { try larder.get("/x") }
        origin.waitForRequests(1)
        #expect(try larder.request("PUT", "/other", body: "{}").status == 204)
        #expect(try larder.get("/x").text == "two")
        #expect(try larder.waitForDocuments(1))
        let lock = try CommitLock(larder)
        gate.open()
        #expect(try slow.value().text == "one")
        let next = Background { try larder.get("/x") }
        Thread.sleep(forTimeInterval: 0.1)
        #expect(lock.isHeld)
        lock.release()
        #expect(try next.value().text == "two")
        #expect(try larder.get("/x").text == "two")
    }

    @Test(arguments: [["Cache-Control": "no-store"], ["Cache-Control": "max-age=3600", "Vary": "*"]] as [FieldLines])
    func `a response that may not be stored removes its predecessor`(fields: FieldLines) throws {
        let origin = try Origin { request in
            request.number == 0 ? .text("old", Fresh.hour) : .text("new", fields)
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.get("/x", ["Cache-Control": "no-cache"]).text == "new")
        let next = try larder.get("/x")
        #expect(!next.isHit && next.text == "new")
        #expect(try larder.get("/x", ["Cache-Control": "only-if-cached"]).status == 504)
    }

    @Test func `a response that turns out too large to be stored removes its predecessor`() throws {
        let large = String(repeating: "x", count: 100_000)
        let origin = try Origin { request in
            request.number == 0
                ? .text("old", Fresh.hour) : .chunked([Array(large.utf8)], Fresh.hour + ["Content-Type": "text/plain"])
        }
        let larder = try Larder(config: Configs.plain(origin, top: ["limits: { document: 64KiB }"]))
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        #expect(try larder.get("/x", ["Cache-Control": "no-cache"]).text == large)
        #expect(try larder.get("/x").text == large)
    }

    @Test func `a list is read from disk although writes to another upstream never pause`() throws {
        // So long that several writes end while it is read.
        let users = (0..<20_000).map { #"{"id":\#($0),"login":"u\#($0)","name":"n"}"# }.joined(separator: ",")
        let origin = try Origin { request in
            request.method == "GET" ? .json("[\(users)]", Fresh.hour) : .empty(204)
        }
        let config = Configs.blog(origin).replacing(
            "upstreams:",
            with: "upstreams:\n  other: { url: \"\(origin.url)\", prefix: /other }"
        )
        let larder = try Larder(config: "memory: { maximum_size: 0 }\n" + config)
        _ = try larder.get("/users")
        #expect(try larder.waitForDocuments(1))
        let (isOver, writes, limit) = (Monitor(false), Monitor(0), 2_000)
        let writers = (0..<4).map { number in
            Background { () throws -> Void in
                while !isOver.current, writes.current < limit {
                    #expect(try larder.request("PUT", "/other/\(number)", body: "x").status == 204)
                    writes.withLock { $0 += 1 }
                }
            }
        }
        writes.wait { $0 > 8 }
        #expect(try larder.get("/users").isHit)
        #expect(writes.current < limit)
        isOver.withLock { $0 = true }
        for writer in writers { try writer.value() }
    }
}
