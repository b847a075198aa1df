import Foundation
import TestSupport
import Testing

/// Connections upstream (RFC 9112 §9.3.1), the fields that belong to them, and content codings.
@Suite(.scripts) struct ConnectionTests {
    @Test(arguments: ["GET", "PUT", "POST", "DELETE"])
    func `a pooled connection that the upstream has closed is replaced`(method: String) throws {
        let origin = try Origin { .json("\"\($0.method) \(String(decoding: $0.body, as: UTF8.self))\"") }
        let larder = try Larder(origin)
        for turn in 1...5 {
            _ = try larder.get("/warm")
            origin.closeConnections()
            let body = method == "PUT" || method == "POST" ? "turn \(turn)" : nil
            let answer = try larder.request(method, "/x", body: body)
            #expect(answer.status == 200)
            #expect(answer.text == "\"\(method) \(body ?? "")\"")
        }
        #expect(origin.count("/x") == 5)
    }

    @Test func `an upstream that was restarted is found again at once`() throws {
        let origin = try Origin { .json("\"\($0.method)\"") }
        let larder = try Larder(origin)
        for method in ["GET", "PUT", "DELETE"] {
            _ = try larder.get("/warm")
            origin.stop()
            try origin.restart()
            #expect(try larder.request(method, "/x", body: method == "PUT" ? "{}" : nil).status == 200)
        }
        #expect(origin.count("/x") == 3)
    }

    @Test(arguments: ["PUT", "POST", "DELETE", "PATCH"])
    func `an unsafe request that the upstream has read is not sent twice`(method: String) throws {
        let origin = try Origin { $0.path == "/x" ? OriginResponse(steps: [.close]) : .json("1") }
        let larder = try Larder(origin)
        for turn in 1...3 {
            _ = try larder.get("/warm")
            let body = method == "DELETE" ? nil : "{}"
            let answer = try larder.request(method, "/x", body: body)
            #expect(answer.status == 502)
            #expect(answer.isProblem)
            #expect(origin.count("/x") == turn)
        }
    }

    @Test func `connection fields are neither forwarded nor stored`() throws {
        let own: FieldLines = [
            "Connection": "close, X-One , x-TWO", "X-One": "1", "X-Two": "2", "Keep-Alive": "timeout=5",
            "Proxy-Connection": "keep-alive", "TE": "trailers", "Upgrade": "x", "Trailer": "X-T",
            "Proxy-Authenticate": "Basic", "X-Kept": "3",
        ]
        let dropped = [
            "X-One", "X-Two", "Keep-Alive", "Proxy-Connection", "TE", "Upgrade", "Trailer", "Proxy-Authenticate",
        ]
        let origin = try Origin { _ in .json("1", Fresh.hour + own) }
        let larder = try Larder(origin)
        let answers = [try larder.get("/x", own), try larder.get("/x")]
        #expect(answers[1].isHit)
        for name in dropped {
            #expect(origin.requests[0][name] == nil, "\(name)")
            for answer in answers { #expect(answer[name] == nil, "\(name)") }
        }
        #expect(origin.requests[0]["X-Kept"] == "3")
        for answer in answers { #expect(answer["X-Kept"] == "3") }
        #expect(try larder.waitForDocuments(1))
        #expect(!String(decoding: larder.storeBytes, as: UTF8.self).contains("X-One"))
    }

    @Test(arguments: ["foo", "x-foo", "gzip, foo", "FOO"])
    func `a body in an unknown coding is passed on and stored as it is`(coding: String) throws {
        let body = (0..<3_000).map { UInt8(truncatingIfNeeded: $0 &* 11) }
        let fields: FieldLines = ["Content-Encoding": coding, "Content-Type": "application/json"]
        let origin = try Origin { _ in .body(body, Fresh.hour + fields) }
        let larder = try Larder(config: Configs.blog(origin, upstream: ["rewrite_links: true"]))
        for turn in 1...2 {
            let answer = try larder.get("/users")
            #expect(answer.status == 200)
            #expect(answer.body == body)
            #expect(answer["Content-Encoding"] == coding)
            #expect(answer.isHit == (turn == 2))
        }
        #expect(try larder.waitForDocuments(1))
        larder.kill()
        try larder.start()
        let again = try larder.get("/users")
        #expect(again.isHit)
        #expect(again.body == body)
        #expect(again["Content-Encoding"] == coding)
    }

    @Test(arguments: ["", "identity", "Identity"])
    func `an empty Content-Encoding and identity count as no coding`(coding: String) throws {
        let origin = try Origin { _ in
            .json(CoherenceTests.list, Fresh.hour + ["Content-Encoding": coding])
        }
        let larder = try Larder(config: Configs.blog(origin))
        for _ in 1...2 { #expect(try larder.get("/users").text == CoherenceTests.list) }
        #expect(try larder.waitForObjects(2, of: "User"))
    }
}
