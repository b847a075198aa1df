import Foundation
import TestSupport
import Testing

/// `Larder-Live: once`: what is stored, then what the upstream says.
@Suite(.scripts) struct LiveOnceTests: LiveFixtures {
    @Test func `without a stored response there is one event, then the end`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.tagged("a")) }
        let larder = try Larder(origin)
        let answer = try larder.get("/x", ["Larder-Live": "once"])
        #expect(answer.status == 200)
        #expect(answer["Content-Type"] == "text/event-stream")
        #expect(answer["Cache-Control"] == "no-store")
        #expect(answer.cacheStatus == "larder;fwd=uri-miss")
        let events = try answer.events
        #expect(events.map(\.name) == ["fresh"])
        #expect(events[0].status == 200)
        #expect(events[0].age == 0)
        #expect(events[0].text == Self.old)
        #expect(events[0].headers["etag"] == #""a""#)
        #expect(events[0].headers["content-type"] == "application/json")
        #expect(events[0].headers["cache-status"]?.hasPrefix("larder; fwd=uri-miss; ttl=") == true)
        #expect(events[0].headers["cache-status"]?.hasSuffix("; stored") == true)
        // It is stored like any other response.
        #expect(try larder.get("/x").isHit)
        #expect(origin.count() == 1)
    }

    @Test func `a stored response is shown at once, before the upstream has responded`() throws {
        let (origin, gate) = (try Origin { _ in .json(Self.old, Fresh.hour) }, Gate())
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        origin.behave { _ in OriginResponse.json(Self.new, Fresh.hour).after(gate) }
        let client = try larder.client()
        try client.send("GET /x HTTP/1.1\r\nHost: 127.0.0.1:\(larder.port)\r\nLarder-Live: once\r\n\r\n")
        #expect(try client.head().status == 200)
        func event() throws -> [LiveEvent] {
            var bytes: [UInt8] = []
            while bytes.suffix(2) != [10, 10], let chunk = try client.chunk() { bytes += chunk }
            return try ServerSentEvent.parse(bytes).map { try LiveEvent($0) }
        }
        let first = try event()
        #expect(first.map(\.name) == ["cached"])
        #expect(first.first?.text == Self.old)
        // Fresh as it is, the upstream is asked.
        #expect(origin.waitForRequests(2))
        gate.open()
        let second = try event()
        #expect(second.map(\.name) == ["fresh"])
        #expect(second.first?.text == Self.new)
        #expect(try client.chunk() == nil)
        #expect(try larder.get("/x").text == Self.new)
    }

    @Test(arguments: [true, false]) func `an equal response gives an event named unchanged`(by304: Bool) throws {
        let origin = try Origin { request in
            if by304, request["If-None-Match"] == #""a""# { return .notModified(["ETag": #""a""#, "X-Left": "9"]) }
            return .json(
                Self.old,
                ["Cache-Control": "max-age=60", "Age": "100", "X-Left": "9"] + (by304 ? ["ETag": #""a""#] : [:])
            )
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let events = try larder.live("/x")
        #expect(events.map(\.name) == ["cached", "unchanged"])
        #expect(events[0].text == Self.old)
        #expect((100..<160).contains(events[0].age ?? 0))
        #expect(events[0].headers["cache-status"]?.contains("detail=stale") == true)
        #expect(events[1].status == 200)
        #expect(events[1].body == nil)
        #expect(events[1].headers["x-left"] == "9")
        #expect(events[1].age.map { by304 ? $0 < 60 : $0 >= 100 } == true)
        #expect(origin.count() == 2)
    }

    @Test func `a changed status gives an event, also without a body`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        origin.always(.json(#"{"message":"gone"}"#, status: 404))
        let gone = try larder.live("/x")
        #expect(gone.map(\.name) == ["cached", "fresh"])
        #expect(gone.map(\.status) == [200, 404])
        #expect(gone[1].text == #"{"message":"gone"}"#)
        origin.always(.empty(204))
        let empty = try larder.live("/x")
        #expect(empty.map(\.status) == [404, 204])
        #expect(empty[1].body == [])
        #expect(try larder.live("/y").map(\.status) == [204])
    }

    @Test func `while the upstream is away the error event has the shown response's age`() throws {
        let origin = try Origin { _ in .json(Self.old, ["Cache-Control": "max-age=600", "Age": "30"]) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        origin.stop()
        let events = try larder.live("/x")
        #expect(events.map(\.name) == ["cached", "error"])
        #expect(events[1].problemType == "urn:larder:upstream-failed")
        #expect(events[1].problemStatus == 502)
        #expect((30..<90).contains(events[1].age ?? 0))
        let unknown = try larder.live("/y")
        #expect(unknown.map(\.name) == ["error"])
        #expect(unknown[0].problemStatus == 502)
        #expect(unknown[0].age == nil)
    }

    @Test(arguments: [500, 503, 429]) func `an upstream's error status gives an error event`(status: Int) throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        origin.always(.json(#"{"message":"no"}"#, status: status))
        let events = try larder.live("/x")
        #expect(events.map(\.name) == ["cached", "error"])
        #expect(events[1].problemType == "urn:larder:upstream-error")
        #expect(events[1].problemStatus == status)
        #expect(events[1].age != nil)
        // Where nothing is known, what the upstream said is all there is.
        let unknown = try larder.live("/y")
        #expect(unknown.map(\.name) == ["error"])
        #expect(unknown[0].problemStatus == status)
        #expect(unknown[0].status == status)
        #expect(unknown[0].text == #"{"message":"no"}"#)
        #expect(try larder.get("/x").text == Self.old)
    }

    @Test func `a response that breaks off gives an error event`() throws {
        let origin = try Origin { _ in .raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"id\":") }
        let larder = try Larder(origin)
        let events = try larder.live("/x")
        #expect(events.map(\.name) == ["error"])
        #expect(events[0].problemStatus == 502)
        #expect(events[0].body == nil)
    }

    @Test(
        arguments: [
            [], Array("\r".utf8), Array("a\nb\r\nc\rd\n\n".utf8), [0],
            Array("\u{FEFF}{ \"a\" : 1.0,\r\n\"a\":\"\\u00e9\\/\" }\n".utf8),
            Array("event: error\ndata: {}\n\n".utf8), Array(0...255),
        ] as [[UInt8]]
    )
    func `events contain bodies byte for byte`(body: [UInt8]) throws {
        let origin = try Origin { _ in .body(body, Fresh.hour) }
        let larder = try Larder(origin)
        #expect(try larder.live("/x").map(\.body) == [body])
        let events = try larder.live("/x")
        #expect(events.map(\.body) == [body, nil])
        #expect(events[0].isBinary == (body.first == 0xEF || body.last == 0xFF))
    }

    @Test func `a slow reader gets a large body whole, and a body beyond the limit gives an error`() throws {
        let body = Array(#"["\#(String(repeating: "ü\"\\\u{1}é", count: 400_000))"]"#.utf8)
        let origin = try Origin {
            $0.path == "/huge" ? .body([UInt8](repeating: 65, count: 6 << 20)) : .body(body, Fresh.hour)
        }
        let larder = try Larder(config: Configs.plain(origin, top: ["limits: { document: 5MB, relay_window: 64KiB }"]))
        _ = try larder.get("/x")
        let client = try larder.client()
        try client.send("GET /x HTTP/1.1\r\nHost: 127.0.0.1:\(larder.port)\r\nLarder-Live: once\r\n\r\n")
        #expect(origin.waitForRequests(2))
        pause(.milliseconds(100))
        let events = try client.response().events
        #expect(events.map(\.name) == ["cached", "unchanged"])
        #expect(events[0].body == body)
        let huge = try larder.live("/huge")
        #expect(huge.map(\.problemType) == ["urn:larder:live-too-large"])
    }

    @Test func `the bodies held for streams have a bound, and streams beyond it get an error`() throws {
        let gate = Gate()
        let text = String(repeating: "x", count: 900_000)
        let origin = try Origin { _ in
            OriginResponse(steps: [
                .send(OriginResponse.head(200, "Fine", Fresh.hour + ["Content-Length": "900001"])),
                .send(Array(text.utf8)),
                .wait(gate), .send(Array("y".utf8)),
            ])
        }
        // On a busy machine it takes a while until all streams have begun.
        let larder = try Larder(
            config: Configs.plain(origin, top: ["limits: { document: 1MB }", "timeouts: { stall: 1h }"])
        )
        let ended = Monitor(0)
        let streams = Background {
            try together(40) { number in
                let events = try larder.live("/\(number)")
                ended.withLock { $0 += 1 }
                return events.map(\.name)
            }
        }
        // Eight documents' worth is held; the others are told that it is too much.
        #expect(ended.wait { $0 >= 30 })
        gate.open()
        let events = try streams.value()
        #expect(events.allSatisfy { $0 == ["error"] || $0 == ["fresh"] })
        #expect(events.contains(["fresh"]))
        #expect(try larder.get("/0").text == text + "y")
    }

    @Test func `changes are shown composed, or as received in the raw view`() throws {
        let list = #"[ {"id":1,"login":"ada","name":"old"} ]"#
        let origin = try Origin { request in
            request.path == "/users"
                ? .json(list, Fresh.hour) : .json(#"{"id":1,"login":"ada","name":"new"}"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        #expect(try larder.waitForObjects(1, of: "User"))
        _ = try larder.get("/users/1")
        let composed = list.replacingOccurrences(of: "old", with: "new")
        #expect(try eventually { try larder.get("/users").text == composed })
        let only: FieldLines = ["Cache-Control": "only-if-cached"]
        let shown = try larder.live("/users", only)
        #expect(shown[0].text == composed)
        #expect(shown[0].headers["etag"]?.hasPrefix("\"larder-") == true)
        let raw = try larder.live("/users", only + ["Larder-View": "raw"])
        #expect(raw[0].text == list)
        // The upstream's word is another than what was composed.
        #expect(try larder.live("/users").map(\.text) == [composed, list])
    }
}
