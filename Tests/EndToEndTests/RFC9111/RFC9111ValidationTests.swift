import TestSupport
import Testing

/// RFC 9111 §4.3: the upstream is asked whether what is stored still holds.
@Suite(.scripts) struct RFC9111ValidationTests {
    private static let then = "Mon, 01 Jan 2018 00:00:00 GMT"

    @Test func `§4.3.1: exactly the validators of the stored response go upstream`() throws {
        let then = Self.then
        let rows: [(fields: FieldLines, tag: String?, date: String?)] = [
            (["ETag": "\"a\""], "\"a\"", nil), (["ETag": "W/\"a\""], "W/\"a\"", nil), (["ETag": "\"\""], "\"\"", nil),
            (["Last-Modified": then], nil, then), (["ETag": "\"a\"", "Last-Modified": then], "\"a\"", then),
            // The date in another form is the same date.
            (["Last-Modified": "Monday, 01-Jan-18 00:00:00 GMT"], nil, then),
            // No validators: the whole is asked for.
            (["ETag": "unquoted"], nil, nil), (["Last-Modified": "yesterday"], nil, nil), (["Date": then], nil, nil),
        ]
        let origin = try Origin { request in
            .text("x", Fresh.never + rows[Int(request.path.dropFirst()) ?? 0].fields)
        }
        let larder = try Larder(origin)
        for (index, row) in rows.enumerated() {
            _ = try larder.get("/\(index)")
            // The client's own conditions are Larder's to answer.
            #expect(try larder.get("/\(index)", ["If-None-Match": "\"mine\""]).text == "x")
            #expect(origin.requests.last?["If-None-Match"] == row.tag, "row \(index)")
            #expect(origin.requests.last?["If-Modified-Since"] == row.date, "row \(index)")
        }
    }

    @Test func `a 304 with the strong form of a stored weak tag confirms the bytes, and only its freshness counts`()
        throws
    {
        let origin = try Origin { request in
            request["If-None-Match"] == "W/\"a\""
                ? .notModified(["ETag": "\"a\"", "Cache-Control": "max-age=0, x", "Link": "<new>", "X-A": "new"])
                : .text("x", Fresh.never + ["ETag": "W/\"a\"", "Link": "<old>", "X-A": "old"])
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        for _ in 1...3 {
            let answer = try larder.get("/x")
            #expect(
                answer.text == "x" && answer.cacheStatus.contains("fwd=stale;fwd-status=304"),
                "\(answer.cacheStatus)"
            )
            #expect(answer["ETag"] == "W/\"a\"" && answer["Link"] == "<old>" && answer["X-A"] == "old")
            #expect(answer["Cache-Control"] == "max-age=0, x")
        }
        #expect(origin.count() == 4)
        // It is fresh for as long as the last 304 says.
        origin.behave { _ in .notModified(["ETag": "\"a\""] + Fresh.hour) }
        #expect(try larder.get("/x").text == "x")
        #expect(try larder.get("/x").isHit)
        #expect(origin.count() == 5)
    }

    /// An origin whose representation follows `X-A`, with a tag of it; 304 where it is known.
    private static func varying(_ fields: FieldLines = Fresh.hour) throws -> Origin {
        try Origin { request in
            // 1 and 11 are the same representation.
            let kind = (request["X-A"] ?? "").last.map(String.init) ?? ""
            let own = fields + ["Vary": "X-A", "ETag": "\"\(kind)\"", "X-Count": "\(request.number)"]
            let known = (request["If-None-Match"] ?? "").components(", ")
            return known.contains("\"\(kind)\"") ? .notModified(own) : .text("body \(kind)", own)
        }
    }

    @Test func `§4.3.1: the tags of all variants go upstream, and the 304 names one`() throws {
        let origin = try Self.varying()
        let larder = try Larder(origin)
        for kind in ["1", "2", "3"] { _ = try larder.get("/x", ["X-A": kind]) }
        #expect(Set((origin.requests[2]["If-None-Match"] ?? "").components(", ")) == ["\"1\"", "\"2\""])

        let fourth = try larder.get("/x", ["X-A": "12"])
        #expect(Set((origin.requests[3]["If-None-Match"] ?? "").components(", ")) == ["\"1\"", "\"2\"", "\"3\""])
        #expect(fourth.status == 200 && fourth.text == "body 2")
        #expect(fourth["X-Count"] == "3" && fourth["ETag"] == "\"2\"")
        #expect(fourth.cacheStatus.contains("fwd=vary-miss;fwd-status=304"))
        #expect(origin.count() == 4)

        // It is the response for this selection from now on, and the others are what they were.
        for (kind, text) in [("12", "body 2"), ("1", "body 1"), ("2", "body 2"), ("3", "body 3")] {
            let answer = try larder.get("/x", ["X-A": kind])
            #expect(answer.isHit && answer.text == text)
        }
        #expect(try larder.get("/x", ["X-A": "2"])["X-Count"] == "1")
        #expect(try larder.waitForDocuments(4))
        try larder.restart()
        let kept = try larder.get("/x", ["X-A": "12"])
        #expect(kept.isHit && kept.text == "body 2" && kept["X-Count"] == "3")
        // Out of the store as well.
        #expect(try larder.get("/x", ["X-A": "13"]).text == "body 3")
        #expect(origin.requests.last?["If-None-Match"]?.components(", ").count == 3)
    }

    @Test func `§4.3.1: a stale variant is validated together with the others`() throws {
        let origin = try Self.varying(Fresh.never)
        // That the field is harmless has to be said: what is stale on arrival is for requests alone that agree in all others.
        let larder = try Larder(config: "upstreams: { api: { url: \"\(origin.url)\", principal: [-X-A] } }")
        for kind in ["1", "2"] { _ = try larder.get("/x", ["X-A": kind]) }
        let again = try larder.get("/x", ["X-A": "1"])
        #expect(again.text == "body 1" && again.cacheStatus.contains("fwd=stale;fwd-status=304"))
        #expect(Set((origin.requests[2]["If-None-Match"] ?? "").components(", ")) == ["\"1\"", "\"2\""])
    }

    @Test func `§4.3.3: a client's condition is evaluated after Larder's own validation`() throws {
        let origin = try Self.varying(Fresh.never)
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["X-A": "1"])
        let current = try larder.get("/x", ["X-A": "1", "If-None-Match": "\"1\""])
        #expect(current.status == 304 && current.body.isEmpty && current["ETag"] == "\"1\"")
        // The 304 that Larder got is not the client's: it asked about something else.
        let other = try larder.get("/x", ["X-A": "1", "If-None-Match": "\"0\""])
        #expect(other.status == 200 && other.text == "body 1")
        #expect(origin.requests.last?["If-None-Match"] == "\"1\"")
        let variant = try larder.get("/x", ["X-A": "11", "If-None-Match": "\"1\""])
        #expect(variant.status == 304)
    }

    @Test func `§4.3.4: a 304 that matches no stored response is ignored, and the whole is fetched`() throws {
        let then = Self.then
        let rows: [(stored: FieldLines, answer: FieldLines, isBelieved: Bool)] = [
            (["ETag": "\"a\""], ["ETag": "\"a\""], true), (["ETag": "\"a\""], [:], true),
            (["ETag": "\"a\""], ["ETag": "W/\"a\""], true), (["ETag": "W/\"a\""], ["ETag": "W/\"a\""], true),
            (["ETag": "\"a\""], ["ETag": "\"b\""], false), (["ETag": "W/\"a\""], ["ETag": "\"a\""], true),
            (["Last-Modified": then], ["Last-Modified": then], true), (["Last-Modified": then], [:], true),
            (["Last-Modified": then], ["Last-Modified": "Tue, 02 Jan 2018 00:00:00 GMT"], false),
            (["Last-Modified": then], ["Last-Modified": then, "ETag": "\"new\""], true),
        ]
        let origin = try Origin { request in
            let row = rows[Int(request.path.dropFirst()) ?? 0]
            guard request["If-None-Match"] == nil, request["If-Modified-Since"] == nil else {
                return .notModified(row.answer + Fresh.hour)
            }
            return .text("\(request.number)", Fresh.never + row.stored)
        }
        let larder = try Larder(origin)
        for (index, row) in rows.enumerated() {
            let first = try larder.get("/\(index)")
            let before = origin.count()
            let second = try larder.get("/\(index)")
            #expect(second.status == 200 && (second.body == first.body) == row.isBelieved, "row \(index)")
            #expect(origin.count() == before + (row.isBelieved ? 1 : 2), "row \(index)")
        }
    }

    @Test func `§4.3.3: a 304 without a tag cannot say which variant it means`() throws {
        let origin = try Origin { request in
            request["If-None-Match"] == nil
                ? .text(request["X-A"] ?? "", Fresh.tagged(request["X-A"] ?? "") + ["Vary": "X-A"]) : .notModified()
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["X-A": "1"])
        #expect(try larder.get("/x", ["X-A": "2"]).text == "2")
        #expect(origin.count() == 3)
    }

    @Test func `§4.3.3: a whole response replaces the validated one, an error does not`() throws {
        let origin = try Origin { request in
            switch (request.path, request["If-None-Match"]) {
            case (_, nil): .text("old", Fresh.tagged("a", 0))
            case ("/new", _): .text("new", Fresh.tagged("b"))
            default: .empty(503)
            }
        }
        let larder = try Larder(origin)
        for path in ["/new", "/error"] { _ = try larder.get(path) }
        #expect(try larder.get("/new").text == "new")
        #expect(try larder.get("/new").isHit)
        #expect(try larder.get("/error").text == "old")
    }

    @Test func `concurrent requests that a 304 does not answer share the second fetch, too`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            request["If-None-Match"] == nil
                ? .text("\(request.number)", Fresh.tagged("a", request.number == 0 ? 0 : 60))
                : OriginResponse.notModified(["ETag": "\"b\""]).after(gate)
        }
        let larder = try Larder.patient(origin)
        _ = try larder.get("/x")
        let answers = Background { try together(6) { _ in try larder.get("/x") } }
        origin.waitForRequests(2)
        #expect(try larder.waitForFollowers(5))
        gate.open()
        #expect(try answers.value().allSatisfy { $0.text == "2" })
        #expect(origin.count() == 3)
    }

    @Test func `§5.2.2.5: a 304 with no-store removes the stored response`() throws {
        let origin = try Origin { request in
            request["If-None-Match"] == nil
                ? .text("\(request.number)", Fresh.tagged("a", 0))
                : .notModified(["ETag": "\"a\"", "Cache-Control": "no-store"])
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let second = try larder.get("/x")
        #expect(second.text == "0" && second["Cache-Control"] == "no-store" && !second.cacheStatus.contains("stored"))
        #expect(try larder.get("/x").text == "2")
        #expect(origin.requests.last?["If-None-Match"] == nil)
    }
}

extension String {
    /// The parts between a separator.
    func components(_ separator: String) -> [String] {
        split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    }
}
