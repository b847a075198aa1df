import Foundation
import TestSupport
import Testing

/// RFC 9110 §15.3.7, RFC 9111 §3.3 and §3.4: parts that the upstream sent, stored as what they are.
@Suite(.scripts) struct RangeOfPartsTests {
    private static let digits = "0123456789"

    private static func ranged(_ text: String = digits, tag: String? = "\"one\"", _ fields: FieldLines = Fresh.hour)
        throws -> Origin
    {
        try Origin { RangedContent(text, tag: tag, fields).answer($0) }
    }

    // MARK: Stored, and served

    @Test func `§15.3.7 a range that misses goes upstream as it is, in no coding`() throws {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        let fields: FieldLines = ["Range": "bytes=2-6", "If-Range": "\"one\"", "Accept-Encoding": "gzip"]
        let answer = try larder.get("/x", fields)
        #expect(answer.status == 206 && answer.text == "23456" && answer["Content-Range"] == "bytes 2-6/10")
        #expect(answer.says("larder;fwd=uri-miss;ttl=3600;stored"))
        #expect(origin.requests[0]["Range"] == "bytes=2-6")
        #expect(origin.requests[0]["If-Range"] == "\"one\"")
        #expect(origin.requests[0].fields.all("Accept-Encoding") == ["identity"])
    }

    @Test(arguments: [
        ("bytes=2-6", "bytes 2-6/10", "23456"), ("bytes=3-4", "bytes 3-4/10", "34"), ("bytes=6-6", "bytes 6-6/10", "6"),
        ("bytes=2-3,3-5", "bytes 2-5/10", "2345"),
    ])
    func `RFC 9111 §3.3 what lies within a stored part is served from it`(range: String, content: String, text: String)
        throws
    {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=2-6"])
        let answer = try larder.get("/x", ["Range": range])
        #expect(answer.status == 206 && answer.text == text && answer["Content-Range"] == content)
        #expect(answer.isHit)
        #expect(answer["ETag"] == "\"one\"" && answer["Content-Type"] == "text/plain")
        #expect(answer["Age"] != nil && answer["Content-Length"] == "\(text.utf8.count)")
        #expect(origin.count() == 1)
    }

    @Test func `RFC 9111 §3.3 the end of a stored part serves suffixes and open ends, and several parts at once`()
        throws
    {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=-6"])
        for (range, text) in [("bytes=-3", "789"), ("bytes=7-", "789"), ("bytes=7-500", "789"), ("bytes=-6", "456789")]
        {
            let answer = try larder.get("/x", ["Range": range])
            #expect(answer.isHit && answer.status == 206 && answer.text == text, "\(range)")
        }
        let several = try larder.get("/x", ["Range": "bytes=4-5,8-8"])
        #expect(several.isHit)
        #expect(several.byteRanges == [["bytes 4-5/10", "45"], ["bytes 8-8/10", "8"]])
        #expect(try larder.get("/x", ["Range": "bytes=5-6", "If-None-Match": "\"one\""]).status == 304)
        #expect(origin.count() == 1)
        // The client's part is of another version, or that cannot be told: it wants the whole.
        #expect(try larder.get("/x", ["Range": "bytes=5-6", "If-Range": "\"two\""]).text == Self.digits)
        #expect(origin.count() == 2)
    }

    @Test(arguments: ["bytes=1-3", "bytes=5-7", "bytes=0-", "bytes=-8", "bytes=8-9", "bytes=3-4,8-9", "bytes=10-"])
    func `RFC 9211 §2.2 what a stored part does not hold is fetched, and called partial`(range: String) throws {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=2-6"])
        let answer = try larder.get("/x", ["Range": range])
        #expect(answer.cacheStatus.hasPrefix("larder;fwd=partial"))
        #expect(origin.count() == 2)
        #expect(origin.requests[1]["Range"] == range)
    }

    @Test func `RFC 9111 §3.3 without a complete length only what is named by its bytes is served`() throws {
        let origin = try Origin { request in
            .text("23456", Fresh.hour + ["Content-Range": "bytes 2-6/*", "ETag": "\"one\""], status: 206)
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=2-6"])
        let answer = try larder.get("/x", ["Range": "bytes=3-4"])
        #expect(answer.isHit && answer.text == "34" && answer["Content-Range"] == "bytes 3-4/*")
        for range in ["bytes=-2", "bytes=5-"] { #expect(try !larder.get("/x", ["Range": range]).isHit, "\(range)") }
    }

    @Test func `RFC 9111 §4.3 a stale part is validated by its tag, and renewed by a 304`() throws {
        let origin = try Self.ranged(Self.digits, tag: "\"one\"", Fresh.never)
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=2-6"])
        origin.behave { RangedContent(Self.digits).answer($0) }
        let renewed = try larder.get("/x", ["Range": "bytes=3-4"])
        #expect(renewed.status == 206 && renewed.text == "34")
        #expect(renewed.cacheStatus.hasPrefix("larder;fwd=stale;fwd-status=304"))
        #expect(origin.requests[1]["If-None-Match"] == "\"one\"" && origin.requests[1]["Range"] == "bytes=3-4")
        #expect(try larder.get("/x", ["Range": "bytes=4-6"]).isHit)
        #expect(origin.count() == 2)
    }

    @Test func `RFC 9111 §3.3 parts survive a restart, and count as a document`() throws {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=0-3"])
        _ = try larder.get("/x", ["Range": "bytes=6-7"])
        #expect(try larder.waitForDocuments(1))
        let listed = try larder.command("documents")
        #expect(listed.end == .exited(0) && listed.output.contains("206"))
        #expect(larder.terminate() == .exited(0))
        origin.stop()
        try larder.start()
        for (range, text) in [("bytes=1-2", "12"), ("bytes=6-7", "67")] {
            let answer = try larder.get("/x", ["Range": range])
            #expect(answer.isHit && answer.text == text)
        }
    }

    // MARK: Never the whole

    @Test func `RFC 9111 §3.3 a part is never taken for the whole`() throws {
        let origin = try Self.ranged(Self.digits, tag: nil, Fresh.never)
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=0-9"])
        _ = try larder.get("/y", ["Range": "bytes=0-8"])
        #expect(try larder.waitForDocuments(2))
        let requests = origin.count()
        #expect(try larder.get("/y", ["Larder-View": "raw", "Cache-Control": "no-store"]).text == Self.digits)
        #expect(try larder.request("HEAD", "/y")["Content-Length"] == "10")
        #expect(origin.count() == requests + 2)
        origin.stop()
        for fields in [[:], ["Larder-View": "raw"], ["Cache-Control": "max-stale"]] as [FieldLines] {
            #expect(try larder.get("/y", fields).status == 502)
            #expect(try larder.request("HEAD", "/y", fields).status == 502)
        }
        // What is asked for is known, and nobody can be asked.
        #expect(try larder.get("/y", ["Range": "bytes=1-2"]).text == "12")
        #expect(try larder.get("/y", ["Cache-Control": "only-if-cached"]).status == 504)
        _ = try larder.admin("PUT", "/mode", body: #"{"mode":"offline"}"#)
        #expect(try larder.get("/y").status == 504)
        #expect(try larder.request("HEAD", "/y").status == 504)
        #expect(try larder.get("/y", ["Range": "bytes=5-9"]).status == 504)
        let part = try larder.get("/y", ["Range": "bytes=1-2"])
        #expect(part.status == 206 && part.text == "12" && part.cacheStatus.contains("detail=offline"))
        // All of it came, though as a part.
        #expect(try larder.get("/x").text == Self.digits)
    }

    @Test func `§15.3.7 a part that nobody asked for is passed on, and never stored`() throws {
        let origin = try Origin { _ in RangedContent.part(0..<4, of: Array(Self.digits.utf8), Fresh.tagged("one")) }
        let larder = try Larder(origin)
        for _ in 1...2 {
            let answer = try larder.get("/x")
            #expect(answer.status == 206 && answer.text == "0123" && !answer.cacheStatus.contains("stored"))
        }
        #expect(origin.count() == 2)
        #expect(try larder.documents() == 0)
    }

    // MARK: Combined

    @Test func `§15.3.7.3 parts of one strong tag make a larger one`() throws {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        for range in ["bytes=0-2", "bytes=6-7", "bytes=2-5"] { _ = try larder.get("/x", ["Range": range]) }
        let answer = try larder.get("/x", ["Range": "bytes=0-7"])
        #expect(answer.isHit && answer.text == "01234567")
        #expect(origin.count() == 3)
        #expect(try larder.waitForDocuments(1))
    }

    @Test func `§15.3.7.3 parts that leave nothing out are the whole`() throws {
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

    @Test func `RFC 9111 §3.4 of a whole only what is missing is asked for`() throws {
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

    @Test func `RFC 9111 §3.4 what has changed since is fetched whole`() throws {
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
    func `RFC 9111 §3.4 what does not fit is not combined, and the whole is fetched`(answer: Answer) throws {
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
    func `§15.3.7.3 parts of what may be two versions are not combined: the newest replaces`(
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

    @Test func `RFC 9111 §3.4 a whole for those who wait is completed once`() throws {
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

    @Test func `what is larger than a document may be is passed on, part or not, and not stored`() throws {
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

    @Test func `a part of what is served otherwise than it came is not stored`() throws {
        let body = #"{"self":"http://upstream.example/x","id":1}"#
        let origin = try Origin { request in
            let text = body.replacing("upstream.example", with: request["Host"] ?? "")
            guard request["Range"] != nil else { return .json(text, Fresh.tagged("one")) }
            return RangedContent.part(
                0..<4,
                of: Array(text.utf8),
                Fresh.tagged("one") + ["Content-Type": "application/json"]
            )
        }
        let larder = try Larder(config: Configs.plain(origin, upstream: ["rewrite_links: true"]))
        for _ in 1...2 { #expect(try !larder.get("/x", ["Range": "bytes=0-3"]).isHit) }
        let whole = try larder.get("/x")
        #expect(whole.text.contains(larder.url))
        let part = try larder.get("/x", ["Range": "bytes=9-", "If-Range": whole["ETag"] ?? ""])
        #expect(part.isHit && part.status == 206 && part.body == Array(whole.body[9...]))
    }

    // MARK: Not stored

    @Test func `§14.2 the whole in answer to a range is stored as the whole`() throws {
        let origin = try Origin { _ in .text(Self.digits, Fresh.tagged("one")) }
        let larder = try Larder(origin)
        let first = try larder.get("/x", ["Range": "bytes=2-4"])
        #expect(first.status == 200 && first.text == Self.digits && first.cacheStatus.contains("stored"))
        #expect(try larder.get("/x").isHit)
        #expect(try larder.get("/x", ["Range": "bytes=2-4"]).text == "234")
        #expect(origin.count() == 1)
    }

    @Test(
        arguments: [
            // §15.3.7.2
            .text(
                "--b\r\nContent-Range: bytes 2-4/10\r\n\r\n234\r\n--b--\r\n",
                Fresh.tagged("one") + ["Content-Type": "multipart/byteranges; boundary=b"],
                status: 206
            ),
            // §15.5.17
            .text("no", Fresh.hour + ["Content-Range": "bytes */10"], status: 416),
            // A `Content-Range` that is not true, or none.
            .text("234", Fresh.tagged("one") + ["Content-Range": "bytes 2-5/10"], status: 206),
            .text("234", Fresh.tagged("one") + ["Content-Range": "bytes 2-4/3"], status: 206),
            .text("234", Fresh.tagged("one") + ["Content-Range": "bytes 4-2/10"], status: 206),
            .text("234", Fresh.tagged("one") + ["Content-Range": "bytes 2-99999999999999999999/*"], status: 206),
            .text("234", Fresh.tagged("one") + ["Content-Range": "items 2-4/10"], status: 206),
            .text(
                "234",
                Fresh.tagged("one") + ["Content-Range": "bytes 2-4/10", "content-range": "bytes 3-5/10"],
                status: 206
            ),
            .text("234", Fresh.tagged("one"), status: 206),
            .chunked([Array("23".utf8)], Fresh.tagged("one") + ["Content-Range": "bytes 2-4/10"], status: 206),
            .chunked([Array("2345".utf8)], Fresh.tagged("one") + ["Content-Range": "bytes 2-4/10"], status: 206),
            // The bytes of a coding are others than those of the answer.
            .text(
                "234",
                Fresh.tagged("one") + ["Content-Range": "bytes 2-4/10", "Content-Encoding": "gzip"],
                status: 206
            ),
            .text("0123", Fresh.tagged("one") + ["Content-Encoding": "x-unknown"]),
            // Not cacheable.
            .text("234", ["Cache-Control": "no-store", "Content-Range": "bytes 2-4/10"], status: 206),
            .text("234", ["Vary": "*", "Content-Range": "bytes 2-4/10"], status: 206),
        ] as [Answer]
    )
    func `§15.3.7 what is no sound part is passed on as it came, and not stored`(answer: Answer) throws {
        let origin = try Origin { _ in answer }
        let larder = try Larder(origin)
        let first = try larder.get("/x", ["Range": "bytes=2-4"])
        let second = try larder.get("/x", ["Range": "bytes=2-4"])
        #expect(first.body == second.body && first.status == second.status)
        #expect(first["Content-Range"] == second["Content-Range"])
        #expect(!second.isHit)
        #expect(origin.count() == 2)
        #expect(try larder.documents() == 0)
    }

    @Test func `law 8: a part that breaks off is not stored`() throws {
        let head = Answer.head(
            206,
            "Partial Content",
            Fresh.tagged("one") + ["Content-Range": "bytes 2-6/10", "Content-Length": "5"]
        )
        let origin = try Origin { _ in .raw(head + Array("23".utf8)) }
        let larder = try Larder(origin)
        #expect(throws: (any Error).self) { try larder.get("/x", ["Range": "bytes=2-6"]) }
        origin.behave { RangedContent(Self.digits).answer($0) }
        #expect(try !larder.get("/x", ["Range": "bytes=2-3"]).isHit)
    }

    @Test func `§14.2 a range of a unit that only the upstream knows is its own affair`() throws {
        let origin = try Origin { request in
            .text("items", Fresh.hour + ["Content-Range": "\(request["Range"] ?? "")/9"], status: 206)
        }
        let larder = try Larder(origin)
        for range in ["items=0-1", "0-24"] {
            for _ in 1...2 { #expect(try !larder.get("/x", ["Range": range]).isHit) }
            #expect(origin.requests.last?["Range"] == range)
        }
        #expect(origin.count() == 4)
        #expect(try larder.documents() == 0)
    }

    @Test(arguments: ["bytes=4-2", "bytes=x", "bytes=" + Array(repeating: "0-0", count: 1_000).joined(separator: ",")])
    func `§17.15 a range that is ignored is not passed on either`(range: String) throws {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        let answer = try larder.get("/x", ["Range": range, "If-Range": "\"one\""])
        #expect(answer.status == 200 && answer.text == Self.digits)
        #expect(origin.requests[0]["Range"] == nil && origin.requests[0]["If-Range"] == nil)
        #expect(try larder.get("/x").isHit)
    }

    // MARK: Whose, and until when

    @Test func `parts belong to a principal and a variant as all answers do`() throws {
        let origin = try Origin { request in
            let text = "\(request["Authorization"]?.suffix(3) ?? "nil")-\(request["X-Shape"] ?? "none")-0123456789"
            return RangedContent(text, Fresh.hour + ["Vary": "X-Shape"]).answer(request)
        }
        let larder = try Larder(origin)
        let requests: [FieldLines] = [
            ["Authorization": "Bearer aaa", "X-Shape": "round"], ["Authorization": "Bearer bbb", "X-Shape": "round"],
            ["Authorization": "Bearer aaa", "X-Shape": "square"], ["X-Shape": "square"],
        ]
        for fields in requests { #expect(try !larder.get("/x", fields + ["Range": "bytes=0-9"]).isHit) }
        for fields in requests {
            let answer = try larder.get("/x", fields + ["Range": "bytes=0-6"])
            let whose = fields["Authorization"]?.suffix(3) ?? "nil"
            #expect(answer.isHit && answer.text == "\(whose)-\(fields["X-Shape"] ?? "")".prefix(7))
        }
        #expect(origin.count() == requests.count)
    }

    @Test func `RFC 9111 §4.4 parts go with what a write or a cleaning removes`() throws {
        let origin = try Origin { request in
            request.method == "GET" ? RangedContent(Self.digits).answer(request) : .empty(204)
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x/1", ["Range": "bytes=0-6"])
        #expect(try larder.waitForDocuments(1))
        #expect(try larder.request("PUT", "/x/1", body: "new").status == 204)
        origin.behave { RangedContent("abcdefghij", tag: "\"two\"").answer($0) }
        let answer = try larder.get("/x/1", ["Range": "bytes=2-4"])
        #expect(!answer.isHit && answer.text == "cde")
        #expect(try larder.waitForDocuments(1))
        _ = try CleanTests.clean(larder, #"{"all":true}"#)
        #expect(try larder.documents() == 0)
        #expect(try !larder.get("/x/1", ["Range": "bytes=2-4"]).isHit)
    }

    @Test func `law 10: a part that was asked for before a write is not stored after it`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            request.method == "GET" ? RangedContent(Self.digits).answer(request).after(gate) : .empty(204)
        }
        let larder = try Larder(origin)
        let slow = Background { try larder.get("/x/1", ["Range": "bytes=0-6"]) }
        origin.waitForRequests(1)
        #expect(try larder.request("PUT", "/x/1", body: "new").status == 204)
        gate.open()
        #expect(try slow.value().text == "0123456")
        #expect(try !larder.get("/x/1", ["Range": "bytes=2-4"]).isHit)
    }

    @Test func `where a model says what an answer holds, parts are kept for the whole only`() throws {
        let body = #"{"id":1,"login":"ada","name":"n"}"#
        let origin = try Origin { request in
            var content = RangedContent(body)
            content.fields.append("Content-Type", "application/json")
            let answer = content.answer(request)
            return Answer(
                steps: answer.steps.map { step in
                    guard case .send(let bytes) = step else { return step }
                    return .send(
                        Array(
                            String(decoding: bytes, as: UTF8.self).replacing("Content-Type: text/plain\r\n", with: "")
                                .utf8
                        )
                    )
                }
            )
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users/1", ["Range": "bytes=0-9"])
        #expect(try !larder.get("/users/1", ["Range": "bytes=2-4"]).isHit)
        #expect(try larder.get("/users/1").text == body)
        #expect(origin.requests[2]["Range"] == "bytes=10-\(body.utf8.count - 1)")
        #expect(try larder.waitForObjects(1, of: "User"))
        #expect(try larder.get("/users/1", ["Range": "bytes=2-4"]).isHit)
    }

    @Test func `§14.2 one part asked for many times is not sent many times, though its whole has no known length`()
        throws
    {
        let text = String(repeating: "x", count: 100_000)
        let origin = try Origin { request in
            request["Range"] == "bytes=0-99999"
                ? .text(text, Fresh.hour + ["Content-Range": "bytes 0-99999/*", "ETag": "\"one\""], status: 206)
                : .text("the whole", Fresh.hour)
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=0-99999"])
        #expect(try larder.get("/x", ["Range": "bytes=5-6,1-2"]).byteRanges.count == 2)
        let many = Array(repeating: "0-99999", count: 20).joined(separator: ",")
        #expect(try larder.get("/x", ["Range": "bytes=1-99999,\(many)"]).text == "the whole")
    }

    @Test func `§15.3.7.2 several parts in one body are never stored as one, whatever Content-Range says`() throws {
        let body = "--b\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n--b--\r\n"
        let origin = try Origin { request in
            guard request["Range"] != nil else { return .text("0123456789", Fresh.hour) }
            let length = body.utf8.count
            let fields: FieldLines = [
                "Content-Type": "Multipart/ByteRanges; boundary=b", "ETag": "\"one\"",
                "Content-Range": "bytes 0-\(length - 1)/\(length)",
            ]
            return .body(Array(body.utf8), Fresh.hour + fields, status: 206)
        }
        let larder = try Larder(origin)
        #expect(try larder.get("/x", ["Range": "bytes=0-1,4-5"]).text == body)
        let whole = try larder.get("/x")
        #expect(!whole.isHit && whole.text == "0123456789")
    }

    // MARK: At the same time

    @Test func `clients that ask for the same part at once make one request`() throws {
        let gate = Gate()
        let content = RangedContent(Self.digits, tag: "\"one\"", Fresh.hour)
        let origin = try Origin { content.answer($0).after(gate) }
        let larder = try Larder.patient(origin)
        let answers = Background { try together(20) { _ in try larder.get("/x", ["Range": "bytes=2-6"]) } }
        let other = Background { try larder.get("/x", ["Range": "bytes=0-1"]) }
        #expect(try larder.waitForFollowers(19))
        #expect(origin.waitForRequests(2))
        gate.open()
        let all = try answers.value()
        #expect(all.allSatisfy { $0.status == 206 && $0.text == "23456" && $0["Content-Range"] == "bytes 2-6/10" })
        #expect(all.count { $0.cacheStatus.contains("collapsed") } == 19)
        #expect(try other.value().text == "01")
        #expect(origin.count() == 2)
        #expect(try larder.get("/x", ["Range": "bytes=3-4"]).isHit)
    }

    @Test func `whose part depends on what it has, or who may not be answered from it, asks for itself`() throws {
        let gate = Gate()
        let content = RangedContent(Self.digits, tag: "\"one\"", Fresh.hour + ["Vary": "X-Lang"])
        let origin = try Origin { content.answer($0).after(gate) }
        let larder = try Larder.patient(origin)
        let first = Background { try larder.get("/x", ["Range": "bytes=2-6", "X-Lang": "a"]) }
        origin.waitForRequests(1)
        let conditional = Background { try larder.get("/x", ["Range": "bytes=2-6", "If-Range": "\"two\""]) }
        origin.waitForRequests(2)
        let foreign = Background { try larder.get("/x", ["Range": "bytes=2-6", "X-Lang": "b"]) }
        #expect(try larder.waitForFollowers(1))
        gate.open()
        #expect(try first.value().text == "23456")
        #expect(try conditional.value().text == Self.digits)
        #expect(try foreign.value().text == "23456")
        #expect(origin.requests.map { $0["X-Lang"] } == ["a", nil, "b"])
    }
}
