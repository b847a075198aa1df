import Foundation
import TestSupport
import Testing

/// A private cache as RFC 9111 has it, seen from outside.
@Suite(.scripts) struct CacheTests {
    @Test func `the second answer is a hit and has the bytes of the first`() throws {
        let body = #"  { "id": 1.0, "name": "Zo\u00eb \/ x", "name": "twice", "big": 1e400 } "#
        let origin = try Origin { _ in .json(body, Fresh.tagged("one")) }
        let larder = try Larder(origin)

        let first = try larder.get("/users/1")
        #expect(first.status == 200)
        #expect(first.text == body)
        #expect(first.cacheStatus.contains("fwd=uri-miss"))
        #expect(first.cacheStatus.contains("stored"))
        #expect(first["Via"]?.isEmpty == false)

        let second = try larder.get("/users/1")
        #expect(second.isHit)
        #expect(second.body == first.body)
        #expect(second["ETag"] == #""one""#)
        #expect(second["Age"] != nil)
        #expect(second["Content-Type"] == "application/json")
        #expect(origin.count() == 1)
    }

    @Test(
        arguments: [
            (["Cache-Control": "no-store"], 200), (["Cache-Control": "max-age=60, no-store"], 200),
            (["Cache-Control": "max-age=60"], 202), (["Cache-Control": "max-age=60", "Vary": "*"], 200),
            (["Cache-Control": "max-age=60"], 206),
        ] as [(FieldLines, Int)]
    )
    func `an answer that must not be reused is not`(fields: FieldLines, status: Int) throws {
        let count = Monitor(0)
        let origin = try Origin { _ in .json("{\"n\":\(count.next())}", fields, status: status) }
        let larder = try Larder(origin)
        #expect(try larder.get("/x").text == #"{"n":0}"#)
        #expect(try larder.get("/x").text == #"{"n":1}"#)
        #expect(origin.count() == 2)
    }

    @Test(
        arguments: [
            ["Cache-Control": "private, max-age=60"], ["Cache-Control": "public, max-age=60"],
            ["Cache-Control": "MAX-AGE=\"60\""], ["Cache-Control": "max-age=60", "Expires": "0"],
            ["Last-Modified": "Mon, 01 Jan 2018 00:00:00 GMT"],
        ] as [FieldLines]
    )
    func `an answer that may be reused is`(fields: FieldLines) throws {
        let origin = try Origin { _ in .json("{}", fields + ["Date": Self.now]) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.get("/x").isHit)
        #expect(origin.count() == 1)
    }

    @Test func `Expires counts from Date`() throws {
        let origin = try Origin { _ in
            .json("{}", ["Date": "Tue, 02 Jan 2018 00:00:00 GMT", "Expires": "Tue, 02 Jan 2018 01:00:00 GMT"])
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        // A Date far in the past makes the answer old already (RFC 9111, 4.2.3).
        #expect(try !larder.get("/x").isHit)

        let fresh = try Origin { _ in .json("{}", ["Date": Self.now, "Expires": Self.date(in: 3600)]) }
        let other = try Larder(fresh)
        _ = try other.get("/x")
        #expect(try other.get("/x").isHit)
    }

    @Test func `a stale answer is revalidated and a 304 makes it fresh again`() throws {
        let origin = try Origin { request in
            request["If-None-Match"] == #""one""#
                ? .notModified(["ETag": #""one""#, "Cache-Control": "max-age=60", "X-Remaining": "41"])
                : .json(#"{"id":1}"#, ["ETag": #""one""#, "Cache-Control": "max-age=0", "X-Remaining": "42"])
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let second = try larder.get("/x")
        #expect(second.status == 200)
        #expect(second.text == #"{"id":1}"#)
        #expect(second["X-Remaining"] == "41")
        #expect(second.cacheStatus.contains("fwd=stale"))
        #expect(origin.count() == 2)
        #expect(try larder.get("/x").isHit)
    }

    @Test func `without an ETag the date of the last change revalidates`() throws {
        let date = "Mon, 01 Jan 2018 00:00:00 GMT"
        let origin = try Origin { request in
            request["If-Modified-Since"] == date
                ? .notModified() : .json("{}", ["Last-Modified": date, "Cache-Control": "no-cache"])
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let second = try larder.get("/x")
        #expect(second.status == 200)
        #expect(second.text == "{}")
        #expect(origin.requests.last?["If-Modified-Since"] == date)
    }

    @Test func `a client's own conditions are answered from the cache`() throws {
        let fields: FieldLines = ["Last-Modified": "Mon, 01 Jan 2018 00:00:00 GMT"]
        let origin = try Origin { _ in .json("{}", Fresh.tagged("one") + fields) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        for etag in [#""one""#, #"W/"one""#, #""other", "one""#, "*"] {
            let answer = try larder.get("/x", ["If-None-Match": etag])
            #expect(answer.status == 304, "\(etag)")
            #expect(answer["ETag"] == #""one""#)
        }
        #expect(try larder.get("/x", ["If-None-Match": #""other""#]).status == 200)
        #expect(try larder.get("/x", ["If-Modified-Since": "Mon, 01 Jan 2018 00:00:00 GMT"]).status == 304)
        #expect(try larder.get("/x", ["If-Modified-Since": "Sun, 31 Dec 2017 00:00:00 GMT"]).status == 200)
        #expect(origin.count() == 1)
    }

    @Test func `a conditional request that misses gives the upstream's 304`() throws {
        let origin = try Origin { request in
            request["If-None-Match"] == #""one""# ? .notModified(Fresh.tagged("one")) : .json("{}", Fresh.tagged("one"))
        }
        let larder = try Larder(origin)
        let answer = try larder.get("/x", ["If-None-Match": #""one""#])
        #expect([200, 304].contains(answer.status))
        if answer.status == 304 { #expect(answer.body.isEmpty) }
        #expect(try larder.get("/x").text == "{}")
    }

    @Test func `what an answer varies by is kept apart`() throws {
        let origin = try Origin { request in
            .json(#"{"for":"\#(request["X-Shape"] ?? "none")"}"#, ["Cache-Control": "max-age=60", "Vary": "X-Shape"])
        }
        let larder = try Larder(origin)
        for shape in ["round", "square"] {
            #expect(try larder.get("/x", ["X-Shape": shape]).text.contains(shape))
        }
        for shape in ["round", "square"] {
            let answer = try larder.get("/x", ["X-Shape": shape])
            #expect(answer.isHit)
            #expect(answer.text.contains(shape))
        }
        #expect(origin.count() == 2)
    }

    @Test func `requests at the same time share one fetch`() throws {
        let gate = Gate()
        let origin = try Origin { _ in Answer.json(#"{"id":1}"#, Fresh.hour).after(gate) }
        let larder = try Larder.patient(origin)
        let first = Background { try larder.get("/x") }
        origin.waitForRequests(1)
        let others = Background { try together(12) { _ in try larder.get("/x") } }
        #expect(try larder.waitForFollowers(12))
        gate.open()
        let answers = try [first.value()] + others.value()
        #expect(answers.allSatisfy { $0.text == #"{"id":1}"# })
        #expect(origin.count() == 1)
        #expect(answers.count { $0.cacheStatus.contains("collapsed") } == 12)
    }

    @Test func `an answer that may not be stored is not shared by requests at the same time`() throws {
        let count = Monitor(0)
        let gate = Gate()
        let origin = try Origin { _ in
            Answer.json("{\"n\":\(count.next())}", ["Cache-Control": "no-store"]).after(gate)
        }
        let larder = try Larder(origin)
        let answers = Background { try together(5) { _ in try larder.get("/x") } }
        origin.waitForRequests(1)
        gate.open()
        #expect(Set(try answers.value().map(\.text)).count == 5)
    }

    @Test func `HEAD is answered from a stored GET`() throws {
        let origin = try Origin { _ in .json(#"{"id":1}"#, Fresh.tagged("one")) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let client = try larder.client()
        let head = try client.request("HEAD", "/x")
        #expect(head.isHit)
        #expect(head["Content-Length"] == "8")
        // Had a body followed, this would not be an answer.
        #expect(try client.get("/x").text == #"{"id":1}"#)
        #expect(origin.count() == 1)
    }

    @Test(arguments: ["no-cache", "max-age=0"]) func `a client may insist on the upstream`(directive: String) throws {
        let count = Monitor(0)
        let origin = try Origin { _ in .json("{\"n\":\(count.next())}", Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.get("/x", ["Cache-Control": directive]).text == #"{"n":1}"#)
        #expect(try larder.get("/x").text == #"{"n":1}"#)
    }

    @Test func `only-if-cached never asks`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(origin)
        let unknown = try larder.get("/x", ["Cache-Control": "only-if-cached"])
        #expect(unknown.status == 504)
        #expect(unknown.isProblem)
        #expect(origin.count() == 0)
        _ = try larder.get("/x")
        #expect(try larder.get("/x", ["Cache-Control": "only-if-cached"]).isHit)
    }

    @Test func `what a client wants kept nowhere is kept nowhere`() throws {
        let origin = try Origin { _ in .json(#"{"mark":"kept-nowhere"}"#, Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Cache-Control": "no-store"])
        #expect(try !larder.get("/x").isHit)
    }

    @Test func `a stale answer is served while it is asked for anew, if the upstream allows`() throws {
        let count = Monitor(0)
        let origin = try Origin { _ in
            .json("{\"n\":\(count.next())}", ["Cache-Control": "max-age=0, stale-while-revalidate=60"])
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let second = try larder.get("/x")
        #expect(second.text == #"{"n":0}"#)
        #expect(second.cacheStatus.contains("detail=stale"))
        #expect(origin.waitForRequests(2))
        #expect(try eventually { try larder.get("/x").text != #"{"n":0}"# })
    }

    @Test func `the age an answer came with counts`() throws {
        let origin = try Origin { request in
            .json("{}", ["Cache-Control": "max-age=\(request.path == "/old" ? 50 : 500)", "Age": "100"])
        }
        let larder = try Larder(origin)
        _ = try larder.get("/young")
        let young = try larder.get("/young")
        #expect(young.isHit)
        #expect(Int(young["Age"] ?? "") ?? 0 >= 100)
        _ = try larder.get("/old")
        #expect(try !larder.get("/old").isHit)
    }

    @Test func `fields of the connection and cookies stay where they belong`() throws {
        let origin = try Origin { _ in
            .json(
                "{}",
                Fresh.hour + [
                    "Connection": "X-Private", "X-Private": "1", "Keep-Alive": "timeout=5", "Set-Cookie": "s=1",
                    "X-Public": "2",
                ]
            )
        }
        let larder = try Larder(origin)
        let first = try larder.get("/x", ["Connection": "X-Mine", "X-Mine": "1", "TE": "trailers", "X-Yours": "2"])
        #expect(origin.requests[0]["X-Mine"] == nil)
        #expect(origin.requests[0]["TE"] == nil)
        #expect(origin.requests[0]["X-Yours"] == "2")
        #expect(first["X-Private"] == nil)
        #expect(first["X-Public"] == "2")
        #expect(first["Set-Cookie"] == "s=1")
        let second = try larder.get("/x")
        #expect(second.isHit)
        #expect(second["Set-Cookie"] == nil)
        #expect(second["X-Public"] == "2")
    }

    @Test func `a query makes another document`() throws {
        let origin = try Origin { .json(#""\#($0.target)""#, Fresh.hour) }
        let larder = try Larder(origin)
        #expect(try larder.get("/x?a=1").text == #""/x?a=1""#)
        #expect(try larder.get("/x?a=2").text == #""/x?a=2""#)
        #expect(try larder.get("/x").text == #""/x""#)
        #expect(try larder.get("/x?a=1").isHit)
    }

    @Test func `an unsafe method makes the stored answers of its target and location unusable`() throws {
        let count = Monitor(0)
        let origin = try Origin { request in
            request.method == "POST"
                ? .json("{}", ["Location": "/list/9"], status: 201) : .json("{\"n\":\(count.next())}", Fresh.hour)
        }
        let larder = try Larder(origin)
        for path in ["/list", "/list?page=2", "/list/9"] { _ = try larder.get(path) }
        #expect(try larder.request("POST", "/list", body: "{}").status == 201)
        #expect(try !larder.get("/list").isHit)
        #expect(try !larder.get("/list/9").isHit)
    }

    @Test func `encodings are undone before anything is kept`() throws {
        let text = #"{"name":"encoded"}"#
        let origin = try Origin { request in
            .body(
                gzipStored(Array(text.utf8)),
                Fresh.hour + ["Content-Encoding": "gzip", "Content-Type": "application/json"]
            )
        }
        let larder = try Larder(origin)
        for _ in 1...2 {
            let answer = try larder.get("/x")
            #expect(answer.text == text)
            #expect(answer["Content-Encoding"] == nil)
        }
        #expect(origin.count() == 1)
    }

    @Test func `chunks arrive as they are sent, and the whole is a hit afterwards`() throws {
        let gate = Gate()
        let origin = try Origin { _ in
            Answer(steps: [
                .send(
                    Answer.head(
                        200,
                        "OK",
                        Fresh.hour + ["Transfer-Encoding": "chunked", "Content-Type": "text/plain"]
                    )
                ), .send(Answer.framed(Array("first ".utf8))), .wait(gate), .send(Answer.framed(Array("second".utf8))),
                .send(Array("0\r\n\r\n".utf8)),
            ])
        }
        let larder = try Larder(origin)
        let client = try larder.client()
        try client.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        let head = try client.head()
        #expect(head.status == 200)
        #expect(head.fields["Transfer-Encoding"] == "chunked")
        // The first chunk is here although the origin has not sent the second.
        #expect(String(decoding: try client.bytes(11), as: UTF8.self) == "6\r\nfirst \r\n")
        gate.open()
        #expect(String(decoding: try client.bytes(11), as: UTF8.self) == "6\r\nsecond\r\n")
        #expect(try eventually { try larder.get("/x").isHit })
        #expect(try larder.get("/x").text == "first second")
    }

    @Test func `redirects are passed on, and their addresses lead back`() throws {
        let origin = try Origin { request in
            let host = request["Host"] ?? ""
            return request.path == "/from"
                ? .empty(302, ["Location": "http://\(host)/to", "Content-Length": "0"])
                : .json("[]", Fresh.hour + ["Link": "<http://\(host)/list?page=2>; rel=\"next\""])
        }
        let larder = try Larder(origin)
        let redirect = try larder.get("/from")
        #expect(redirect.status == 302)
        #expect(redirect["Location"] == "\(larder.url)/to")
        for _ in 1...2 {
            #expect(try larder.get("/list")["Link"] == "<\(larder.url)/list?page=2>; rel=\"next\"")
        }
        #expect(origin.requests[0]["Host"] == "127.0.0.1:\(origin.port)")
    }

    @Test func `links in bodies lead back only where that was asked for`() throws {
        let origin = try Origin { request in
            .json(
                #"{"id":1,"url":"http:\/\/\#(request["Host"] ?? "")/users/1","next":"http://\#(request["Host"] ?? "")/x"}"#,
                Fresh.hour
            )
        }
        let plain = try Larder(origin)
        #expect(try plain.get("/x").text.contains(":\(origin.port)"))
        let rewriting = try Larder(config: Configs.plain(origin, upstream: ["rewrite_links: true"]))
        for _ in 1...2 {
            let answer = try rewriting.get("/x")
            #expect(answer.object["url"] as? String == "\(rewriting.url)/users/1")
            #expect(answer.object["next"] as? String == "\(rewriting.url)/x")
        }
        #expect(try rewriting.get("/x", ["Larder-View": "raw"]).text.contains(":\(origin.port)"))
    }

    @Test func `a range of a stored answer is that part, with the upstream gone as well`() throws {
        let origin = try Origin { _ in .text("0123456789", Fresh.tagged("one")) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        origin.stop()
        let part = try larder.get("/x", ["Range": "bytes=2-4"])
        #expect(part.status == 206 && part.text == "234" && part["Content-Range"] == "bytes 2-4/10")
        #expect(part["ETag"] == "\"one\"")
        #expect(try larder.get("/x", ["Range": "bytes=-3"]).text == "789")
        #expect(try larder.get("/x", ["Range": "bytes=7-", "If-Range": "\"one\""]).text == "789")
        // What has changed since is not patched together.
        #expect(try larder.get("/x", ["Range": "bytes=7-", "If-Range": "\"old\""]).text == "0123456789")
        #expect(try larder.get("/x", ["Range": "bytes=0-1,8-9"]).byteRanges.map { $0[1] } == ["01", "89"])
        let beyond = try larder.get("/x", ["Range": "bytes=10-"])
        #expect(beyond.status == 416 && beyond["Content-Range"] == "bytes */10" && beyond.body.isEmpty)
        #expect(try larder.get("/x", ["Range": "bytes=2-4", "If-None-Match": "\"one\""]).status == 304)
        #expect(try larder.request("HEAD", "/x", ["Range": "bytes=2-4"])["Content-Length"] == "10")
    }

    @Test func `a client that has the answer already is told so, also where nothing may be stored`() throws {
        let origin = try Origin { request in
            .text(
                "0123456789",
                request.path == "/kept" ? Fresh.tagged("one") : ["Cache-Control": "no-store", "ETag": "\"one\""]
            )
        }
        let larder = try Larder(origin)
        for path in ["/kept", "/unkept"] {
            let answer = try larder.get(path, ["If-None-Match": "\"one\""])
            #expect(answer.status == 304 && answer.body.isEmpty && answer["ETag"] == "\"one\"")
            #expect(try larder.get(path, ["If-None-Match": "\"old\""]).text == "0123456789")
        }
    }

    @Test func `routes may overrule the upstream`() throws {
        let count = Monitor(0)
        let origin = try Origin { request in
            .json("{\"n\":\(count.next())}", request.path == "/never" ? Fresh.hour : ["Cache-Control": "no-store"])
        }
        let routes = [
            "routes:", "  - { path: forced, cache: force, fresh: 5m }", "  - { path: never, cache: never }",
        ]
        let larder = try Larder(config: Configs.plain(origin, top: routes))
        _ = try larder.get("/forced")
        #expect(try larder.get("/forced").isHit)
        _ = try larder.get("/never")
        #expect(try !larder.get("/never").isHit)
    }

    static var now: String { date(in: 0) }

    static func date(in seconds: Double, _ form: String = "EEE, dd MMM yyyy HH:mm:ss 'GMT'") -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = form
        return formatter.string(from: Date(timeIntervalSinceNow: seconds))
    }
}

/// The bytes in gzip's format, not made any smaller.
func gzipStored(_ bytes: [UInt8]) -> [UInt8] {
    func little<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }
    var checksum: UInt32 = 0xffff_ffff
    for byte in bytes {
        checksum ^= UInt32(byte)
        for _ in 0..<8 { checksum = checksum & 1 == 1 ? (checksum >> 1) ^ 0xedb8_8320 : checksum >> 1 }
    }
    let length = UInt16(bytes.count)
    return [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1] + little(length) + little(~length) + bytes + little(~checksum)
        + little(UInt32(bytes.count))
}
