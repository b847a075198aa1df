import Foundation
import TestSupport
import Testing

/// Clients that accept JSON alone, and responses that are not JSON.
@Suite(.scripts) struct AcceptTests {
    private static let json: FieldLines = ["Accept": "application/json"]

    /// Fresh responses that are not JSON.
    private static func response(to path: String) -> OriginResponse {
        switch path {
        case "/none": .text("x", Fresh.hour)
        case "/204": .empty(204, Fresh.hour)
        case "/301": .text("moved", Fresh.hour + ["Location": "/plain", "Content-Type": "text/html"], status: 301)
        case "/404": .text("gone", Fresh.hour + ["Content-Type": "text/html"], status: 404)
        case "/csv": .text("a,b", Fresh.hour + ["Content-Type": "text/csv"])
        case "/ndjson": .text("{}\n{}\n", Fresh.hour + ["Content-Type": "application/x-ndjson"])
        case "/text-json": .text("{}", Fresh.hour + ["Content-Type": "text/json"])
        case "/octets": .text("x", Fresh.hour + ["Content-Type": "application/octet-stream"])
        default: .text("x", Fresh.hour + ["Content-Type": "text/plain"])
        }
    }

    @Test(arguments: ["plain", "none", "204", "301", "404", "csv", "ndjson", "text-json", "octets"])
    func `a response that is not JSON is a hit for a JSON-only client, also from disk and offline`(_ name: String)
        throws
    {
        let origin = try Origin { Self.response(to: $0.path) }
        let larder = try Larder(origin)
        let first = try larder.get("/\(name)", Self.json)
        #expect(!first.isHit)
        let second = try larder.get("/\(name)", Self.json)
        #expect(second.isHit && second.status == first.status && second.body == first.body)
        #expect(try larder.waitForDocuments(1))
        try larder.restart()
        origin.stop()
        #expect(try larder.get("/\(name)", Self.json).isHit)
        #expect(origin.count() == 1)
    }

    @Test func `a client that accepts anything and one that accepts JSON only do not get each other's responses`()
        throws
    {
        let origin = try Origin { request in
            request["Accept"] == "application/json"
                ? .text("a list", Fresh.hour) : .text("<p>", Fresh.hour + ["Content-Type": "text/html"])
        }
        let larder = try Larder(origin)
        for _ in 1...2 {
            #expect(try larder.get("/x", Self.json).text == "a list")
            #expect(try larder.get("/x", ["Accept": "*/*"]).text == "<p>")
            #expect(try larder.get("/x").text == "<p>")
        }
        #expect(origin.count() == 2)
        #expect(try larder.waitForDocuments(2))
        try larder.restart()
        #expect(try larder.get("/x", Self.json).text == "a list")
        #expect(try larder.get("/x").text == "<p>")
        #expect(origin.count() == 2)
    }

    @Test func `a client that accepts JSON only shares a fetch of a response that is not JSON`() throws {
        let gate = Gate()
        let origin = try Origin { Self.response(to: $0.path).after(gate) }
        let larder = try Larder.patient(origin)
        let answers = Background { try together(12) { _ in try larder.get("/plain", Self.json).text } }
        #expect(try larder.waitForFollowers(11))
        gate.open()
        #expect(try answers.value().allSatisfy { $0 == "x" })
        #expect(origin.count() == 1)
    }
}
