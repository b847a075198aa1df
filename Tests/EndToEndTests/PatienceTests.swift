import TestSupport
import Testing

/// Upstreams that take long: how long a client waits (`patience`), and how long Larder does (`timeouts`).
@Suite(.scripts) struct PatienceTests {
    /// A daemon that has stored `1` for a path, and whose origin says nothing more until the gate opens.
    private static func stalled(
        _ gate: Gate,
        _ fields: FieldLines = Fresh.never,
        path: String = "/x",
        upstream: [String] = ["patience: 0s"]
    ) throws -> (Larder, Origin) {
        let origin = try Origin { _ in .json("1", fields) }
        let larder = try Larder(config: Configs.plain(origin, upstream: upstream))
        _ = try larder.get(path)
        #expect(try larder.waitForDocuments(1))
        origin.behave { _ in OriginResponse.json("2", Fresh.hour).after(gate) }
        return (larder, origin)
    }

    @Test func `a stale response is served once the patience is over, and the fetch goes on`() throws {
        let gate = Gate()
        let (larder, origin) = try Self.stalled(gate, upstream: ["patience: 100ms"])
        let answer = try larder.get("/x")
        #expect(answer.text == "1")
        #expect(answer.cacheStatus.contains("hit;ttl=") && answer.cacheStatus.contains("detail=patience"))
        // Who comes later joins the same fetch, and waits no longer than the first.
        #expect(try larder.get("/x").text == "1")
        #expect(origin.count() == 2)
        gate.open()
        #expect(try eventually { try larder.get("/x").text == "2" })
        #expect(origin.count() == 2)
        #expect(try larder.total("larder_requests_total") > 0)
    }

    @Test(arguments: [("HEAD", [:]), ("GET", ["Range": "bytes=0-0"]), ("GET", ["If-None-Match": "\"x\""])])
    func `a HEAD, a range and a conditional request get a stale response once the patience is over`(
        method: String,
        fields: [String: String]
    ) throws {
        let gate = Gate()
        let (larder, origin) = try Self.stalled(gate)
        defer { origin.stop() }
        defer { gate.open() }
        let lines = FieldLines(fields.map { FieldLines.Line(name: $0.key, value: $0.value) })
        #expect(try larder.request(method, "/x", lines).cacheStatus.contains("detail=patience"))
    }

    @Test(arguments: [
        ("max-age=0, must-revalidate", nil), ("no-cache", nil), ("max-age=0", "no-cache"), ("max-age=0", "max-age=0"),
        ("max-age=0, stale-if-error=0", nil),
    ])
    func `a response that must be validated is waited for beyond the patience`(response: String, request: String?)
        throws
    {
        let gate = Gate()
        // By the time of the second request it has been stale for a second.
        let fields: FieldLines = ["Cache-Control": response, "Age": "1"]
        let (larder, origin) = try Self.stalled(gate, fields)
        let wanted = request.map { ["Cache-Control": $0] as FieldLines } ?? [:]
        let waiting = Background { try larder.get("/x", wanted) }
        #expect(origin.waitForRequests(2))
        // Patience is over long before a second client has been served something else.
        #expect(try larder.admin("GET", "/count").status == 200)
        gate.open()
        #expect(try waiting.value().text == "2")
    }

    @Test func `a response that a write has made outdated is waited for beyond the patience`() throws {
        let gate = Gate()
        let user = #"{"id":1,"login":"ada","name":"x"}"#
        let origin = try Origin { request in
            request.method == "GET" ? .json(request.path == "/users" ? "[\(user)]" : user, Fresh.never) : .empty(204)
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: ["patience: 0s"]))
        _ = try larder.get("/users")
        _ = try larder.get("/users/1")
        #expect(try larder.waitForObjects(1, of: "User"))
        #expect(try larder.request("PATCH", "/users/1", body: "{}").status == 204)
        let newer = user.replacing("x", with: "y")
        origin.behave { OriginResponse.json($0.path == "/users" ? "[\(newer)]" : newer, Fresh.hour).after(gate) }
        origin.forget()
        let list = Background { try larder.get("/users") }
        let detail = Background { try larder.get("/users/1") }
        #expect(origin.waitForRequests(2))
        #expect(try larder.admin("GET", "/count").status == 200)
        gate.open()
        #expect(try list.value().text == "[\(newer)]")
        #expect(try detail.value().text == newer)
    }

    @Test func `after a write during a fetch, clients wait for the new response instead of a stale one`() throws {
        let gate = Gate()
        let (larder, origin) = try Self.stalled(gate, upstream: ["patience: 5s"])
        let reading = Background { try larder.get("/x") }
        #expect(origin.waitForRequests(2))
        origin.behave { request in
            request.method == "GET" ? OriginResponse.json("3", Fresh.hour).after(gate) : .empty(204)
        }
        #expect(try larder.request("PUT", "/x", body: "3").status == 204)
        // It waits beyond its patience, because nothing is stored any more.
        let late = Background { try larder.get("/x") }
        #expect(origin.waitForRequests(4))
        pause(.milliseconds(5_200))
        gate.open()
        #expect(try reading.value().text == "2")
        #expect(try late.value().text == "3")
    }

    @Test func `a client that may get a stale response does not join a fetch that has stopped halfway`() throws {
        let gate = Gate()
        let (larder, origin) = try Self.stalled(gate)
        defer { origin.stop() }
        origin.behave { _ in
            let start = Array("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n2".utf8)
            return OriginResponse(steps: [.send(start), .wait(gate), .send(Array("22".utf8))])
        }
        let first = Background { try larder.get("/x", ["Cache-Control": "max-age=0"]) }
        #expect(origin.waitForRequests(2))
        pause(.seconds(3))
        #expect(try larder.get("/x").cacheStatus.contains("detail=patience"))
        #expect(origin.waitForRequests(3))
        gate.open()
        #expect(try first.value().text == "222")
    }

    @Test func `a route has its own patience and its own timeouts`() throws {
        let gate = Gate()
        let routes = [
            "timeouts: { first_byte: 1h }", "patience: forever",
            #"routes: [{ path: x, patience: 0s }, { path: report, method: GET, timeouts: { first_byte: 100ms } }]"#,
        ]
        let (larder, origin) = try Self.stalled(gate, upstream: routes)
        defer { origin.stop() }
        #expect(try larder.get("/x").text == "1")
        let late = try larder.get("/report")
        #expect(late.status == 504 && late.text.contains("first_byte_timeout"), "\(late.status) \(late.text)")
        gate.open()
    }

    @Test func `an upstream has timeouts of its own`() throws {
        let gate = Gate()
        let origin = try Origin { _ in .hang(gate) }
        let upstream = ["timeouts: { first_byte: 100ms }"]
        let larder = try Larder(
            config: Configs.plain(origin, upstream: upstream, top: ["timeouts: { first_byte: 1h }"])
        )
        let late = try larder.get("/x")
        #expect(late.status == 504 && late.text.contains("first_byte_timeout"))
        gate.open()
    }
}
