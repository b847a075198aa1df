import Foundation
import TestSupport
import Testing

/// RFC 9110 §14.2 and §15.3.7: what came in answer to a range, or as one, and is not stored as a part.
@Suite(.scripts) struct UnstoredPartsTests: RangeOfPartsFixtures {
    @Test func `§15.3.7 an unrequested part is passed on, and never stored`() throws {
        let origin = try Origin { _ in RangedContent.part(0..<4, of: Array(Self.digits.utf8), Fresh.tagged("one")) }
        let larder = try Larder(origin)
        for _ in 1...2 {
            let answer = try larder.get("/x")
            #expect(answer.status == 206 && answer.text == "0123" && !answer.cacheStatus.contains("stored"))
        }
        #expect(origin.count() == 2)
        #expect(try larder.documents() == 0)
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
            // The bytes of a coding are others than those of the response.
            .text(
                "234",
                Fresh.tagged("one") + ["Content-Range": "bytes 2-4/10", "Content-Encoding": "gzip"],
                status: 206
            ),
            .text("0123", Fresh.tagged("one") + ["Content-Encoding": "x-unknown"]),
            // Not cacheable.
            .text("234", ["Cache-Control": "no-store", "Content-Range": "bytes 2-4/10"], status: 206),
            .text("234", ["Vary": "*", "Content-Range": "bytes 2-4/10"], status: 206),
        ] as [OriginResponse]
    )
    func `§15.3.7 a response that is no valid, cacheable part is passed on unchanged, and not stored`(
        answer: OriginResponse
    ) throws {
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

    @Test func `law 8: a part that breaks off is not stored`() throws {
        let head = OriginResponse.head(
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

    @Test func `law 10: a part that was requested before a write is not stored after it`() throws {
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

    @Test func `a part of a body that Larder transforms is not stored`() throws {
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

    @Test func `§14.2 a whole response to a range request is stored as the whole`() throws {
        let origin = try Origin { _ in .text(Self.digits, Fresh.tagged("one")) }
        let larder = try Larder(origin)
        let first = try larder.get("/x", ["Range": "bytes=2-4"])
        #expect(first.status == 200 && first.text == Self.digits && first.cacheStatus.contains("stored"))
        #expect(try larder.get("/x").isHit)
        #expect(try larder.get("/x", ["Range": "bytes=2-4"]).text == "234")
        #expect(origin.count() == 1)
    }

    @Test func `§14.2 a range of an unknown unit is left to the upstream`() throws {
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
    func `§17.15 a range that Larder ignores is not sent upstream`(range: String) throws {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        let answer = try larder.get("/x", ["Range": range, "If-Range": "\"one\""])
        #expect(answer.status == 200 && answer.text == Self.digits)
        #expect(origin.requests[0]["Range"] == nil && origin.requests[0]["If-Range"] == nil)
        #expect(try larder.get("/x").isHit)
    }
}
