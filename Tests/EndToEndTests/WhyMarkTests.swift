import Foundation
import TestSupport
import Testing

/// `larder why` of what is deleted, and of what was written to without anybody being told what became of it.
@Suite(.scripts) struct WhyMarkTests {
    private static let list = #"[{"id":1,"title":"a"},{"id":2,"title":"b"}]"#

    /// An origin with two items, whose writes have no body; `gate` holds back a PUT.
    private func daemon(_ gate: Gate? = nil) throws -> (bodies: Monitor<[String: String]>, larder: Larder) {
        let bodies = Monitor([
            "/items": Self.list, "/items/1": #"{"id":1,"title":"a"}"#, "/items/2": #"{"id":2,"title":"b"}"#,
        ])
        let origin = try DeletionTests.origin(bodies) { request in
            if request.method == "PUT", let gate { return .hang(gate) }
            return .empty(204)
        }
        let larder = try Larder(origin, config: DeletionTests.config(origin, "keep"))
        _ = try larder.get("/items")
        #expect(try larder.waitForObjects(2, of: "Item"))
        return (bodies, larder)
    }

    private func mark(_ larder: Larder, _ id: Int) throws -> [String: Any] {
        let response = try larder.admin("GET", "/objects/Item/\(id)/why")
        let object = try #require((response.object["objects"] as? [[String: Any]])?.first, "\(response.text)")
        return try #require(object["mark"] as? [String: Any], "\(response.text)")
    }

    private func by(_ mark: [String: Any]) -> [String?] {
        let request = mark["by"] as? [String: Any]
        return [request?["method"] as? String, request?["url"] as? String]
    }

    @Test func `larder why shows an object's deletion, its time and request`() throws {
        let (bodies, larder) = try daemon()
        #expect(try larder.request("DELETE", "/items/1").status == 204)
        let mark = try mark(larder, 1)
        #expect(mark["kind"] as? String == "deleted")
        #expect(by(mark) == ["DELETE", "/items/1"])
        #expect(mark["superseded"] as? Bool == false)
        #expect((mark["at"] as? String)?.hasPrefix("20") == true)
        let members = try larder.admin("GET", "/objects/Item/1/why?member=title").text
        #expect(members.contains(#""standing":"outdated""#) && members.contains(#""moves":false"#), "\(members)")
        // The responses that go on showing it are named; the object itself is no longer given.
        #expect(try larder.admin("GET", "/objects/Item/1/documents").text.contains("/items"))
        let gone = try larder.admin("GET", "/objects/Item/1")
        #expect(gone.status == 410 && gone.text.contains("larder why Item 1"))
        let text = try larder.command("why", "Item", "1")
        #expect(text.end == .exited(0), "\(text.errors)")
        #expect(text.output.contains("Deleted since 20") && text.output.contains("DELETE /items/1"), "\(text.output)")
        #expect(text.output.contains("older than the mark above"))

        // After a crash, too; and once it is back, only as what was.
        larder.kill()
        try larder.start()
        #expect(try by(self.mark(larder, 1)) == ["DELETE", "/items/1"])
        bodies.withLock { $0["/items/1"] = #"{"id":1,"title":"again"}"# }
        _ = try larder.get("/items/1", ["Cache-Control": "no-cache"])
        #expect(try eventually { try larder.admin("GET", "/objects/Item/1").status == 200 })
        let past = try self.mark(larder, 1)
        #expect(past["kind"] as? String == "unknown")
        #expect(past["superseded"] as? Bool == true)
        #expect(by(past) == ["DELETE", "/items/1"])
    }

    @Test(arguments: ["GET", "HEAD"]) func `larder why names the 404 that showed an object's deletion`(method: String)
        throws
    {
        let (bodies, larder) = try daemon()
        bodies.withLock { $0["/items/1"] = nil }
        #expect(try larder.request(method, "/items/1").status == 404)
        let mark = try mark(larder, 1)
        #expect(mark["kind"] as? String == "deleted")
        #expect(by(mark) == [method, "/items/1"])
        #expect((mark["reason"] as? String)?.contains("responded 404 or 410") == true)
    }

    @Test func `larder why shows a write without a body until the object is observed again`() throws {
        let (_, larder) = try daemon()
        #expect(try larder.request("PATCH", "/items/2", body: "{}").status == 204)
        let mark = try mark(larder, 2)
        #expect(mark["kind"] as? String == "unknown")
        #expect(by(mark) == ["PATCH", "/items/2"])
        #expect((mark["reason"] as? String)?.contains("no response showed its effect") == true)
        let row = try #require(
            (try larder.admin("GET", "/objects/Item/2").object["objects"] as? [[String: Any]])?.first
        )
        #expect((row["unknown"] as? String) == (mark["at"] as? String))
        #expect(try larder.command("objects", "Item", "2").output.contains("unknown since 20"))
        #expect(try larder.command("why", "Item", "2").output.contains("Unknown since 20"))
        _ = try larder.get("/items/2")
        #expect(try eventually { try self.mark(larder, 2)["superseded"] as? Bool == true })
        #expect(try larder.command("why", "Item", "2").output.contains("Was unknown at 20"))
        #expect(try !larder.admin("GET", "/objects/Item/2").text.contains(#""unknown""#))
    }

    @Test func `larder why shows a write that was under way when Larder ended`() throws {
        let gate = Gate()
        let (_, larder) = try daemon(gate)
        let client = try larder.client()
        try client.send("PUT /items/2 HTTP/1.1\r\nHost: 127.0.0.1:\(larder.port)\r\nContent-Length: 2\r\n\r\n{}")
        #expect(try eventually { try larder.sql("SELECT count(*) FROM _suspects") != ["0"] })
        larder.kill()
        gate.open()
        try larder.start()
        let mark = try mark(larder, 2)
        #expect(mark["kind"] as? String == "unknown")
        #expect(by(mark)[0] == nil)
        #expect((mark["reason"] as? String)?.contains("was under way when Larder ended") == true)
    }

    @Test func `commands refuse an empty or absurd argument without asking the daemon`() throws {
        let origin = try Origin { _ in .empty(204) }
        let larder = try Larder(origin)
        for arguments in [
            ["why", "Post", ""], ["why", "", "1"], ["why", "Post", "1", "--upstream", ""], ["objects", ""],
            ["objects", "Post", ""], ["changes", "--model", ""], ["documents", "--url", ""], ["clean", "--model", ""],
            ["explain", ""], ["why", "Post", "1", "--documents", "101"],
        ] {
            let process = try TestProcess(
                Larder.binary,
                arguments + ["--admin", "127.0.0.1:\(larder.adminPort)"],
                environment: Larder.environment
            )
            #expect(process.waitForEnd() == .exited(64), "\(arguments)")
            #expect(process.errors.contains("empty") || process.errors.contains("0 to 100"), "\(process.errors)")
        }
    }
}
