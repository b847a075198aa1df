import TestSupport
import Testing

/// RFC 9111 §3.1 and §3.2: which fields of a response are kept, and which a 304 puts in their place.
@Suite(.scripts) struct RFC9111RefreshTests {
    /// A field, two values for it, and whether it is kept and refreshed.
    typealias Row = (name: String, old: String, new: String, isKept: Bool, isRefreshed: Bool)

    private static func kept(_ name: String, _ old: String = "old", _ new: String = "new") -> Row {
        (name, old, new, true, true)
    }

    private static func dropped(_ name: String, _ old: String = "old", _ new: String = "new") -> Row {
        (name, old, new, false, false)
    }

    private static let rows: [Row] = [
        kept("X-Custom"), kept("Test-Header"), kept("X-RateLimit-Remaining", "42", "41"),
        kept("RateLimit-Limit", "5", "6"),
        kept("Link", "<http://example.com/a>; rel=next", "<http://example.com/b>; rel=next"),
        kept("Content-Type", "a/b", "c/d"),
        kept("Content-Language", "de", "en"), kept("Content-Location", "/a", "/b"), kept("Content-Disposition"),
        kept("Content-MD5", "QQ==", "Qg=="), kept("Content-Foo"), kept("X-Content-Foo"),
        kept("Content-Security-Policy", "default-src 'self'", "default-src 'none'"),
        kept("X-Frame-Options", "deny", "sameorigin"), kept("X-XSS-Protection", "1", "0"),
        kept("Clear-Site-Data", "\"*\"", "\"cache\""),
        kept("Public-Key-Pins"), kept("Strict-Transport-Security", "max-age=1", "max-age=2"), kept("Refresh", "5", "6"),
        kept("Server"), kept("P3P"), kept("Accept-Ranges", "none", "bytes"), kept("Allow", "GET", "GET, POST"),
        kept("WWW-Authenticate", "Basic", "Bearer"), kept("Retry-After", "1", "2"),
        kept("Vary", "X-Nothing", "X-Nobody"), kept("Pragma", "one", "two"),
        kept("Expires", "Mon, 01 Jan 2018 00:00:00 GMT", "Tue, 02 Jan 2018 00:00:00 GMT"),
        kept("Last-Modified", "Mon, 01 Jan 2018 00:00:00 GMT", "Mon, 01 Jan 2018 00:00:00 GMT"),
        kept("Surrogate-Control"), kept("Access-Control-Expose-Headers"), kept("Deprecation"), kept("Sunset"),
        // An unknown coding is passed on as it is; a 304 does not change what lies in the store.
        ("Content-Encoding", "foo", "bar", true, false),
        // Of the connection, of a proxy, of the one whose request it answered.
        dropped("X-Hop"), dropped("Keep-Alive", "timeout=5", "timeout=6"),
        dropped("Proxy-Connection", "close", "close"),
        dropped("Proxy-Authenticate", "Basic", "Digest"),
        dropped("Proxy-Authorization"),
        dropped("TE", "trailers", "trailers"), dropped("Upgrade", "h2c", "websocket"),
        dropped("Set-Cookie", "a=1", "a=2"),
        dropped("Set-Cookie2", "a=1", "a=2"),
    ]

    /// Answers each row's field: first the old value, to a condition the new one.
    private static func origin(_ rows: [Row] = rows, _ fields: FieldLines = [:]) throws -> Origin {
        try Origin { request in
            let row = rows[Int(request.path.dropFirst()) ?? 0]
            let isAsked = request["If-None-Match"] != nil
            let own: FieldLines = [
                "ETag": "\"a\"", "Connection": "X-Hop", row.name: isAsked ? row.new : row.old,
                "Cache-Control": isAsked ? "max-age=60" : "no-cache",
            ]
            return isAsked ? .notModified(own + fields) : .text("body", own + fields)
        }
    }

    /// What a client sees of a row's field.
    private func value(_ row: Row, in answer: Response) -> String? {
        answer.fields.all(row.name).last
    }

    @Test func `§3.1: every field is stored and replayed except connection, proxy and personal fields`() throws {
        let rows = Self.rows
        let origin = try Origin { request in
            let row = rows[Int(request.path.dropFirst()) ?? 0]
            return .text("body", Fresh.hour + ["Connection": "X-Hop", row.name: row.old])
        }
        let larder = try Larder(origin)
        // A pragma of this name would be the client's; the values here mean nothing. An old `Expires` yields to `max-age`.
        for (index, row) in rows.enumerated() {
            _ = try larder.get("/\(index)", ["X-Nothing": "1"])
            let hit = try larder.get("/\(index)", ["X-Nothing": "1"])
            #expect(hit.isHit && hit.text == "body", "\(row.name)")
            #expect(value(row, in: hit) == (row.isKept ? row.old : nil), "\(row.name)")
        }
        // The store has them, too.
        #expect(try larder.waitForDocuments(rows.count))
        try larder.restart()
        for (index, row) in rows.enumerated() {
            let hit = try larder.get("/\(index)", ["X-Nothing": "1"])
            #expect(hit.isHit && hit.text == "body", "\(row.name)")
            #expect(value(row, in: hit) == (row.isKept ? row.old : nil), "\(row.name)")
        }
    }

    @Test func `§3.2: a 304 permanently replaces every field except those of framing, coding and connection`() throws {
        let rows = Self.rows
        let origin = try Self.origin()
        let larder = try Larder(origin)
        for (index, row) in rows.enumerated() {
            let first = try larder.get("/\(index)")
            if row.isKept { #expect(value(row, in: first) == row.old, "\(row.name)") }
            let renewed = try larder.get("/\(index)")
            let expected = row.isRefreshed ? row.new : row.isKept ? row.old : nil
            #expect(renewed.text == "body" && renewed.cacheStatus.contains("fwd-status=304"), "\(row.name)")
            if row.name != "Set-Cookie" { #expect(value(row, in: renewed) == expected, "\(row.name)") }
            let hit = try larder.get("/\(index)")
            #expect(hit.isHit && hit.text == "body", "\(row.name): \(hit.cacheStatus)")
            #expect(value(row, in: hit) == expected, "\(row.name)")
        }
        #expect(try larder.waitForDocuments(rows.count))
        #expect(larder.terminate() != nil)
        try larder.start()
        for (index, row) in rows.enumerated() {
            let hit = try larder.get("/\(index)")
            #expect(hit.isHit && hit.text == "body", "\(row.name)")
            #expect(value(row, in: hit) == (row.isRefreshed ? row.new : row.isKept ? row.old : nil), "\(row.name)")
        }
        #expect(origin.count() == 2 * rows.count)
    }

    @Test func `§3.2: a 304's Content-Length is ignored, and several lines of a field replace one`() throws {
        let origin = try Origin { request in
            request["If-None-Match"] == nil
                ? .text("body", Fresh.tagged("a", 0) + ["Link": "<a>", "X-Old": "1"])
                : .notModified(
                    Fresh.tagged("a") + [
                        "Content-Length": "400", "Link": "<b>", "link": "<c>", "Content-Range": "bytes 0-0/1",
                    ]
                )
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        for _ in 1...2 {
            let answer = try larder.get("/x")
            #expect(answer["Content-Length"] == "4" && answer.text == "body" && answer["Content-Range"] == nil)
            #expect(answer.fields.all("Link") == ["<b>", "<c>"] && answer["X-Old"] == "1")
        }
    }

    @Test func `§4.3.4: freshness is computed from the updated fields`() throws {
        let origin = try Origin { request in
            switch (request.path, request["If-None-Match"]) {
            case ("/expires", nil): .text("x", ["ETag": "\"a\"", "Expires": "0"])
            case ("/expires", _):
                .notModified(["ETag": "\"a\"", "Date": CacheTests.date(in: 0), "Expires": CacheTests.date(in: 60)])
            case ("/aged", nil): .text("x", ["ETag": "\"a\"", "Cache-Control": "max-age=600", "Age": "1000"])
            case ("/aged", _): .notModified(["ETag": "\"a\"", "Age": "500"])
            case ("/undated", nil):
                .text("x", ["ETag": "\"a\"", "Cache-Control": "max-age=60", "Date": CacheTests.date(in: -100)])
            case ("/undated", _): .notModified(["ETag": "\"a\""])
            case (_, nil): .text("x", Fresh.tagged("a", 0))
            default: .notModified(["ETag": "\"a\"", "Cache-Control": "no-cache"])
            }
        }
        let larder = try Larder(origin)
        for path in ["/expires", "/aged", "/undated", "/insists"] {
            _ = try larder.get(path)
            #expect(try larder.get(path).cacheStatus.contains("fwd-status=304"), "\(path)")
            #expect(try larder.get(path).isHit == (path != "/insists"), "\(path)")
        }
        let age = Int(try larder.get("/aged")["Age"] ?? "") ?? 0
        #expect((500..<600).contains(age))
        #expect(try larder.get("/undated")["Date"] != CacheTests.date(in: -100))
    }

    @Test func `§3.2: cookies of a 304 are replayed only where the config says so`() throws {
        let rows: [Row] = [("Set-Cookie", "a=1", "a=2", true, true)]
        let origin = try Self.origin(rows)
        let larder = try Larder(config: Configs.plain(origin, upstream: ["cookies: replay"]))
        #expect(try larder.get("/0")["Set-Cookie"] == "a=1")
        for _ in 1...2 { #expect(try larder.get("/0").fields.all("Set-Cookie") == ["a=2"]) }
        // Else the one whose request brought it has it, and nobody after that.
        let plain = try Larder(origin)
        _ = try plain.get("/0")
        #expect(try plain.get("/0")["Set-Cookie"] == "a=2")
        #expect(try plain.get("/0")["Set-Cookie"] == nil)
    }

    @Test func `§5.2.2.4: a field that no-cache names goes only to the client whose request brought it`() throws {
        let origin = try Origin { request in
            let isAsked = request["If-None-Match"] != nil
            let own: FieldLines = [
                "ETag": "\"a\"", "Cache-Control": "max-age=\(isAsked ? 60 : 0), no-cache=\"X-Once\"",
                "X-Once": "\(request.number)",
                "X-Ever": "1",
            ]
            return isAsked ? .notModified(own) : .text("body", own)
        }
        let larder = try Larder(origin)
        #expect(try larder.get("/x")["X-Once"] == "0")
        #expect(try larder.get("/x")["X-Once"] == "1")
        let hit = try larder.get("/x")
        #expect(hit.isHit && hit["X-Once"] == nil && hit["X-Ever"] == "1")
    }
}
