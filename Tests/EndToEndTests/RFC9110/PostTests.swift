import TestSupport
import Testing

/// RFC 9110 §9.3.3: answers to POST that later answer a GET.
@Suite(.scripts) struct RFC9110PostTests {
    @Test func `§9.3.3: a POST's response is stored only if it is explicitly fresh and Content-Location is its target`()
        throws
    {
        let rows: [(fields: FieldLines, status: Int, isStored: Bool)] = [
            (["Cache-Control": "max-age=60", "Content-Location": "SELF"], 200, true),
            (["Cache-Control": "max-age=60", "Content-Location": "OWN"], 200, true),
            (["Expires": "LATER", "Content-Location": "SELF"], 200, true),
            (["Cache-Control": "max-age=60"], 200, false),
            (["Cache-Control": "max-age=60", "Content-Location": "/other"], 200, false),
            (["Cache-Control": "max-age=60", "Content-Location": "SELF?q"], 200, false),
            (["Cache-Control": "max-age=60", "Content-Location": "http://example.comSELF"], 200, false),
            (["Content-Location": "SELF", "Last-Modified": "Mon, 01 Jan 2018 00:00:00 GMT"], 200, false),
            (["Content-Location": "SELF", "Cache-Control": "public"], 200, false),
            (["Cache-Control": "max-age=60, no-store", "Content-Location": "SELF"], 200, false),
            (["Cache-Control": "max-age=60", "Content-Location": "SELF", "Vary": "*"], 200, false),
            (["Cache-Control": "max-age=60", "Content-Location": "SELF"], 202, false),
            (["Cache-Control": "max-age=60", "Content-Location": "SELF"], 201, false),
            (["Cache-Control": "max-age=60", "Content-Location": "SELF"], 404, false),
            (["Cache-Control": "max-age=0", "Content-Location": "SELF"], 200, false),
        ]
        let origin = try Origin { request in
            guard request.method == "POST" else { return .text("got", Fresh.hour) }
            let row = rows[Int(request.path.dropFirst(3)) ?? 0]
            let lines = row.fields.lines.map { line in
                FieldLines.Line(
                    name: line.name,
                    value: line.value.replacing("SELF", with: request.path)
                        .replacing("OWN", with: "http://\(request["Host"] ?? "")\(request.path)")
                        .replacing("LATER", with: CacheTests.date(in: 60))
                )
            }
            return .text("posted", FieldLines(lines), status: row.status)
        }
        let larder = try Larder(origin)
        for (index, row) in rows.enumerated() {
            let path = "/p/\(index)"
            #expect(try larder.request("POST", path, body: "x").text == "posted", "row \(index)")
            let answer = try larder.get(path)
            #expect(answer.isHit == row.isStored, "row \(index)")
            #expect(answer.text == (row.isStored ? "posted" : "got"), "row \(index)")
            if row.isStored { #expect(try larder.request("HEAD", path)["Content-Length"] == "6") }
        }
    }

    @Test func `§9.3.3: no POST is answered from the cache, and a later one's response replaces the stored one`() throws
    {
        let origin = try Origin { request in
            .text(
                "\(request.number)",
                Fresh.hour + ["Content-Location": request.path, "ETag": "\"\(request.number)\""]
            )
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        for number in 1...3 {
            #expect(try larder.request("POST", "/x", body: "x").text == "\(number)")
            let hit = try larder.get("/x")
            #expect(hit.isHit && hit.text == "\(number)")
        }
        #expect(try larder.get("/x", ["If-None-Match": "\"3\""]).status == 304)
        // In the store as well.
        #expect(try larder.waitForDocuments(1))
        try larder.restart()
        #expect(try larder.get("/x").text == "3")
        #expect(try larder.request("DELETE", "/x").status == 200)
        #expect(try !larder.get("/x").isHit)
    }

    @Test func `§9.3.3: POSTs to several targets at a time are all stored, also by Larder's own address`() throws {
        let count = 12
        let crowd = Monitor(0)
        let port = Monitor<UInt16>(0)
        let origin = try Origin { request in
            guard request.method == "POST" else { return .text("got", Fresh.hour) }
            // All are answered together, so that their invalidations are committed at one time.
            crowd.withLock { $0 += 1 }
            crowd.wait { $0 >= count }
            let location = (request.path.hasSuffix("1") ? "http://127.0.0.1:\(port.current)" : "") + request.path
            return .text("posted", Fresh.hour + ["Content-Location": location])
        }
        let larder = try Larder(origin)
        port.withLock { $0 = larder.port }
        _ = try together(count) { try larder.client().request("POST", "/posts/\($0)", body: "x") }
        for number in 0..<count { #expect(try larder.get("/posts/\(number)").text == "posted") }
    }

    @Test func `§9.3.3: a response stored by a POST is selected by the POST's own fields`() throws {
        let origin = try Origin { request in
            .text(
                "\(request.method) \(request["X-A"] ?? "-")",
                Fresh.hour + ["Content-Location": request.path, "Vary": "X-A"]
            )
        }
        let larder = try Larder(origin)
        _ = try larder.request("POST", "/x", ["X-A": "1"], body: "x")
        #expect(try larder.get("/x", ["X-A": "1"]).text == "POST 1")
        #expect(try larder.get("/x", ["X-A": "2"]).text == "GET 2")
        #expect(try larder.get("/x", ["X-A": "1", "Authorization": "Bearer other"]).text == "GET 1")
    }

    @Test func `§9.3.3: a POST's event stream, or truncated compressed response, is not stored`() throws {
        let origin = try Origin { request in
            let fields = Fresh.hour + ["Content-Location": request.path]
            guard request.method == "POST" else { return .text("got", Fresh.hour) }
            guard request.path == "/gzip" else {
                return .body(Array("data: 1\n\n".utf8), fields + ["Content-Type": "text/event-stream"])
            }
            // Without its end, and the checksum that follows: libcurl takes it for whole.
            let json = gzipStored(Array(#"{"a":"\#(String(repeating: "a", count: 1_000))"}"#.utf8)).dropLast(200)
            return .body(Array(json), fields + ["Content-Type": "application/json", "Content-Encoding": "gzip"])
        }
        let larder = try Larder(origin)
        for path in ["/events", "/gzip"] {
            // What breaks off ends so for the client, too.
            if path == "/gzip" {
                #expect(throws: SocketError.reset) { try larder.request("POST", path, body: "x") }
            } else {
                _ = try larder.request("POST", path, body: "x")
            }
            let answer = try larder.get(path)
            #expect(!answer.isHit && answer.text == "got", "\(path)")
        }
    }
}
