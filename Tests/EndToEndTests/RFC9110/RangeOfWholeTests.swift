import Foundation
import TestSupport
import Testing

/// RFC 9110 §14, from a whole that is stored: parts of it, without asking the upstream.
@Suite(.scripts) struct RangeOfWholeTests {
    private static let digits = "0123456789"

    /// A row of a table: the request's fields, and what comes of them.
    struct Row: Sendable, CustomTestStringConvertible {
        var fields: FieldLines
        var status: Int
        var range: String?
        var text: String

        init(_ fields: FieldLines, _ status: Int, _ range: String?, _ text: String) {
            self.fields = fields
            self.status = status
            self.range = range
            self.text = text
        }

        init(_ range: String, _ status: Int, _ content: String?, _ text: String) {
            self.init(["Range": range], status, content, text)
        }

        var testDescription: String { fields.text.replacing("\r\n", with: " ") }
    }

    @Test(arguments: [
        Row("bytes=0-0", 206, "bytes 0-0/10", "0"),
        Row("bytes=2-4", 206, "bytes 2-4/10", "234"),
        Row("bytes=0-9", 206, "bytes 0-9/10", digits),
        Row("bytes=7-", 206, "bytes 7-9/10", "789"),
        Row("bytes=7-1000", 206, "bytes 7-9/10", "789"),
        Row("bytes=7-99999999999999999999999", 206, "bytes 7-9/10", "789"),
        Row("bytes=-3", 206, "bytes 7-9/10", "789"),
        Row("bytes=-10", 206, "bytes 0-9/10", digits),
        Row("bytes=-99999999999999999999999", 206, "bytes 0-9/10", digits),
        Row("Bytes=2-4", 206, "bytes 2-4/10", "234"),
        Row("bytes= 2-4 ", 206, "bytes 2-4/10", "234"),
        // Several that come to one.
        Row("bytes=0-4,5-9", 206, "bytes 0-9/10", digits),
        Row("bytes=0-4,2-6", 206, "bytes 0-6/10", "0123456"),
        Row("bytes=1-2,100-", 206, "bytes 1-2/10", "12"),
        // §15.5.17
        Row("bytes=10-", 416, "bytes */10", ""),
        Row("bytes=10-10,99-", 416, "bytes */10", ""),
        Row("bytes=-0", 416, "bytes */10", ""),
        Row("bytes=99999999999999999999999-", 416, "bytes */10", ""),
        // §14.2: what is malformed, of another unit, or an attack is ignored.
        Row("bytes=4-2", 200, nil, digits),
        Row("bytes=a-b", 200, nil, digits),
        Row("bytes=", 200, nil, digits),
        Row("bytes=-", 200, nil, digits),
        Row("bytes=--1", 200, nil, digits),
        Row("bytes=0-1;2-3", 200, nil, digits),
        Row("bytes=0x1-2", 200, nil, digits),
        Row("bytes 0-1", 200, nil, digits),
        Row("items=0-1", 200, nil, digits),
        Row("0-1", 200, nil, digits),
        Row("bytes=" + Array(repeating: "0-0", count: 1_000).joined(separator: ","), 200, nil, digits),
        Row(["Range": "bytes=0-1", "range": "bytes=3-4"], 200, nil, digits),
        // §13.1.5
        Row(["Range": "bytes=2-4", "If-Range": "\"one\""], 206, "bytes 2-4/10", "234"),
        Row(["Range": "bytes=2-4", "If-Range": "\"two\""], 200, nil, digits),
        Row(["Range": "bytes=2-4", "If-Range": "W/\"one\""], 200, nil, digits),
        Row(["Range": "bytes=2-4", "If-Range": "one"], 200, nil, digits),
        Row(["Range": "bytes=10-", "If-Range": "\"two\""], 200, nil, digits),
        Row(["Range": "bytes=2-4", "If-Range": "Sun, 06 Nov 1994 08:49:37 GMT"], 206, "bytes 2-4/10", "234"),
        Row(["Range": "bytes=2-4", "If-Range": "Sun, 06 Nov 1994 08:49:38 GMT"], 200, nil, digits),
        Row(["If-Range": "\"one\""], 200, nil, digits),
        // §13.2.2: conditions come first.
        Row(["Range": "bytes=2-4", "If-None-Match": "\"one\""], 304, nil, ""),
        Row(["Range": "bytes=2-4", "If-None-Match": "\"two\""], 206, "bytes 2-4/10", "234"),
        Row(["Range": "bytes=2-4", "If-Modified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"], 304, nil, ""),
    ])
    func `§14.2 a range of a stored response is served without asking the upstream`(row: Row) throws {
        let fields = Fresh.hour + ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"]
        let origin = try Origin { RangedContent(Self.digits, fields).answer($0) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        origin.stop()
        let answer = try larder.get("/x", row.fields)
        #expect(answer.status == row.status)
        #expect(answer["Content-Range"] == row.range)
        #expect(answer.text == row.text)
        #expect(answer.isHit)
        if row.status != 416 { #expect(answer["ETag"] == "\"one\"") }
        if row.status != 304 { #expect(answer["Content-Length"] == "\(row.text.utf8.count)") }
    }

    @Test func `§14.6 several ranges are parts of one body, in the requested order`() throws {
        let origin = try Origin { RangedContent(Self.digits).answer($0) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        origin.stop()
        let answer = try larder.get("/x", ["Range": "bytes=0-1, 4-5, -1"])
        #expect(answer.status == 206)
        #expect(answer["Content-Range"] == nil)
        #expect(answer.byteRanges == [["bytes 0-1/10", "01"], ["bytes 4-5/10", "45"], ["bytes 9-9/10", "9"]])
        #expect(answer.text.contains("\r\nContent-Type: text/plain\r\n"))
        #expect(answer["Content-Length"] == "\(answer.body.count)")
        #expect(answer["ETag"] == "\"one\"")
        let descending = try larder.get("/x", ["Range": "bytes=8-9,0-1"])
        #expect(descending.byteRanges.map { $0[1] } == ["89", "01"])
        let beyond = try larder.get("/x", ["Range": "bytes=8-9,20-,0-1"])
        #expect(beyond.byteRanges.map { $0[1] } == ["89", "01"])
        // More than the whole is not worth parts.
        let burden = try larder.get("/x", ["Range": "bytes=5-9,0-8,2-4"])
        #expect(burden.text == Self.digits)
    }

    @Test func `§14.2 a HEAD ignores ranges, whether stored or not`() throws {
        let origin = try Origin { RangedContent(Self.digits).answer($0) }
        let larder = try Larder(origin)
        let missed = try larder.request("HEAD", "/x", ["Range": "bytes=2-4"])
        #expect(missed.status == 200 && missed["Content-Length"] == "10" && missed["Content-Range"] == nil)
        #expect(origin.requests[0]["Range"] == nil)
        _ = try larder.get("/x")
        let hit = try larder.request("HEAD", "/x", ["Range": "bytes=2-4"])
        #expect(hit.isHit && hit.status == 200 && hit["Content-Length"] == "10")
    }

    @Test func `§14.1.2 an empty body has no satisfiable range`() throws {
        let origin = try Origin { RangedContent("").answer($0) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let first = try larder.get("/x", ["Range": "bytes=0-"])
        #expect(first.status == 416 && first["Content-Range"] == "bytes */0")
        // The last bytes are satisfiable always, but a Content-Range cannot say so.
        let last = try larder.get("/x", ["Range": "bytes=-5"])
        #expect(last.status == 200 && last.body.isEmpty)
    }

    @Test func `§14.2 ranges apply to a 200 only`() throws {
        let origin = try Origin { _ in .text(Self.digits, Fresh.tagged("one"), status: 404) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let answer = try larder.get("/x", ["Range": "bytes=2-4"])
        #expect(answer.isHit && answer.status == 404 && answer.text == Self.digits)
    }

    @Test func `RFC 9111 §4.3 a stale whole is validated, and the range served from it`() throws {
        let origin = try Origin { RangedContent(Self.digits, tag: "\"one\"", Fresh.never).answer($0) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let answer = try larder.get("/x", ["Range": "bytes=2-4", "If-Range": "\"one\""])
        #expect(answer.status == 206 && answer.text == "234" && answer["Content-Range"] == "bytes 2-4/10")
        #expect(answer.cacheStatus.hasPrefix("larder;fwd=stale;fwd-status=304"))
        #expect(origin.requests[1]["If-None-Match"] == "\"one\"")
        #expect(origin.requests[1]["Range"] == nil && origin.requests[1]["If-Range"] == nil)

        origin.behave { RangedContent("abcdefghij", tag: "\"two\"").answer($0) }
        let changed = try larder.get("/x", ["Range": "bytes=2-4"])
        #expect(changed.status == 206 && changed.text == "cde" && changed["ETag"] == "\"two\"")
        #expect(changed.cacheStatus.hasPrefix("larder;fwd=stale;fwd-status=200"))
        let whole = try larder.get("/x")
        #expect(whole.isHit && whole.text == "abcdefghij")
    }

    @Test func `RFC 9111 §4.3 a client with a part of an older version gets the new one whole`() throws {
        let origin = try Origin { RangedContent(Self.digits, tag: "\"one\"", Fresh.never).answer($0) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        origin.behave { RangedContent("abcdefghij", tag: "\"two\"").answer($0) }
        let answer = try larder.get("/x", ["Range": "bytes=2-4", "If-Range": "\"one\""])
        #expect(answer.status == 200 && answer.text == "abcdefghij")
    }

    @Test func `RFC 5861 a range of a stale whole may be served while the whole is refreshed once`() throws {
        let stale: FieldLines = ["Cache-Control": "max-age=0, stale-while-revalidate=60"]
        let gate = Gate()
        let origin = try Origin { RangedContent(Self.digits, tag: "\"one\"", stale).answer($0) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        origin.behave { RangedContent("abcdefghij", tag: "\"two\"").answer($0).after(gate) }
        for _ in 1...3 {
            let answer = try larder.get("/x", ["Range": "bytes=2-4"])
            #expect(answer.status == 206 && answer.text == "234" && answer.cacheStatus.contains("detail=stale"))
        }
        #expect(origin.waitForRequests(2))
        #expect(origin.requests[1]["Range"] == nil && origin.requests[1]["If-None-Match"] == "\"one\"")
        gate.open()
        #expect(try eventually { try larder.get("/x", ["Range": "bytes=2-4"]).text == "cde" })
        #expect(origin.count() == 2)
    }

    @Test func `RFC 5861 a range of a stale whole is served in place of a failure`() throws {
        let origin = try Origin { RangedContent(Self.digits, tag: "\"one\"", Fresh.never).answer($0) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        origin.always(.empty(503))
        let answer = try larder.get("/x", ["Range": "bytes=2-4"])
        #expect(answer.status == 206 && answer.text == "234")
        #expect(answer.cacheStatus.contains("detail=stale"))
        _ = try larder.admin("PUT", "/mode", body: #"{"mode":"offline"}"#)
        #expect(try larder.get("/x", ["Range": "bytes=-2"]).text == "89")
    }

    @Test func `§14.2 ranges of a composed response apply to the composed bytes, with Larder's own tag`() throws {
        let name = Monitor("old name")
        let origin = try Origin { request in
            let user = #"{"id":1,"login":"ada","name":"\#(name.current)"}"#
            return .json(
                request.path == "/users" ? "[\(user)]" : user,
                Fresh.tagged("one") + ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"]
            )
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        #expect(try larder.waitForObjects(1, of: "User"))
        name.withLock { $0 = "a longer name" }
        _ = try larder.get("/users/1")
        #expect(try eventually { try larder.get("/users").text.contains("a longer name") })
        let whole = try larder.get("/users")
        let tag = try #require(whole["ETag"])
        #expect(tag.hasPrefix("\"larder-"))
        let part = try larder.get("/users", ["Range": "bytes=10-", "If-Range": tag])
        #expect(part.status == 206 && part.body == Array(whole.body[10...]) && part["ETag"] == tag)
        for condition in ["\"one\"", "Sun, 06 Nov 1994 08:49:37 GMT"] {
            let answer = try larder.get("/users", ["Range": "bytes=10-", "If-Range": condition])
            #expect(answer.status == 200 && answer.body == whole.body)
        }
        #expect(origin.count("/users") == 1)
    }
}
