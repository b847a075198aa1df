import TestSupport
import Testing

/// RFC 9111 §4.4: what an unsafe request makes of stored responses.
@Suite(.scripts) struct RFC9111InvalidationTests {
    @Test func `§4.4: every method that is not known to be safe invalidates its target, unless it failed`() throws {
        let rows: [(method: String, status: Int, isKept: Bool)] =
            ["POST", "PUT", "PATCH", "DELETE", "M-SEARCH", "PURGE", "FOO", "get", "LOCK", "MKCOL"].map {
                ($0, 200, false)
            }
            + [200, 201, 202, 204, 205, 299, 301, 302, 303, 307, 308, 399].map { ("POST", $0, false) }
            + [400, 401, 404, 409, 412, 422, 499, 500, 502, 503, 599].map { ("POST", $0, true) }
            + [("FOO", 404, true), ("M-SEARCH", 500, true), ("OPTIONS", 200, true)]
        let origin = try Origin { request in
            let row = rows[Int(request.path.dropFirst(3)) ?? 0]
            return request.method == "GET"
                ? .text("\(request.number)", Fresh.hour) : .empty(row.status, ["Content-Length": "0"])
        }
        let larder = try Larder(origin)
        for (index, row) in rows.enumerated() {
            let path = "/t/\(index)"
            let first = try larder.get(path)
            #expect(try larder.request(row.method, path).status == row.status, "\(row.method) \(row.status)")
            let second = try larder.get(path)
            #expect(second.isHit == row.isKept, "\(row.method) \(row.status)")
            #expect((second.body == first.body) == row.isKept, "\(row.method) \(row.status)")
        }
    }

    @Test func `§4.4: URLs in Location and Content-Location are invalidated only if they are of the same origin`()
        throws
    {
        let other = try Origin { _ in .text("elsewhere", Fresh.hour) }
        // The value names /named/N, N being the row; OWN and OTHER stand for the origins.
        let rows: [(value: String, isKept: Bool)] = [
            ("/named/N", false), ("OWN/named/N", false), ("//HOST/named/N", false), ("../named/N", false),
            ("../named/./x/../N", false), ("/named/N?page=2", false), ("/named/N#part", false), ("?N", true),
            ("OTHER/named/N", true), ("//example.com/named/N", true), ("https://HOST/named/N", true),
            ("ftp://HOST/named/N", true),
            ("named/N", true), ("", true), ("http://", true), ("%zz", true),
        ]
        let port = Monitor<UInt16>(0)
        let origin = try Origin { request in
            guard request.method != "GET" else { return .text("\(request.number)", Fresh.hour) }
            let parts = request.path.components("/")
            let host = "127.0.0.1:\(port.current)"
            let value = rows[Int(parts[2]) ?? 0].value
                .replacing("OWN", with: "http://\(host)").replacing("OTHER", with: other.url)
                .replacing("HOST", with: host).replacing("N", with: parts[2])
            return .empty(
                request.method == "POST" ? 201 : 200,
                [request["X-Field"] ?? "": value, "Content-Length": "0"]
            )
        }
        port.withLock { $0 = origin.port }
        let larder = try Larder(origin)
        for field in ["Location", "Content-Location"] {
            for (index, row) in rows.enumerated() {
                _ = try larder.get("/named/\(index)")
                _ = try larder.request("POST", "/act/\(index)", ["X-Field": field])
                #expect(try larder.get("/named/\(index)").isHit == row.isKept, "\(field): \(row.value)")
            }
        }
    }

    @Test func `§4.4: in Location, a URL at the address that the client used is of the same origin`() throws {
        // The values stand for URLs at Larder (HERE), of another upstream (BESIDE), and of nobody.
        let rows: [(value: String, isKept: Bool)] = [
            ("HERE/named/N", false), ("HERE/named/N?page=2", false), ("HERE/named/./x/../N#part", false),
            ("//example.com/named/N", true), ("HERE/other/N", true), ("BESIDE/named/N", true), ("HEREnamed/N", true),
        ]
        let port = Monitor<UInt16>(0)
        let origin = try Origin { request in
            guard request.method != "GET" else { return .text("\(request.number)", Fresh.hour) }
            let parts = request.path.components("/")
            let here = "http://127.0.0.1:\(port.current)"
            let value = rows[Int(parts[3]) ?? 0].value
                .replacing("HERE", with: here + "/api").replacing("BESIDE", with: here + "/beside")
                .replacing("N", with: parts[3])
            return .empty(201, [request["X-Field"] ?? "": value, "Content-Length": "0"])
        }
        let larder = try Larder(
            config: """
                upstreams:
                  api: { url: "\(origin.url)/v3", prefix: /api }
                  beside: { url: "\(origin.url)/v4", prefix: /beside }
                """
        )
        port.withLock { $0 = larder.port }
        for field in ["Location", "Content-Location"] {
            for (index, row) in rows.enumerated() {
                _ = try larder.get("/api/named/\(index)")
                _ = try larder.request("POST", "/api/act/\(index)", ["X-Field": field])
                #expect(try larder.get("/api/named/\(index)").isHit == row.isKept, "\(field): \(row.value)")
            }
        }
    }

    @Test func `§4.4: a read that overlapped with a write to another path is a hit at once`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            guard request.method == "GET" else { return .empty(204) }
            return OriginResponse.text("\(request.number)", Fresh.hour).after(gate)
        }
        // What is not a hit before its commit is none for a second.
        let larder = try Larder(
            config: """
                store: { batch_delay: 1s }
                upstreams: { api: { url: "\(origin.url)" } }
                """
        )
        let slow = Background { try larder.get("/read/1") }
        origin.waitForRequests(1, "/read/1")
        #expect(try larder.request("PUT", "/written/1", body: "x").status == 204)
        gate.open()
        let first = try slow.value()
        let second = try larder.get("/read/1")
        #expect(second.isHit && second.text == first.text)
    }

    @Test func `§4.4: an error's Location invalidates nothing`() throws {
        let origin = try Origin { request in
            request.method == "GET"
                ? .text("x", Fresh.hour) : .empty(404, ["Location": "/named", "Content-Length": "0"])
        }
        let larder = try Larder(origin)
        for path in ["/act", "/named"] { _ = try larder.get(path) }
        #expect(try larder.request("POST", "/act").status == 404)
        for path in ["/act", "/named"] { #expect(try larder.get(path).isHit) }
    }

    @Test func `§4.4: all variants, queries and principals of a target are invalidated, also after a restart`() throws {
        let origin = try Origin { request in
            request.method == "GET"
                ? .text("\(request.number)", Fresh.hour + ["Vary": "X-A"]) : .empty(204)
        }
        let larder = try Larder(origin)
        let asked: [(String, FieldLines)] = [
            ("/x", ["X-A": "1"]), ("/x", ["X-A": "2"]), ("/x?q=1", [:]), ("/x", ["Authorization": "Bearer one"]),
        ]
        for (target, fields) in asked { _ = try larder.get(target, fields) }
        for (target, fields) in asked { #expect(try larder.get(target, fields).isHit) }
        #expect(try larder.waitForDocuments(asked.count))
        #expect(try larder.request("DELETE", "/x").status == 204)
        larder.kill()
        try larder.start()
        for (target, fields) in asked { #expect(try !larder.get(target, fields).isHit) }
    }
}
