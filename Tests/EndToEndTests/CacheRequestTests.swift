import TestSupport
import Testing

/// What a request may ask of a stored response: conditions, ranges, directives and `HEAD`.
@Suite(.scripts) struct CacheRequestTests {
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

    @Test func `a conditional request that misses is sent without its condition, and the next one is a hit`() throws {
        let origin = try Origin { request in
            request["If-None-Match"] == #""one""# ? .notModified(Fresh.tagged("one")) : .json("{}", Fresh.tagged("one"))
        }
        let larder = try Larder(origin)
        let answer = try larder.get("/x", ["If-None-Match": #""one""#])
        #expect(answer.status == 304 && answer.body.isEmpty)
        let next = try larder.get("/x")
        #expect(next.isHit && next.text == "{}")
        #expect(origin.requests.map { $0["If-None-Match"] } == [nil])
    }

    @Test func `a client that has the current response gets 304, also where nothing may be stored`() throws {
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

    @Test func `a range of a stored response is served, also while the upstream is away`() throws {
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

    @Test func `HEAD is answered from a stored GET`() throws {
        let origin = try Origin { _ in .json(#"{"id":1}"#, Fresh.tagged("one")) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let client = try larder.client()
        let head = try client.request("HEAD", "/x")
        #expect(head.isHit)
        #expect(head["Content-Length"] == "8")
        // Had a body followed, this would not be a response.
        #expect(try client.get("/x").text == #"{"id":1}"#)
        #expect(origin.count() == 1)
    }

    @Test(arguments: ["no-cache", "max-age=0"]) func `a client can require a response from the upstream`(
        directive: String
    ) throws {
        let count = Monitor(0)
        let origin = try Origin { _ in .json("{\"n\":\(count.next())}", Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.get("/x", ["Cache-Control": directive]).text == #"{"n":1}"#)
        #expect(try larder.get("/x").text == #"{"n":1}"#)
    }

    @Test func `only-if-cached gets the stored response or 504, and never asks the upstream`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(origin)
        let unknown = try larder.get("/x", ["Cache-Control": "only-if-cached"])
        #expect(unknown.status == 504)
        #expect(unknown.isProblem)
        #expect(origin.count() == 0)
        _ = try larder.get("/x")
        #expect(try larder.get("/x", ["Cache-Control": "only-if-cached"]).isHit)
    }

    @Test func `the response to a request with no-store is not stored`() throws {
        let origin = try Origin { _ in .json(#"{"mark":"kept-nowhere"}"#, Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Cache-Control": "no-store"])
        #expect(try !larder.get("/x").isHit)
    }
}
