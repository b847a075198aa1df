import TestSupport
import Testing

/// Writes whose pooled connection dies under them: an upstream is sent each write once.
@Suite(.scripts) struct RepeatedWriteTests {
    /// An origin that carries out every write and then ends the connection without a response, and serves retrievals.
    static func origin(resets: Bool) throws -> Origin {
        try Origin { request in
            guard request.method == "GET" else { return OriginResponse(steps: [resets ? .reset : .close]) }
            return .json("1", Fresh.hour)
        }
    }

    @Test(arguments: ["DELETE", "POST", "PUT", "PATCH", "LARDER"], [false, true])
    func `a write that the upstream carried out before it dropped the connection is not sent again`(
        method: String,
        resets: Bool
    ) throws {
        let bodies: [(fields: FieldLines, body: String?)] = [
            ([:], nil), ([:], #"{"a":1}"#), (["Expect": "100-continue"], #"{"a":1}"#),
            ([:], String(repeating: "x", count: 200_000)),
        ]
        let origin = try Self.origin(resets: resets)
        let larder = try Larder(origin)
        for (number, (fields, body)) in bodies.enumerated() {
            let path = "/things/\(number)"
            // Leaves a connection in the pool, and something to believe.
            #expect(try larder.get(path).text == "1")
            #expect(try larder.get(path).isHit)
            let response = try larder.request(method, path, fields, body: body)
            #expect(response.status == 502)
            #expect(response.isProblem)
            #expect(origin.count(path, method: method) == 1)
            // It counts as one that happened (law 10).
            #expect(try !larder.get(path).isHit)
        }
        #expect(origin.requests.count { $0.method == method } == bodies.count)
    }

    @Test func `a retrieval whose pooled connection dies is sent again`() throws {
        let origin = try Origin { request in
            request.path == "/dies" && request.connection == 0 ? .reset : .json("1", Fresh.never)
        }
        let larder = try Larder(origin)
        #expect(try larder.get("/x").text == "1")
        #expect(try larder.get("/dies").text == "1")
        #expect(origin.count("/dies") == 2)
    }
}
