import Foundation
import TestSupport
import Testing

/// RFC 9110 §15.3.7.3, RFC 9111 §3.4: parts of one version that make a larger one, or the whole, and parts that must not.
@Suite(.scripts) struct CombinedPartsTests: RangeOfPartsFixtures {
    @Test func `§15.3.7.3 parts with one strong tag are combined`() throws {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        for range in ["bytes=0-2", "bytes=6-7", "bytes=2-5"] { _ = try larder.get("/x", ["Range": range]) }
        let answer = try larder.get("/x", ["Range": "bytes=0-7"])
        #expect(answer.isHit && answer.text == "01234567")
        #expect(origin.count() == 3)
        #expect(try larder.waitForDocuments(1))
    }

    @Test func `§15.3.7.3 parts without a gap form the whole`() throws {
        let origin = try Origin { request in
            let fields = Fresh.hour + ["X-Range": request["Range"] ?? "none"]
            return RangedContent(Self.digits, fields).answer(request)
        }
        let larder = try Larder(origin)
        for range in ["bytes=0-3", "bytes=7-", "bytes=3-6"] { _ = try larder.get("/x", ["Range": range]) }
        for _ in 1...2 {
            let whole = try larder.get("/x")
            #expect(whole.isHit && whole.status == 200 && whole.text == Self.digits)
            #expect(whole["Content-Range"] == nil && whole["Content-Length"] == "10" && whole["ETag"] == "\"one\"")
            #expect(whole["X-Range"] == "bytes=3-6")
            #expect(try larder.waitForDocuments(1))
            try larder.restart()
        }
        #expect(origin.count() == 3)
    }

    @Test func `RFC 9111 §3.4 only the missing part of a whole is fetched`() throws {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=0-3"])
        _ = try larder.get("/x", ["Range": "bytes=8-9"])
        let whole = try larder.get("/x")
        #expect(whole.status == 200 && whole.text == Self.digits && whole["Content-Range"] == nil)
        #expect(whole.cacheStatus.hasPrefix("larder;fwd=partial;fwd-status=206"))
        #expect(origin.requests[2]["Range"] == "bytes=4-7" && origin.requests[2]["If-Range"] == "\"one\"")
        #expect(try larder.get("/x").isHit)
        #expect(try larder.request("HEAD", "/x").isHit)
        #expect(origin.count() == 3)
    }

    @Test func `RFC 9111 §3.4 a changed document is fetched whole`() throws {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=0-6"])
        origin.behave { RangedContent("abcdefghij", tag: "\"two\"").answer($0) }
        let whole = try larder.get("/x")
        #expect(whole.status == 200 && whole.text == "abcdefghij")
        #expect(try larder.get("/x", ["Range": "bytes=0-3"]).text == "abcd")
        #expect(origin.count() == 2)
    }

    @Test(arguments: [
        // Another tag, although If-Range should have brought the whole.
        RangedContent.part(7..<10, of: Array("abcdefghij".utf8), Fresh.tagged("two")),
        // No tag at all.
        RangedContent.part(7..<10, of: Array("abcdefghij".utf8)),
        // Another length.
        .text("hij", Fresh.tagged("one") + ["Content-Range": "bytes 7-9/11"], status: 206),
        // Another range.
        .text("hi", Fresh.tagged("one") + ["Content-Range": "bytes 7-8/10"], status: 206),
        // None, or one that is not true.
        .text("hij", Fresh.tagged("one"), status: 206),
        .chunked([Array("hi".utf8)], Fresh.tagged("one") + ["Content-Range": "bytes 7-9/10"], status: 206),
        .text("hij", Fresh.tagged("one") + ["Content-Range": "bytes 7-9/10", "Content-Encoding": "gzip"], status: 206),
        .empty(416, ["Content-Range": "bytes */5"]),
        // A coding that nobody asked for, and more than any document may have.
        .body(gzipStored(Array("x".utf8)), Fresh.tagged("two") + ["Content-Encoding": "gzip"]),
        .chunked(
            Array(repeating: [UInt8](repeating: 97, count: 64_000), count: 30),
            Fresh.tagged("one") + ["Content-Range": "bytes 7-9/10"],
            status: 206
        ),
    ])
    func `RFC 9111 §3.4 parts that do not fit are not combined: the whole is fetched`(answer: OriginResponse) throws {
        let origin = try Self.ranged()
        let larder = try Larder(config: Configs.plain(origin, top: ["limits: { document: 1MiB }"]))
        _ = try larder.get("/x", ["Range": "bytes=0-6"])
        origin.behave { request in
            request["Range"] != nil ? answer : RangedContent("abcdefghij", tag: "\"two\"").answer(request)
        }
        let whole = try larder.get("/x")
        #expect(whole.status == 200 && whole.text == "abcdefghij")
        #expect(try larder.get("/x").isHit)
        #expect(origin.count() == 3)
    }

    @Test(
        arguments: [
            (["\"one\"", "\"two\""], 10), (["W/\"one\"", "W/\"one\""], 10), ([nil, nil], 10),
            (["\"one\"", "\"one\""], 11),
        ] as [([String?], Int)]
    )
    func `§15.3.7.3 parts of possibly different versions are not combined: the newest replaces the others`(
        tags: [String?],
        length: Int
    ) throws {
        let origin = try Self.ranged(Self.digits, tag: tags[0])
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=0-3"])
        let later = String("abcdefghijk".prefix(length))
        origin.behave { RangedContent(later, tag: tags[1]).answer($0) }
        #expect(try larder.get("/x", ["Range": "bytes=4-7"]).text == "efgh")
        let latest = try larder.get("/x", ["Range": "bytes=5-6"])
        #expect(latest.isHit && latest.text == "fg")
        #expect(try larder.get("/x", ["Range": "bytes=0-1"]).text == "ab")
        #expect(try larder.get("/x").text == later)
    }

    @Test func `RFC 9111 §3.4 a whole is completed once for all clients that wait`() throws {
        let gate = Gate()
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=0-6"])
        origin.behave { RangedContent(Self.digits).answer($0).after(gate) }
        let answers = Background { try together(8) { _ in try larder.get("/x") } }
        origin.waitForRequests(2)
        gate.open()
        #expect(try answers.value().allSatisfy { $0.status == 200 && $0.text == Self.digits })
        #expect(origin.count() == 2)
    }

    @Test func `a response or part larger than limits.document is passed on, and not stored`() throws {
        let body = [UInt8](repeating: 98, count: 3_000_000)
        let origin = try Origin { RangedContent(body).answer($0) }
        let larder = try Larder(config: Configs.plain(origin, top: ["limits: { document: 1MiB }"]))
        for _ in 1...2 {
            let large = try larder.get("/x", ["Range": "bytes=0-1999999"])
            #expect(large.status == 206 && large.body.count == 2_000_000 && !large.isHit)
        }
        // Two that are small enough, but not together: the newest stays.
        _ = try larder.get("/y", ["Range": "bytes=0-599999"])
        _ = try larder.get("/y", ["Range": "bytes=600000-1199999"])
        #expect(try larder.get("/y", ["Range": "bytes=700000-700009"]).isHit)
        #expect(try !larder.get("/y", ["Range": "bytes=0-9"]).isHit)
        // A whole that could not be stored is not completed.
        let whole = try larder.get("/y")
        #expect(whole.body.count == body.count && origin.requests.last?["Range"] == nil)
    }
}
