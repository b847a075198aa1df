import Foundation
import TestSupport
import Testing

/// Localhost is not a wall: what a web page, or another program, can make a browser send.
@Suite(.scripts) struct GuardTests {
    static func origin() throws -> Origin { try Origin { _ in .json(#"{"secret":1}"#, Fresh.hour) } }

    @Test(arguments: [
        "evil.example", "evil.example:8787", "169.254.169.254", "localhost.evil.example", "0x7f000001.evil",
    ])
    func `a name that was bound anew to this machine is misdirected`(host: String) throws {
        let origin = try Self.origin()
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        for answer in [
            try larder.get("/x", ["Host": host]), try larder.request("POST", "/x", ["Host": host], body: "a=1"),
            try larder.get("http://\(host)/x"), try larder.admin("GET", "/count", ["Host": host]),
            try larder.admin("GET", "/healthz", ["Host": host]),
        ] {
            #expect(answer.status == 421)
            #expect(!answer.text.contains("secret"))
        }
        #expect(origin.count() == 1)
    }

    @Test func `an authority in the target counts more than Host`() throws {
        let origin = try Self.origin()
        let larder = try Larder(origin)
        #expect(try larder.get("http://evil.example/x", ["Host": "localhost"]).status == 421)
        #expect(origin.count() == 0)
    }

    @Test func `this machine's own names are welcome`() throws {
        let larder = try Larder(Self.origin())
        for host in ["localhost", "127.0.0.1", "[::1]"] {
            #expect(try larder.get("/x", ["Host": "\(host):\(larder.port)"]).status == 200, "\(host)")
        }
    }

    @Test(
        arguments: [
            ["Origin": "https://evil.example"], ["Origin": "null"], ["Origin": "http://localhost:3000"],
            ["Origin": "http://127.0.0.1:9999"], ["Sec-Fetch-Site": "cross-site"], ["Sec-Fetch-Site": "same-site"],
            ["Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"],
            ["Origin": "https://evil.example", "Content-Type": "application/x-www-form-urlencoded"],
        ] as [FieldLines]
    )
    func `another site's page gets nothing and does nothing`(fields: FieldLines) throws {
        let origin = try Self.origin()
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"] {
            let answer = try larder.request(method, "/x", fields, body: method == "POST" ? "a=1" : nil)
            #expect(answer.status == 403, "\(method)")
            #expect(!answer.text.contains("secret"))
            #expect(answer["Access-Control-Allow-Origin"] == nil)
        }
        #expect(origin.count() == 1)
        #expect(try larder.admin("POST", "/clean", fields, body: #"{"all":true}"#).status == 403)
        #expect(try larder.waitForDocuments(1))
    }

    @Test func `a person's own visit is welcome`() throws {
        let larder = try Larder(Self.origin())
        #expect(try larder.get("/x", ["Sec-Fetch-Site": "none"]).status == 200)
        #expect(try larder.get("/x", ["Sec-Fetch-Site": "same-origin"]).status == 200)
    }

    @Test func `origins named in the config are let in`() throws {
        let origin = try Self.origin()
        let larder = try Larder(config: Configs.plain(origin, upstream: ["cors: [\"http://localhost:3000\"]"]))
        let named: FieldLines = ["Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"]
        for _ in 1...2 {
            let answer = try larder.get("/x", named)
            #expect(answer.status == 200)
            #expect(answer["Access-Control-Allow-Origin"] == "http://localhost:3000")
            #expect(answer["Vary"]?.lowercased().contains("origin") == true)
        }
        let preflight = try larder.request(
            "OPTIONS",
            "/x",
            named + ["Access-Control-Request-Method": "PATCH", "Access-Control-Request-Headers": "x-custom"]
        )
        #expect((200...204).contains(preflight.status))
        #expect(preflight["Access-Control-Allow-Origin"] == "http://localhost:3000")
        #expect(preflight["Access-Control-Allow-Methods"]?.contains("PATCH") == true)
        #expect(origin.count(method: "OPTIONS") == 0)
        #expect(try larder.get("/x", ["Origin": "http://localhost:3001"]).status == 403)
        #expect(try larder.get("/x", ["Origin": "null"]).status == 403)
    }

    @Test func `what tells an upstream stories about the client is taken off`() throws {
        let origin = try Self.origin()
        let larder = try Larder(origin)
        _ = try larder.get(
            "/x",
            [
                "X-Forwarded-For": "1.2.3.4", "X-Forwarded-Host": "evil.example", "Forwarded": "for=1.2.3.4",
                "X-HTTP-Method-Override": "DELETE", "X-Method-Override": "DELETE", "X-HTTP-Method": "DELETE",
                "X-Fine": "1",
            ]
        )
        let names = origin.requests[0].fields.lines.map { $0.name.lowercased() }
        #expect(names.contains("x-fine"))
        #expect(!names.contains { $0.contains("forwarded") || $0.contains("override") || $0 == "x-http-method" })
    }

    @Test(arguments: ["/../secret", "/%2e%2e/secret", "/a/../../secret", "/.%2E/secret", "/a/%2e%2e/%2e%2e/secret"])
    func `no path leads above the base path`(path: String) throws {
        let origin = try Self.origin()
        let larder = try Larder(upstream: origin.url + "/api/v1")
        #expect(try larder.get(path).status == 400)
        #expect(origin.count() == 0)
        #expect(try larder.get("/a/../b").status == 200)
        #expect(origin.requests[0].path == "/api/v1/b")
    }

    @Test func `larder's own guard stands before any look-up`() throws {
        let origin = try Self.origin()
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.get("/x").isHit)
        #expect(try larder.get("/x", ["Origin": "null"]).status == 403)
        #expect(try larder.get("/x").isHit)
    }
}
