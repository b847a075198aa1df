import TestSupport
import Testing

/// Streams of events that an upstream sends itself.
@Suite(.scripts) struct EventStreamTests {
    /// Two events with a gate between them, in chunks of their own.
    private static func events(_ gate: Gate, _ fields: FieldLines = [:]) -> OriginResponse {
        let head = OriginResponse.head(
            200,
            "Fine",
            ["Content-Type": "text/event-stream; charset=utf-8", "Transfer-Encoding": "chunked"] + fields
        )
        return OriginResponse(steps: [
            .send(head + OriginResponse.framed(Array("data: one\r\n\r\n".utf8))), .wait(gate),
            .send(OriginResponse.framed(Array(": two\n\n".utf8)) + Array("0\r\n\r\n".utf8)),
        ])
    }

    @Test func `events of an upstream's stream arrive when sent, and are not stored`() throws {
        let (first, second) = (Gate(), Gate())
        let origin = try Origin { Self.events($0.number == 0 ? first : second, Fresh.hour) }
        let larder = try Larder(config: Configs.plain(origin, top: ["timeouts: { stall: 100ms }"]))
        let clients = try [first, second].map { gate in (gate, try larder.client()) }
        for (_, client) in clients {
            try client.send("GET /x HTTP/1.1\r\nHost: 127.0.0.1:\(larder.port)\r\n\r\n")
            let head = try client.head()
            #expect(head.fields["Content-Type"] == "text/event-stream; charset=utf-8")
            #expect(try client.chunk() == Array("data: one\r\n\r\n".utf8))
        }
        // Longer than any other body may take for its next piece.
        pause(.milliseconds(400))
        for (gate, client) in clients {
            gate.open()
            #expect(try client.chunk() == Array(": two\n\n".utf8))
            #expect(try client.chunk() == nil)
        }
        #expect(origin.count() == 2)
        #expect(try larder.documents() == 0)
    }

    @Test func `a live request for an upstream's own event stream gets an error event`() throws {
        let gate = Gate()
        let origin = try Origin { _ in Self.events(gate) }
        let larder = try Larder(origin)
        let told = try larder.live("/x")
        #expect(told.map(\.name) == ["error"])
        #expect(told.first?.problemType == "urn:larder:live-event-stream")
        gate.open()
    }
}
