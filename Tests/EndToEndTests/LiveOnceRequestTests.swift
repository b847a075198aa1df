import Foundation
import TestSupport
import Testing

/// `Larder-Live: once`: what a request and its route may say besides, and those who ask at the same time.
@Suite(.scripts) struct LiveOnceRequestTests: LiveFixtures {
    @Test func `two principals get their own events`() throws {
        let origin = try PrincipalTests.personal()
        let larder = try Larder(origin)
        let one = try larder.live("/x", ["Authorization": "Bearer aaa"])
        let other = try larder.live("/x", ["Authorization": "Bearer bbb"])
        #expect(other.map(\.name) == ["fresh"])
        #expect(one[0].body != other[0].body)
        let again = try larder.live("/x", ["Authorization": "Bearer aaa"])
        #expect(again.map(\.name) == ["cached", "unchanged"])
        #expect(again[0].body == one[0].body)
    }

    @Test func `fifty streams and a plain request share one fetch`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.json(Self.old, Fresh.hour).after(gate) }
        let larder = try Larder.patient(origin)
        let streams = Background { try together(50) { _ in try larder.live("/x") } }
        let plain = Background { try larder.get("/x") }
        #expect(origin.waitForRequests(1))
        #expect(try larder.waitForFollowers(1))
        #expect(try eventually { try larder.total("larder_live_streams") == 50 })
        gate.open()
        for events in try streams.value() {
            #expect(events.map(\.name) == ["fresh"])
            #expect(events.first?.text == Self.old)
        }
        #expect(try plain.value().text == Self.old)
        #expect(origin.count() == 1)
    }

    @Test func `a client that leaves does not affect those who stay`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.json(Self.old, Fresh.hour).split(at: 60, by: gate) }
        let larder = try Larder.patient(origin)
        var leaving: Client? = try larder.client()
        try leaving?.send("GET /x HTTP/1.1\r\nHost: 127.0.0.1:\(larder.port)\r\nLarder-Live: once\r\n\r\n")
        #expect(origin.waitForRequests(1))
        let staying = Background { try larder.live("/x") }
        #expect(try eventually { try larder.total("larder_live_streams") == 2 })
        leaving?.socket.shutDown()
        leaving = nil
        gate.open()
        #expect(try staying.value().first?.text == Self.old)
        #expect(origin.count() == 1)
        #expect(try larder.get("/x").isHit)
    }

    @Test func `offline a once stream fetches nothing, and says so`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.admin("PUT", "/mode", body: #"{"mode":"offline"}"#).status == 200)
        let events = try larder.live("/x")
        #expect(events.map(\.name) == ["cached", "error"])
        #expect(events[1].problemType == "urn:larder:offline")
        #expect(events[1].age != nil)
        let unknown = try larder.live("/y")
        #expect(unknown.map(\.problemType) == ["urn:larder:offline"])
        #expect(origin.count() == 1)
    }

    @Test func `a once stream with only-if-cached fetches nothing`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.never) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.live("/x", ["Cache-Control": "only-if-cached"]).map(\.name) == ["cached"])
        let unknown = try larder.live("/y", ["Cache-Control": "only-if-cached"])
        #expect(unknown.map(\.problemType) == ["urn:larder:only-if-cached"])
        #expect(origin.count() == 1)
    }

    @Test func `a once stream shows no stored response of a route with cache never`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(
            config: Configs.plain(origin, top: ["routes: [ { path: \"**\", cache: never } ]"])
        )
        _ = try larder.get("/x")
        #expect(try larder.live("/x").map(\.name) == ["fresh"])
    }

    @Test func `a stream ignores conditions and ranges, and sends a plain request upstream`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.tagged("a")) }
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Accept": "*/*"])
        let events = try larder.live(
            "/x",
            ["If-None-Match": "\"a\"", "If-Match": "\"z\"", "Range": "bytes=0-1", "Accept": "text/event-stream"]
        )
        #expect(events.map(\.name) == ["cached", "unchanged"])
        #expect(events[0].text == Self.old)
        let asked = try #require(origin.requests.last)
        #expect(asked["If-None-Match"] == "\"a\"")
        for name in ["Range", "If-Match", "Larder-Live"] { #expect(asked[name] == nil, "\(name)") }
        #expect(asked["Accept"] == "*/*")
    }

    @Test(
        arguments: [
            ("GET", "always", 400, "bad-live"), ("GET", "", 400, "bad-live"), ("GET", "once, once", 400, "bad-live"),
            ("HEAD", "once", 400, "live-needs-get"), ("POST", "once", 400, "live-needs-get"),
            ("DELETE", "once", 400, "live-needs-get"), ("POST", "on", 400, "live-needs-get"),
            ("HEAD", "on", 400, "live-needs-get"), ("GET", "on, once", 400, "bad-live"),
        ]
    )
    func `an invalid live request is refused with the reason`(
        method: String,
        value: String,
        status: Int,
        kind: String
    )
        throws
    {
        let origin = try Origin { _ in .json("{}") }
        let larder = try Larder(origin)
        let answer = try larder.request(method, "/x", ["Larder-Live": value], body: method == "POST" ? "{}" : nil)
        #expect(answer.status == status)
        #expect(answer.isProblem)
        if method != "HEAD" {
            #expect(answer.object["type"] as? String == "urn:larder:\(kind)")
            #expect(answer.object["detail"] is String)
        }
        #expect(origin.count() == 0)
    }

    @Test func `a page of an allowed origin may read the stream`() throws {
        let origin = try Origin { _ in .json("{}", ["Access-Control-Allow-Origin": "https://elsewhere.example"]) }
        let larder = try Larder(config: Configs.plain(origin, upstream: ["cors: [\"http://localhost:3000\"]"]))
        let answer = try larder.get("/x", ["Larder-Live": "once", "Origin": "http://localhost:3000"])
        #expect(answer["Access-Control-Allow-Origin"] == "http://localhost:3000")
        #expect(try answer.events.first?.headers["access-control-allow-origin"] == nil)
        let other = try larder.get("/x", ["Larder-Live": "once", "Origin": "http://localhost:3001"])
        #expect(other.status == 403)
    }
}
