import TestSupport
import Testing

/// `no-transform`: a body stays in its coding, for those who accept that (RFC 9111 §5.2.2.6).
@Suite(.scripts) struct FixedCodingTests {
    static let text = "some text"
    static let packed = gzipStored(Array(text.utf8))
    static let fields: FieldLines = [
        "Content-Type": "text/plain", "Content-Encoding": "gzip", "Cache-Control": "max-age=3600, no-transform",
        "ETag": #""packed""#,
    ]

    @Test func `a client gets the coding it accepts, also from the cache, and others get decoded content`() throws {
        let origin = try Origin { _ in .body(Self.packed, Self.fields) }
        let larder = try Larder(origin)
        for restarts in [false, true] {
            if restarts { try larder.restart() }
            for isHit in [restarts, true] {
                for accepted in ["gzip", "br;q=0.5, x-gzip ; q=0.8"] {
                    let answer = try larder.get("/x", ["Accept-Encoding": accepted])
                    #expect(answer.body == Self.packed && answer.isHit == isHit, "\(accepted)")
                    #expect(answer["Content-Encoding"] == "gzip" && answer["ETag"] == #""packed""#)
                }
                for fields: FieldLines in [[:], ["Accept-Encoding": "identity"], ["Accept-Encoding": "gzip;q=0, br"]] {
                    let answer = try larder.get("/x", fields)
                    #expect(answer.text == Self.text && answer.isHit == isHit, "\(fields)")
                    #expect(answer["Content-Encoding"] == nil)
                }
            }
            #expect(try eventually { try larder.documents() == 5 })
        }
        #expect(origin.count() == 5)
    }

    @Test func `a body whose coding is cut off is passed on as received, and not stored`() throws {
        let cut = Array(Self.packed.dropLast(4))
        let origin = try Origin { _ in .body(cut, Self.fields) }
        let larder = try Larder(origin)
        for count in 1...2 {
            let answer = try larder.get("/x", ["Accept-Encoding": "gzip"])
            #expect(answer.body == cut && !answer.isHit)
            #expect(origin.count() == count)
        }
        #expect(try larder.documents() == 0)
    }

    @Test func `a 304 does not give a client a coding that it does not accept`() throws {
        let origin = try Origin { request in
            request["If-None-Match"]?.contains("packed") == true
                ? .notModified(Self.fields) : .body(Self.packed, Self.fields)
        }
        let larder = try Larder(origin)
        #expect(try larder.get("/x", ["Accept-Encoding": "gzip"]).body == Self.packed)
        #expect(try eventually { try larder.documents() == 1 })
        let plain = try larder.get("/x", ["Accept-Encoding": "br"])
        #expect(plain.text == Self.text && plain["Content-Encoding"] == nil)
        let validated = try larder.get("/x", ["Accept-Encoding": "gzip", "Cache-Control": "no-cache"])
        #expect(validated.body == Self.packed && validated["Content-Encoding"] == "gzip")
    }

    @Test func `clients that accept different codings and ask at once get what they accept`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.body(Self.packed, Self.fields).after(gate) }
        let larder = try Larder(origin)
        let answers = try together(6) { index in
            if index == 5 {
                origin.waitForRequests(1)
                gate.open()
            }
            return try larder.get("/x", index % 2 == 0 ? ["Accept-Encoding": "gzip"] : [:])
        }
        for (index, answer) in answers.enumerated() {
            #expect(answer.body == (index % 2 == 0 ? Self.packed : Array(Self.text.utf8)))
            #expect(answer["Content-Encoding"] == (index % 2 == 0 ? "gzip" : nil))
        }
    }

    @Test func `a write's response stays in its coding, unless a model describes it`() throws {
        let user = #"{"id":1,"name":"Ada"}"#
        let packed = gzipStored(Array(user.utf8))
        let fields: FieldLines = [
            "Content-Type": "application/json", "Content-Encoding": "gzip",
            "Cache-Control": "max-age=3600, no-transform",
        ]
        let origin = try Origin { _ in .body(packed, fields) }
        let plain = try Larder(origin)
        #expect(try plain.request("POST", "/users/1", ["Accept-Encoding": "gzip"], body: "{}").body == packed)
        let mapping = try Larder(config: Configs.blog(origin))
        #expect(try mapping.get("/users/1", ["Accept-Encoding": "gzip"]).text == user)
        #expect(try mapping.waitForObjects(1, of: "User"))
    }
}
