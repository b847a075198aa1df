import Foundation
import TestSupport
import Testing

/// A private cache as RFC 9111 has it, seen from outside: what is stored, for whom, and for how long.
@Suite(.scripts) struct CacheTests {
    @Test func `a second request for a URL is a hit, with the same bytes as the first response`() throws {
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
    func `a response that must not be reused is fetched again`(fields: FieldLines, status: Int) throws {
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
    func `a response that may be reused is a hit`(fields: FieldLines) throws {
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
        // A Date far in the past makes the response old already (RFC 9111, 4.2.3).
        #expect(try !larder.get("/x").isHit)

        let fresh = try Origin { _ in .json("{}", ["Date": Self.now, "Expires": Self.date(in: 3600)]) }
        let other = try Larder(fresh)
        _ = try other.get("/x")
        #expect(try other.get("/x").isHit)
    }

    @Test func `the Age in a received response counts towards its age`() throws {
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

    @Test func `a stale response is revalidated and a 304 makes it fresh again`() throws {
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

    @Test func `without an ETag a response is revalidated by Last-Modified`() throws {
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

    @Test func `a stale response is served while it is fetched again, if the upstream allows`() throws {
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

    @Test func `variants of a response are stored separately`() throws {
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

    @Test func `URLs with different queries are different documents`() throws {
        let origin = try Origin { .json(#""\#($0.target)""#, Fresh.hour) }
        let larder = try Larder(origin)
        #expect(try larder.get("/x?a=1").text == #""/x?a=1""#)
        #expect(try larder.get("/x?a=2").text == #""/x?a=2""#)
        #expect(try larder.get("/x").text == #""/x""#)
        #expect(try larder.get("/x?a=1").isHit)
    }

    @Test func `an unsafe method makes the stored responses of its target and location unusable`() throws {
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

    @Test func `concurrent requests share one fetch`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.json(#"{"id":1}"#, Fresh.hour).after(gate) }
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

    @Test func `concurrent requests do not share a response that may not be stored`() throws {
        let count = Monitor(0)
        let gate = Gate()
        let origin = try Origin { _ in
            OriginResponse.json("{\"n\":\(count.next())}", ["Cache-Control": "no-store"]).after(gate)
        }
        let larder = try Larder(origin)
        let answers = Background { try together(5) { _ in try larder.get("/x") } }
        origin.waitForRequests(1)
        gate.open()
        #expect(Set(try answers.value().map(\.text)).count == 5)
    }

    @Test func `routes can override the upstream's cache policy`() throws {
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
