import Foundation
import TestSupport
import Testing

/// Interim answers (RFC 9110 §15.2) on their way through.
@Suite(.scripts) struct InterimTests {
    private static func hint(_ link: String, _ fields: FieldLines = [:]) -> OriginResponse.Step {
        .send(OriginResponse.head(103, "Early Hints", ["Link": "<\(link)>; rel=preload"] + fields))
    }

    private static func finally(_ answer: OriginResponse, after interim: [OriginResponse.Step]) -> OriginResponse {
        OriginResponse(steps: interim + answer.steps)
    }

    @Test func `interim responses are passed on with their fields, and leave nothing in the final one or the store`()
        throws
    {
        let gate = Gate()
        let origin = try Origin { _ in
            Self.finally(
                .json("1", Fresh.hour),
                after: [
                    .send(OriginResponse.head(102, "Processing", ["X-Progress": "1"])), Self.hint("/a"),
                    Self.hint("/b", ["Connection": "X-Own", "X-Own": "1", "X-Extra": "2"]),
                    .send(OriginResponse.head(199, "Whatever", [:])), .wait(gate),
                ]
            )
        }
        let larder = try Larder(origin)
        let client = try larder.client()
        try client.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        let interim = try (0..<4).map { _ in try client.head() }
        #expect(interim.map(\.status) == [102, 103, 103, 199])
        #expect(interim[0].fields["X-Progress"] == "1")
        #expect(interim[1].fields["Link"] == "</a>; rel=preload")
        #expect(interim[2].fields["Link"] == "</b>; rel=preload")
        #expect(interim[2].fields["X-Extra"] == "2")
        #expect(interim[2].fields["X-Own"] == nil)
        gate.open()
        let final = try client.response()
        for answer in [final, try client.get("/x")] {
            #expect(answer.status == 200)
            #expect(answer.text == "1")
            #expect(answer.interim == [])
            for name in ["Link", "X-Progress", "X-Extra"] { #expect(answer[name] == nil) }
        }
        #expect(origin.count() == 1)
    }

    @Test(arguments: ["GET", "POST", "PUT", "OPTIONS"]) func `interim responses are passed on for every method`(
        method: String
    ) throws {
        let origin = try Origin { _ in
            Self.finally(.empty(204), after: [Self.hint("/a")])
        }
        let larder = try Larder(origin)
        let answer = try larder.request(method, "/x", body: method == "POST" || method == "PUT" ? "{}" : nil)
        #expect(answer.status == 204)
        #expect(answer.interim == [103])
    }

    @Test func `an HTTP/1.0 client gets no interim responses`() throws {
        let origin = try Origin { _ in Self.finally(.json("1"), after: [Self.hint("/a")]) }
        let larder = try Larder(origin)
        let client = try larder.client()
        try client.send("GET /x HTTP/1.0\r\n\r\n")
        let answer = try client.response()
        #expect(answer.status == 200)
        #expect(answer.interim == [])
    }

    @Test func `clients that join a fetch get its later interim responses`() throws {
        let (first, second) = (Gate(), Gate())
        let origin = try Origin { _ in
            Self.finally(
                .json("1", Fresh.hour),
                after: [Self.hint("/a"), .wait(first), Self.hint("/b", ["Set-Cookie": "s=1"]), .wait(second)]
            )
        }
        let larder = try Larder.patient(origin)
        let leader = try larder.client()
        try leader.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try leader.head().fields["Link"] == "</a>; rel=preload")
        let follower = try larder.client()
        try follower.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try larder.waitForFollowers(1))
        first.open()
        let (one, other) = (try leader.head().fields, try follower.head().fields)
        #expect(one["Link"] == "</b>; rel=preload")
        #expect(other["Link"] == "</b>; rel=preload")
        #expect(one["Set-Cookie"] == "s=1")
        #expect(other["Set-Cookie"] == nil)
        second.open()
        for client in [leader, follower] { #expect(try client.response().text == "1") }
        #expect(origin.count() == 1)
    }

    @Test func `a 100 is not passed on, and a 101 that was not requested gives 502`() throws {
        let origin = try Origin { request in
            let status = request.path == "/continue" ? 100 : 101
            return Self.finally(.json("1"), after: [.send(OriginResponse.head(status, "x", [:]))])
        }
        let larder = try Larder(origin)
        let answer = try larder.get("/continue")
        #expect(answer.status == 200)
        #expect(answer.interim == [])
        #expect(try larder.get("/switch").status == 502)
    }
}
