import TestSupport
import Testing

/// Clients that send or read slowly take nothing from the others.
@Suite(.scripts) struct SlowClientTests {
    private static let limits =
        "limits: { upstream_connections: 4, upstream_uploads: 4, relay_window: 16KiB, document: 1KiB }"

    /// Begins an upload of which only the first bytes are sent.
    private static func upload(_ larder: Larder, _ fields: FieldLines = [:]) throws -> Client {
        let client = try larder.client()
        let fields = fields + ["Content-Length": "1000000"]
        try client.send(Client.message("POST", "/upload", fields, host: "127.0.0.1:\(larder.port)"))
        try client.send("slow")
        return client
    }

    @Test func `slow uploads do not keep others from reading or writing, and end when others wait`() throws {
        let origin = try Origin { request in .json("1", request.method == "GET" ? Fresh.hour : [:]) }
        let larder = try Larder(origin, config: Configs.plain(origin, top: [Self.limits]))
        // One client gets four of the five places for uploads; its others wait.
        let slow = try (0..<4).map { _ in try Self.upload(larder) }
        #expect(try eventually { try larder.total("larder_upstream_in_flight") == 4 })
        let waiting = try (0..<5).map { _ in try Self.upload(larder) }
        #expect(try eventually { try larder.total("larder_upstream_in_flight") == 9 })
        #expect(try larder.get("/x").text == "1")
        #expect(try larder.request("DELETE", "/x").status == 200)
        #expect(try larder.request("POST", "/x", ["Authorization": "other"], body: "{}").status == 200)
        // The body of this one is still arriving when it is sent: it has the place that is left for another client.
        let other = try Self.upload(larder, ["Authorization": "other"])
        try other.send(String(repeating: "x", count: 999_996))
        #expect(try other.response(to: "POST").status == 200)
        // Those that wait have their turn when the slow ones have been ended.
        let ended = try slow.map { try $0.response(to: "POST") }
        #expect(ended.allSatisfy { $0.status == 408 && $0.isProblem && $0.text.contains("minimum_rate") })
        #expect(larder.log.components(of: "requests wait for their turn") == 1)
        withExtendedLifetime(waiting) {}
    }

    @Test func `slow readers of large responses are disconnected when others wait`() throws {
        let origin = try Origin { request in
            guard request.path == "/large" else { return .json("1", Fresh.hour) }
            let piece = [UInt8](repeating: 0x78, count: 1 << 16)
            return OriginResponse(steps: [
                .send(OriginResponse.head(200, "Fine", ["Content-Length": "\(1 << 30)"])),
                .flood(piece, times: 1 << 14),
            ])
        }
        let larder = try Larder(origin, config: Configs.plain(origin, top: [Self.limits]))
        let slow = try (0..<4).map { number -> Client in
            let client = try larder.client()
            try client.send(Client.message("GET", "/large?\(number)", host: "127.0.0.1:\(larder.port)"))
            #expect(try client.head().status == 200)
            return client
        }
        // Another client has the place that is left, whatever happens to those.
        #expect(try larder.get("/x", ["Authorization": "other"]).text == "1")
        // The same one has its turn when one of those that do not read has been ended.
        #expect(try larder.get("/x").text == "1")
        withExtendedLifetime(slow) {}
    }
}

extension String {
    /// How often a text occurs.
    fileprivate func components(of text: String) -> Int { ranges(of: text).count }
}
