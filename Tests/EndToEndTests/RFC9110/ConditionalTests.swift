import TestSupport
import Testing

/// RFC 9110 §13: a client's conditions, answered out of the cache.
@Suite(.scripts) struct RFC9110ConditionalTests {
    private static let then = "Mon, 01 Jan 2018 00:00:00 GMT"

    /// What is stored, what a client asks with, and what it is answered.
    typealias Row = (stored: FieldLines, conditions: FieldLines, status: Int)

    private static let rows: [Row] = {
        let tagged: FieldLines = ["ETag": "\"a\""]
        let weak: FieldLines = ["ETag": "W/\"a\""]
        let dated: FieldLines = ["Last-Modified": then]
        func tag(_ values: String...) -> FieldLines {
            FieldLines(values.map { .init(name: "If-None-Match", value: $0) })
        }
        func since(_ value: String) -> FieldLines { ["If-Modified-Since": value] }
        return [
            // §13.1.2: weak comparison, lists in one line and several, any.
            (tagged, tag("\"a\""), 304), (tagged, tag("W/\"a\""), 304), (weak, tag("\"a\""), 304),
            (weak, tag("W/\"a\""), 304),
            (tagged, tag("\"b\""), 200), (tagged, tag("\"A\""), 200), (tagged, tag("\"b\", \"a\""), 304),
            (tagged, tag("\"b\",W/\"a\""), 304), (tagged, tag("\"b\"", "\"a\""), 304), (tagged, tag(", \"a\" ,"), 304),
            (tagged, tag("*"), 304), (dated, tag("*"), 304), ([:], tag("*"), 304),
            (["ETag": "\"a,b\""], tag("\"a,b\""), 304), (["ETag": "\"a,b\""], tag("\"a\", \"b\""), 200),
            (["ETag": "\"\""], tag("\"\""), 304), (["ETag": "\"\u{e9}\""], tag("\"\u{e9}\""), 304),
            // What is no tag matches none.
            (tagged, tag("a"), 200), (tagged, tag("'a'"), 200), (tagged, tag("w/\"a\""), 200),
            (tagged, tag("\"a"), 200),
            (tagged, tag("a, \"a\""), 304), (["ETag": "a"], tag("a"), 200), (["ETag": "a"], tag("\"a\""), 200),
            (tagged, tag(""), 200),
            // §13.1.3: dates in their three forms.
            (dated, since(then), 304), (dated, since("Monday, 01-Jan-18 00:00:00 GMT"), 304),
            (dated, since("Mon Jan  1 00:00:00 2018"), 304), (dated, since("Tue, 02 Jan 2018 00:00:00 GMT"), 304),
            (dated, since("Sun, 31 Dec 2017 23:59:59 GMT"), 200), (dated, since("2018-01-01"), 200),
            (dated, since("0"), 200),
            (dated, since(""), 200), (tagged + dated, since(then), 304),
            (dated, since(then) + since(then), 200),
            // Without Last-Modified the date of the response stands in (RFC 9111 §4.3.2).
            (["Date": "Mon, 01 Jan 2018 00:00:00 GMT", "Cache-Control": "max-age=999999999"], since(then), 304),
            (
                ["Date": "Mon, 01 Jan 2018 00:00:00 GMT", "Cache-Control": "max-age=999999999"],
                since("Sun, 31 Dec 2017 23:59:59 GMT"), 200
            ),
            // §13.2.2: a tag takes precedence.
            (tagged + dated, tag("\"b\"") + since(then), 200),
            (tagged + dated, tag("\"a\"") + since("Sun, 31 Dec 2017 00:00:00 GMT"), 304),
            (dated, tag("\"b\"") + since(then), 200), (tagged + dated, tag("x") + since(then), 200),
        ]
    }()

    @Test(arguments: [201, 203, 204, 205, 226, 299, 301, 404, 410])
    func `§15.4.5: a 304 replaces only a 200, whether passed on, stored or replayed`(status: Int) throws {
        let fields: FieldLines = ["ETag": "\"a\"", "Last-Modified": Self.then]
        let origin = try Origin { _ in .empty(status, fields + Fresh.hour) }
        let conditions: [FieldLines] = [
            ["If-None-Match": "*"], ["If-None-Match": "\"a\""], ["If-Modified-Since": Self.then],
        ]
        let recording = RecordedFolder()
        try recording.record(origin) { _ = try $0.get("/x") }
        let replay = try Larder.replaying(recording.path)
        let larder = try Larder(origin)
        for condition in conditions {
            #expect(try larder.get("/x", condition).status == status, "\(condition)")
            #expect(try larder.request("HEAD", "/x", condition).status == status, "\(condition)")
            #expect(try replay.get("/x", condition).status == status, "\(condition)")
        }
    }

    @Test func `§13.2: a fresh stored response decides a client's conditions`() throws {
        let rows = Self.rows
        let origin = try Origin { request in
            let stored = rows[Int(request.path.dropFirst()) ?? 0].stored
            return .text("body", stored.contains("Cache-Control") ? stored : stored + Fresh.hour)
        }
        let larder = try Larder(origin)
        for (index, row) in rows.enumerated() {
            _ = try larder.get("/\(index)")
            for method in ["GET", "HEAD"] {
                let answer = try larder.request(method, "/\(index)", row.conditions)
                #expect(answer.status == row.status, "\(method) of row \(index): \(row.conditions.text)")
                #expect(answer.isHit, "row \(index)")
                #expect(answer.body.isEmpty == (row.status == 304 || method == "HEAD"))
            }
        }
        #expect(origin.count() == rows.count)
    }

    @Test func `§13.2: conditions get the same result if nothing was stored before`() throws {
        let rows = Self.rows
        let origin = try Origin { request in
            let stored = rows[Int(request.path.dropFirst()) ?? 0].stored
            return .text("body", stored.contains("Cache-Control") ? stored : stored + Fresh.hour)
        }
        let larder = try Larder(origin)
        for (index, row) in rows.enumerated() {
            let answer = try larder.get("/\(index)", row.conditions)
            #expect(answer.status == row.status, "row \(index): \(row.conditions.text)")
            // The whole was fetched for it, and is there for the next one, or on its way: a 304 does not wait for the body.
            let next = try larder.get("/\(index)")
            #expect(next.isHit || next.cacheStatus.contains("collapsed"), "row \(index)")
            #expect(next.text == "body", "row \(index)")
        }
    }

    @Test func `§15.4.5: a 304 has the fields of the 200, except those about the body`() throws {
        let fields: FieldLines = [
            "ETag": "\"a\"", "Cache-Control": "max-age=60", "Content-Location": "/y", "Date": CacheTests.date(in: -1),
            "Expires": CacheTests.date(in: 60), "Vary": "X-A", "Last-Modified": Self.then, "Content-Type": "a/b",
            "Content-Language": "en", "X-Custom": "1",
        ]
        let origin = try Origin { _ in .text("body", fields) }
        let larder = try Larder(origin)
        let relayed = try larder.get("/x", ["If-None-Match": "\"a\""])
        // A 304 does not wait for the body behind it, so that who asks at once can still share its request.
        #expect(try eventually { try larder.get("/x", ["If-None-Match": "\"a\""]).isHit })
        let hit = try larder.get("/x", ["If-None-Match": "\"a\""])
        #expect(hit.isHit)
        for answer in [relayed, hit] {
            #expect(answer.status == 304)
            for name in ["ETag", "Cache-Control", "Date", "Expires"] {
                #expect(answer[name] == fields[name], "\(name)")
            }
            #expect(answer["Vary"] == "X-A")
            #expect(answer["Content-Location"] != nil)
            for name in ["Content-Length", "Content-Type", "Transfer-Encoding", "Content-Language"] {
                #expect(answer[name] == nil, "\(name)")
            }
        }
    }

    @Test func `§13.1.1, §13.1.4: conditions for the origin go upstream, and only the origin evaluates them`() throws {
        let then = Self.then
        let rows: [(condition: FieldLines, status: Int)] = [
            (["If-Match": "\"a\""], 200), (["If-Match": "*"], 200), (["If-Match": "\"b\""], 412),
            (["If-Match": "\"a\"", "If-None-Match": "\"a\""], 304), (["If-Unmodified-Since": then], 200),
            (["If-Unmodified-Since": "Sun, 31 Dec 2017 00:00:00 GMT"], 412),
        ]
        let origin = try Origin { request in
            let fields = Fresh.tagged("a") + ["Last-Modified": then]
            if let match = request["If-Match"], match != "*", match != "\"a\"" {
                return .empty(412, ["Content-Length": "0"])
            }
            if let date = request["If-Unmodified-Since"], date != then { return .empty(412, ["Content-Length": "0"]) }
            return request["If-None-Match"] == "\"a\"" ? .notModified(fields) : .text("body", fields)
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        for row in rows {
            let before = origin.count()
            #expect(try larder.get("/x", row.condition).status == row.status, "\(row.condition.text)")
            #expect(origin.count() == before + 1)
            for line in row.condition.lines { #expect(origin.requests.last?[line.name] == line.value) }
            // Nor has it cost the stored response anything.
            #expect(try larder.get("/x").isHit)
        }
        // A date that is none is no condition.
        #expect(try larder.get("/x", ["If-Unmodified-Since": "soon"]).isHit)
        #expect(try larder.admin("PUT", "/mode", body: #"{"mode":"offline"}"#).status < 300)
        #expect(try larder.get("/x", ["If-Match": "\"b\""]).status == 200)
    }

    @Test func `§13.2.1: conditions do not apply to responses that are not successful`() throws {
        let origin = try Origin { request in
            .text("body", Fresh.tagged("a"), status: Int(request.path.dropFirst()) ?? 0)
        }
        let larder = try Larder(origin)
        for status in [301, 404, 410] {
            _ = try larder.get("/\(status)")
            let answer = try larder.get("/\(status)", ["If-None-Match": "\"a\""])
            #expect(answer.status == status && answer.isHit && answer.text == "body")
        }
    }
}
