import Foundation
import TestSupport
import Testing

/// Validators of composed responses, and of documents on their way between composed and as received.
@Suite(.scripts) struct ComposedValidatorTests {
    typealias Changing = CoherenceTests.Changing

    static let list = #"[{"id":1,"login":"ada","name":"Ada"}]"#
    static let changed = #"[{"id":1,"login":"ada","name":"Ada L."}]"#
    static let signed: FieldLines = [
        "Cache-Control": "max-age=3600", "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT",
        "Content-MD5": "x", "Digest": "sha-256=x", "Content-Digest": "sha-256=:eA==:", "Repr-Digest": "sha-256=:eA==:",
        "Signature": "sig=:eA==:", "Signature-Input": "sig=()",
    ]

    /// A daemon whose `/users` is composed: user 1 is known by another name.
    private func composed(
        _ fields: FieldLines = Fresh.hour,
        upstream: [String] = [],
        top: [String] = []
    ) throws -> (blog: Changing, larder: Larder) {
        let blog = try Changing(["/users": Self.list, "/users/1": #"{"id":1,"name":"Ada L."}"#], fields)
        let larder = try Larder(blog.origin, config: Configs.blog(blog.origin, upstream: upstream, top: top))
        _ = try larder.get("/users")
        #expect(try larder.waitForDocuments(1))
        _ = try larder.get("/users/1")
        #expect(try larder.waitForDocuments(2))
        return (blog, larder)
    }

    @Test func `a composed response has no field about the received bytes`() throws {
        let (_, larder) = try composed(Self.signed)
        let answer = try larder.get("/users")
        #expect(answer.text == Self.changed)
        for name in [
            "Last-Modified", "Content-MD5", "Digest", "Content-Digest", "Repr-Digest", "Signature", "Signature-Input",
        ] {
            #expect(answer[name] == nil, "\(name)")
        }
        #expect(answer["ETag"]?.hasPrefix("\"larder-") == true)
        let raw = try larder.get("/users", ["Larder-View": "raw"])
        #expect(raw.text == Self.list)
        #expect(raw["ETag"] == "\"v0\"")
        #expect(raw["Last-Modified"] != nil)
    }

    @Test func `entity tags in conditions apply to the composed bytes`() throws {
        let (blog, larder) = try composed(Self.signed)
        let tag = try #require(try larder.get("/users")["ETag"])
        for condition in [tag, "W/\(tag)", "\"a\", \(tag), W/\"b\"", "*", "\"a\",\(tag)"] {
            for method in ["GET", "HEAD"] {
                let answer = try larder.request(method, "/users", ["If-None-Match": condition])
                #expect(answer.status == 304, "\(method) \(condition)")
                #expect(answer["ETag"] == tag)
            }
        }
        for condition in ["\"v0\"", "W/\"v0\"", "\"larder-00000000000000000000000000000000\"", "\"a\", \"b\""] {
            let answer = try larder.get("/users", ["If-None-Match": condition])
            #expect(answer.status == 200, "\(condition)")
            #expect(answer.text == Self.changed)
        }
        #expect(blog.origin.count("/users") == 1)
    }

    @Test func `conditions by date do not apply to composed bytes`() throws {
        let (_, larder) = try composed(Self.signed)
        let date = try #require(try larder.get("/users")["Date"])
        for date in [date, "Mon, 01 Jan 2024 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"] {
            let answer = try larder.get("/users", ["If-Modified-Since": date])
            #expect(answer.status == 200, "\(date)")
            #expect(answer.text == Self.changed)
            // Neither on the way of a hit, nor beside it.
            #expect(try larder.get("/users", ["If-Modified-Since": date, "Range": "bytes=0-0"]).status == 206)
            #expect(try larder.get("/users", ["If-Range": date, "Range": "bytes=0-0"]).status == 200)
        }
    }

    @Test func `HEAD and ranges apply to the composed bytes`() throws {
        let (_, larder) = try composed()
        let whole = try larder.get("/users")
        let tag = try #require(whole["ETag"])
        let head = try larder.request("HEAD", "/users")
        #expect(head["Content-Length"] == "\(whole.body.count)")
        #expect(head["ETag"] == tag)
        let last = whole.body.count - 1
        let part = try larder.get("/users", ["Range": "bytes=20-\(last)"])
        #expect(part.status == 206)
        #expect(part.body == Array(whole.body[20...]))
        #expect(part["Content-Range"] == "bytes 20-\(last)/\(whole.body.count)")
        #expect(part["ETag"] == tag)
        #expect(try larder.get("/users", ["Range": "bytes=0-4", "If-Range": tag]).status == 206)
        for other in ["\"v0\"", "W/\(tag)"] {
            let all = try larder.get("/users", ["Range": "bytes=0-4", "If-Range": other])
            #expect(all.status == 200)
            #expect(all.body == whole.body)
        }
        #expect(
            try larder.get("/users", ["Range": "bytes=\(whole.body.count)-"])["Content-Range"]
                == "bytes */\(whole.body.count)"
        )
    }

    @Test(arguments: ["PUT", "PATCH", "DELETE", "POST", "GET", "HEAD"])
    func `If-Match with Larder's own tag gets 412, and the next GET the upstream's tag`(method: String) throws {
        let (blog, larder) = try composed()
        let tag = try #require(try larder.get("/users")["ETag"])
        for condition in [tag, "\"v0\", \(tag)"] {
            _ = try larder.get("/users")
            let asked = blog.origin.count("/users")
            let refused = try larder.request(
                method,
                "/users",
                ["If-Match": condition],
                body: method == "PUT" ? "[]" : nil
            )
            #expect(refused.status == 412)
            #expect(blog.origin.count("/users") == asked)
            let next = try larder.get("/users")
            #expect(!next.isHit)
            #expect(next["ETag"]?.hasPrefix("\"v") == true)
        }
        #expect(blog.origin.requests.allSatisfy { $0["If-Match"] == nil })
    }

    @Test func `Larder's own tags never go upstream, and the upstream's beside them do`() throws {
        let (blog, larder) = try composed()
        let own = "\"larder-00000000000000000000000000000000\""
        let asked: [(FieldLines, String?)] = [
            (["If-None-Match": own], nil), (["If-None-Match": "W/\(own)"], nil),
            (["If-None-Match": "\"a\", \(own), W/\"b\""], "\"a\", W/\"b\""), (["If-None-Match": "*"], "*"),
        ]
        for method in ["PUT", "POST"] {
            for (fields, expected) in asked {
                _ = try larder.request(method, "/users", fields, body: "[]")
                #expect(blog.origin.requests.last?["If-None-Match"] == expected, "\(method) \(fields.text)")
            }
        }
        _ = try larder.get("/users", ["Range": "bytes=0-1", "If-Range": own])
        for request in blog.origin.requests {
            #expect(request.fields.text.contains("larder-0") == false)
        }
    }

    @Test func `a clean document is validated, a dirty one fetched without conditions`() throws {
        let (blog, larder) = try composed(Fresh.hour)
        blog.origin.forget()
        _ = try larder.get("/users/1", ["Cache-Control": "no-cache"])
        #expect(blog.origin.requests.last?["If-None-Match"] == "\"v1\"")
        let tag = try #require(try larder.get("/users")["ETag"])
        let answer = try larder.get("/users", ["Cache-Control": "no-cache", "If-None-Match": tag])
        #expect(answer.status == 200)
        #expect(blog.origin.requests.last?.path == "/users")
        #expect(blog.origin.requests.last?["If-None-Match"] == nil)
        #expect(blog.origin.requests.last?["If-Modified-Since"] == nil)
    }

    @Test(arguments: [false, true])
    func `a document that became dirty before its 304 arrived is fetched without conditions`(isComposable: Bool) throws
    {
        let blog = try Changing(["/posts": #"[{"id":7,"title":"t","author":{"id":1,"login":"ada"}}]"#])
        let (gate, bodies) = (Gate(), blog.bodies)
        blog.origin.behave { request in
            if request["If-None-Match"] != nil { return OriginResponse.notModified(["ETag": "\"v\""]).after(gate) }
            return .json(bodies.current[request.path] ?? "{}", Fresh.never + ["ETag": "\"v\""])
        }
        let larder = try Larder(blog.origin, config: Configs.blog(blog.origin))
        _ = try larder.get("/posts")
        #expect(try larder.waitForDocuments(1))
        let waiting = Background { try larder.get("/posts") }
        blog.origin.waitForRequests(2, "/posts")
        blog["/posts/7"] = isComposable ? #"{"id":7,"title":"u"}"# : #"{"id":7,"title":"u","author":9}"#
        blog["/posts"] = #"[{"id":7,"title":"upstream's","author":{"id":9,"login":"new"}}]"#
        _ = try larder.get("/posts/7")
        #expect(try larder.waitForDocuments(2))
        gate.open()
        #expect(try waiting.value().text == blog["/posts"])
        let asked = blog.origin.requests.filter { $0.path == "/posts" }
        #expect(asked.map { $0["If-None-Match"] } == [nil, "\"v\"", nil])
    }

    @Test func `a document whose values change back is as received, with the upstream's tag`() throws {
        let (blog, larder) = try composed(Self.signed)
        let composed = try larder.get("/users")
        #expect(composed.text == Self.changed)
        blog["/users/1"] = #"{"id":1,"name":"\u0041da"}"#
        _ = try larder.get("/users/1", ["Cache-Control": "no-cache"])
        #expect(try eventually { try larder.get("/users").text == Self.list })
        let clean = try larder.get("/users")
        #expect(clean["ETag"] == "\"v0\"")
        #expect(clean["Last-Modified"] != nil)
        #expect(!clean.cacheStatus.contains("composed"))
        #expect(try larder.get("/users", ["If-None-Match": composed["ETag"] ?? ""]).status == 200)
        #expect(try larder.get("/users", ["If-None-Match": "\"v0\""]).status == 304)
        // And to and fro: the same bytes, the same tag.
        blog["/users/1"] = #"{"id":1,"name":"Ada L."}"#
        _ = try larder.get("/users/1", ["Cache-Control": "no-cache"])
        #expect(try eventually { try larder.get("/users").text == Self.changed })
        #expect(try larder.get("/users")["ETag"] == composed["ETag"])
        #expect(blog.origin.count("/users") == 1)
    }

    @Test func `equal bytes have equal tags whether or not memory keeps them`() throws {
        let (_, larder) = try composed(top: ["memory: { maximum_size: 0 }"])
        let tags = try (0..<3).map { _ in try larder.get("/users")["ETag"] }
        #expect(Set(tags).count == 1)
        #expect(tags[0]?.hasPrefix("\"larder-") == true)
        try larder.restart()
        #expect(try larder.get("/users")["ETag"] == tags[0])
        #expect(try larder.get("/users").text == Self.changed)
    }

    @Test func `each view and each address has its own entity tag`() throws {
        let blog = try Changing([:])
        // Mapped bytes that are the very bytes of the wire.
        blog["/users"] = #"[{"login":"ada","name":"Ada","company":"x"}]"#
        blog["/users/1"] = #"{"id":1,"name":"Ada L.","url":"\#(blog.origin.url)/users/1"}"#
        let larder = try Larder(
            blog.origin,
            config: Configs.blog(blog.origin, upstream: ["rewrite_links: true"])
        )
        let one = try larder.get("/users/1")
        let other = try larder.get("/users/1", ["Host": "localhost:\(larder.port)"])
        #expect(one.body != other.body)
        #expect(one["ETag"] != other["ETag"])
        #expect(one["ETag"]?.hasPrefix("\"larder-") == true)
        let mapped = try larder.get("/users", ["Larder-View": "mapped"])
        let wire = try larder.get("/users")
        #expect(mapped["ETag"] != wire["ETag"])
        #expect(mapped["ETag"]?.hasPrefix("\"larder-") == true)
        #expect(try larder.get("/users", ["Larder-View": "mapped", "If-None-Match": wire["ETag"] ?? ""]).status == 200)
        #expect(
            try larder.get("/users", ["Larder-View": "mapped", "If-None-Match": mapped["ETag"] ?? ""]).status == 304
        )
    }
}
