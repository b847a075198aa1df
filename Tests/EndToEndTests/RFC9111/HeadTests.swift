import Foundation
import TestSupport
import Testing

/// RFC 9111 §4.3.5: what the answer to a HEAD does to the stored answer to a GET.
@Suite(.scripts) struct RFC9111HeadTests {
    private static let then = "Mon, 01 Jan 2018 00:00:00 GMT"

    @Test func `§4.3.5: a HEAD refreshes the stored response that it agrees with, and invalidates any other`() throws {
        let then = Self.then
        let rows: [(stored: FieldLines, head: FieldLines, isKept: Bool)] = [
            ([:], [:], true), (["ETag": "\"a\""], ["ETag": "\"a\""], true), (["ETag": "\"a\""], [:], true),
            (["Last-Modified": then], ["Last-Modified": then], true), ([:], ["Content-Length": "4"], true),
            (["Content-MD5": "QQ=="], ["Content-MD5": "QQ=="], true),
            (["ETag": "\"a\""], ["ETag": "\"b\""], false), ([:], ["ETag": "\"a\""], false),
            (["Last-Modified": then], ["Last-Modified": "Tue, 02 Jan 2018 00:00:00 GMT"], false),
            (["ETag": "\"a\""], ["ETag": "\"a\"", "Content-Length": "5"], false),
            (["Content-MD5": "QQ=="], ["Content-MD5": "Qg=="], false),
        ]
        let origin = try Origin { request in
            let row = rows[Int(request.path.dropFirst()) ?? 0]
            let count: FieldLines = ["X-Count": "\(request.number)"]
            if request.method == "HEAD" {
                // Only the row may give it a length.
                return .raw(OriginResponse.head(200, "Fine", row.head + Fresh.hour + count))
            }
            return .text("body", row.stored + Fresh.hour + count)
        }
        let larder = try Larder(origin)
        for (index, row) in rows.enumerated() {
            _ = try larder.get("/\(index)")
            let head = try larder.request("HEAD", "/\(index)", ["Cache-Control": "no-cache"])
            let count = "\(origin.count() - 1)"
            #expect(head.status == 200 && head["X-Count"] == count, "row \(index)")
            // What is refreshed or dropped may have to wait for its commit.
            let isAsExpected = try eventually {
                let answer = try larder.get("/\(index)")
                guard answer.text == "body" else { return false }
                return row.isKept
                    ? answer.isHit && answer["X-Count"] == count : origin.count("/\(index)", method: "GET") == 2
            }
            #expect(isAsExpected, "row \(index)")
            #expect(origin.count("/\(index)", method: "GET") == (row.isKept ? 1 : 2), "row \(index)")
        }
    }

    @Test func `§4.3.5: a HEAD with another status than 200 leaves the stored response alone`() throws {
        let statuses = [204, 301, 404, 410, 500, 503]
        let origin = try Origin { request in
            let status = statuses[Int(request.path.dropFirst()) ?? 0]
            return request.method == "HEAD"
                ? .empty(status, Fresh.hour + ["Content-Length": "0"]) : .text("body", Fresh.hour)
        }
        let larder = try Larder(origin)
        for (index, status) in statuses.enumerated() {
            _ = try larder.get("/\(index)")
            let head = try larder.request("HEAD", "/\(index)", ["Cache-Control": "no-cache"])
            if status < 500 { #expect(head.status == status) }
            let hit = try larder.get("/\(index)")
            #expect(hit.isHit && hit.status == 200 && hit.text == "body", "\(status)")
        }
    }

    @Test func `§4.3.5: a HEAD validates a stale response, and a 304 freshens it`() throws {
        let origin = try Origin { request in
            request["If-None-Match"] == "\"a\"" ? .notModified(Fresh.tagged("a")) : .text("body", Fresh.tagged("a", 0))
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let head = try larder.request("HEAD", "/x")
        #expect(head.status == 200 && head["Content-Length"] == "4")
        #expect(origin.requests.last?.method == "HEAD" && origin.requests.last?["If-None-Match"] == "\"a\"")
        let hit = try larder.get("/x")
        #expect(hit.isHit && hit.text == "body")
        #expect(try larder.request("HEAD", "/x", ["If-None-Match": "\"a\""]).status == 304)
    }

    @Test func `§4: the response to a HEAD is never the response to a GET`() throws {
        let origin = try Origin { _ in .text("body", Fresh.tagged("a")) }
        let larder = try Larder(origin)
        let head = try larder.request("HEAD", "/x", ["If-None-Match": "\"b\""])
        #expect(head.status == 200 && head["Content-Length"] == "4")
        #expect(try larder.request("HEAD", "/x", ["If-None-Match": "\"a\""]).status == 304)
        let get = try larder.get("/x")
        #expect(!get.isHit && get.text == "body")
        #expect(try larder.request("HEAD", "/x").isHit)
    }

    @Test(arguments: [true, false])
    func `§4.3.5: a HEAD that shows another version invalidates a response not yet committed`(tells: Bool)
        throws
    {
        let version = Monitor("one")
        let origin = try Origin { request in
            let fields = Fresh.tagged(version.current)
            return tells
                ? .json(#"{"id":1,"login":"\#(version.current)"}"#, fields) : .text(version.current, fields)
        }
        let larder = try Larder(config: Configs.blog(origin, top: ["store: { withhold: 1ms }"]))
        let lock = try CommitLock(larder)
        #expect(try larder.get("/users/1").text.contains("one"))
        version.withLock { $0 = "two" }
        #expect(try larder.request("HEAD", "/users/1", ["Cache-Control": "no-cache"])["ETag"] == "\"two\"")
        let next = Background { try larder.get("/users/1") }
        // It waits for the commit, or has asked already.
        Thread.sleep(forTimeInterval: 0.1)
        #expect(lock.isHeld)
        lock.release()
        #expect(try next.value().text.contains("two"))
        #expect(try larder.get("/users/1").text.contains("two"))
    }
}
