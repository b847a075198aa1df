import Foundation
import TestSupport
import Testing

/// You read your own writes, whatever happens on the way.
@Suite(.scripts) struct ReadYourWritesTests {
    /// An origin that keeps one user and takes writes to it.
    static func userOrigin() throws -> (origin: Origin, name: Monitor<String>) {
        let name = Monitor("old")
        let origin = try Origin { request in
            if request.method == "PATCH" {
                name.withLock { $0 = String(decoding: request.body, as: UTF8.self) }
                return .json(#"{"id":1,"name":"\#(name.current)"}"#)
            }
            let user = #"{"id":1,"name":"\#(name.current)"}"#
            return .json(request.path == "/users" ? "[\(user)]" : user, Fresh.hour)
        }
        return (origin, name)
    }

    @Test func `a response without a reason phrase has one of its own, whatever the method`() throws {
        let origin = try Origin { request in
            .raw("HTTP/1.1 \(request.method == "POST" ? 201 : 200) \r\nContent-Length: 2\r\n\r\nok")
        }
        let larder = try Larder(origin)
        #expect(try larder.get("/x").reason == "OK")
        let written = try larder.request("POST", "/x")
        #expect(written.status == 201 && written.reason == "Created")
    }

    @Test func `the first read after a write shows its effect`() throws {
        let (origin, _) = try Self.userOrigin()
        let larder = try Larder(origin)
        for round in 1...20 {
            #expect(try larder.get("/users/1").status == 200)
            #expect(try larder.request("PATCH", "/users/1", body: "new\(round)").status == 200)
            #expect(try larder.get("/users/1").text == #"{"id":1,"name":"new\#(round)"}"#)
        }
    }

    @Test func `an object in the response to a POST to a list is stored`() throws {
        let origin = try Origin { request in
            request.method == "POST" ? .json(#"{"id":2,"login":"b"}"#, status: 201) : .json("[]", Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        #expect(try larder.get("/users").text == "[]")
        let made = try larder.request("POST", "/users", ["Larder-View": "mapped"], body: "{}")
        #expect(made.status == 201 && made.text.hasPrefix("{"), "\(made.text)")
        #expect(try larder.sql("SELECT login FROM User_current") == ["b"])
        #expect(try larder.admin("GET", "/warnings").object["warnings"] as? [String] == [], "nothing is odd about it")
    }

    @Test func `after a write all workers serve the new value`() throws {
        let (origin, _) = try Self.userOrigin()
        let larder = try Larder(origin, "--workers", "4")
        for round in 1...5 {
            _ = try together(8) { _ in try larder.get("/users/1") }
            _ = try larder.request("PATCH", "/users/1", body: "new\(round)")
            let answers = try together(8) { _ in try larder.get("/users/1").text }
            #expect(answers.allSatisfy { $0 == #"{"id":1,"name":"new\#(round)"}"# })
        }
    }

    @Test func `lists show the values in a write's response`() throws {
        let (origin, _) = try Self.userOrigin()
        let larder = try Larder(config: Configs.blog(origin))
        #expect(try larder.get("/users").text == #"[{"id":1,"name":"old"}]"#)
        #expect(try larder.waitForObjects(1, of: "User"))
        _ = try larder.request("PATCH", "/users/1", body: "new")
        // Without waiting: the response was withheld until this holds.
        let list = try larder.get("/users")
        #expect(list.text == #"[{"id":1,"name":"new"}]"#)
    }

    @Test func `a list that is filtered by a member is fetched again once a write has changed that member`() throws {
        let company = Monitor("x")
        let origin = try Origin { request in
            if request.method == "PATCH" { company.withLock { $0 = "y" } }
            let user = #"{"id":1,"login":"ada","company":"\#(company.current)"}"#
            let isWanted = !request.target.contains("company=") || request.target.hasSuffix(company.current)
            return request.target.hasPrefix("/users?") ? .json(isWanted ? "[\(user)]" : "[]", Fresh.hour) : .json(user)
        }
        let larder = try Larder(config: Configs.blog(origin))
        #expect(try larder.get("/users?company=x").text.contains("ada"))
        #expect(try larder.get("/users?page=1").text.contains("ada"))
        #expect(try larder.waitForDocuments(2))
        #expect(try larder.request("PATCH", "/users/1", body: #"{"company":"y"}"#).status == 200)
        let filtered = try larder.get("/users?company=x")
        #expect(filtered.text == "[]" && filtered.cacheStatus.contains("detail=outdated"), "\(filtered.cacheStatus)")
        let other = try larder.get("/users?page=1")
        #expect(other.isHit && other.text.contains(#""company":"y""#))
    }

    @Test func `a fetch begun before a write is not joined later, and not stored`() throws {
        let gate = Gate()
        let (origin, name) = try Self.userOrigin()
        let larder = try Larder(config: Configs.blog(origin))
        origin.behave { request in
            if request.method == "PATCH" {
                name.withLock { $0 = "new" }
                return .json(#"{"id":1,"name":"new"}"#)
            }
            let user = #"{"id":1,"name":"\#(name.current)"}"#
            return request["X-Slow"] == nil
                ? .json(user, Fresh.hour) : OriginResponse.json(user, Fresh.hour).after(gate)
        }
        let slow = Background { try larder.get("/users/1", ["X-Slow": "1"]) }
        origin.waitForRequests(1, "/users/1")
        #expect(try larder.request("PATCH", "/users/1", body: "new").status == 200)
        // The slow one is still in flight; it must not be joined.
        #expect(try larder.get("/users/1").text == #"{"id":1,"name":"new"}"#)
        gate.open()
        #expect(try slow.value().text == #"{"id":1,"name":"old"}"#)
        #expect(try larder.waitForQuiet())
        #expect(try larder.get("/users/1").text == #"{"id":1,"name":"new"}"#)
    }

    @Test func `a write that was cut off by a crash counts as done`() throws {
        let gate = Gate()
        let (origin, name) = try Self.userOrigin()
        let larder = try Larder(config: Configs.blog(origin))
        #expect(try larder.get("/users/1").text.contains("old"))
        #expect(try larder.waitForDocuments(1))
        let slowly: Origin.Handler = { request in
            guard request.method == "PATCH" else { return .json(#"{"id":1,"name":"\#(name.current)"}"#, Fresh.hour) }
            name.withLock { $0 = "new" }
            return OriginResponse.json(#"{"id":1,"name":"new"}"#).after(gate)
        }
        origin.behave(slowly)
        let write = Background { try larder.request("PATCH", "/users/1", body: "new") }
        origin.waitForRequests(2)
        larder.kill()
        gate.open()
        #expect(throws: (any Error).self) { try write.value() }
        try larder.start()
        #expect(try larder.get("/users/1").text == #"{"id":1,"name":"new"}"#)
    }

    @Test(arguments: 1...5) func `a crash after a write's response loses none of its effects`(round: Int) throws {
        let (origin, _) = try Self.userOrigin()
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users/1")
        #expect(try larder.waitForDocuments(1))
        #expect(try larder.request("PATCH", "/users/1", body: "new").status == 200)
        larder.kill()
        try larder.start()
        #expect(try larder.get("/users/1").text == #"{"id":1,"name":"new"}"#)
    }

    @Test func `a write whose response is lost counts as done`() throws {
        let (origin, name) = try Self.userOrigin()
        let larder = try Larder(origin)
        _ = try larder.get("/users/1")
        origin.behave { request in
            guard request.method == "PATCH" else { return .json(#"{"id":1,"name":"\#(name.current)"}"#, Fresh.hour) }
            name.withLock { $0 = "new" }
            return .reset
        }
        let write = try larder.request("PATCH", "/users/1", body: "new")
        #expect(write.status == 502)
        #expect(write.isProblem)
        #expect(try larder.get("/users/1").text == #"{"id":1,"name":"new"}"#)
    }

    @Test(arguments: ["POST", "PATCH"]) func `a request that is not idempotent is sent once`(method: String) throws {
        let (origin, _) = try Self.userOrigin()
        let larder = try Larder(origin)
        // Leaves a connection in the pool, which the origin then answers a write on by resetting it.
        _ = try larder.get("/users/1")
        origin.always(.reset)
        #expect(try larder.request(method, "/users", body: "{}").status == 502)
        #expect(origin.count(method: method) == 1)
    }

    @Test func `a write on a connection that has died in the pool is sent once, or refused`() throws {
        let (origin, _) = try Self.userOrigin()
        let larder = try Larder(origin)
        for round in 1...10 {
            _ = try larder.get("/users/1", ["Cache-Control": "no-cache"])
            origin.closeConnections()
            let before = origin.count(method: "PATCH")
            let answer = try larder.request("PATCH", "/users/1", body: "n\(round)")
            #expect([200, 502].contains(answer.status))
            #expect(origin.count(method: "PATCH") - before <= 1)
            if answer.status == 200 { #expect(origin.count(method: "PATCH") - before == 1) }
        }
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "REPORT"])
    func `every method reaches the upstream with its body and comes back with its response`(method: String) throws {
        let origin = try Origin { .body($0.body, ["X-Method": $0.method, "Content-Type": "text/plain"]) }
        let larder = try Larder(origin)
        let answer = try larder.request(method, "/x?y=1", ["Content-Type": "text/plain"], body: "body of it")
        #expect(answer["X-Method"] == method)
        #expect(answer.text == "body of it")
        #expect(origin.requests[0].target == "/x?y=1")
        #expect(origin.requests[0]["Content-Type"] == "text/plain")
    }

    @Test func `a chunked body is passed on`() throws {
        let origin = try Origin { .body($0.body) }
        let larder = try Larder(origin)
        let client = try larder.client()
        let chunk = [UInt8](repeating: 0x61, count: 100_000)
        try client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in 1...20 { try client.send(OriginResponse.framed(chunk)) }
        try client.send("0\r\n\r\n")
        let answer = try client.response()
        #expect(answer.status == 200)
        #expect(answer.body.count == 2_000_000)
        #expect(try client.get("/again").status == 200)
    }

    @Test func `a client that sends Expect 100-continue gets 100`() throws {
        let origin = try Origin { .body($0.body) }
        let larder = try Larder(origin)
        let client = try larder.client()
        try client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        #expect(try client.interim() == 100)
        try client.send("body")
        #expect(try client.response().text == "body")
    }

    @Test func `after a refused write the stored response can still be served`() throws {
        let (origin, _) = try Self.userOrigin()
        let larder = try Larder(origin)
        _ = try larder.get("/users/1")
        origin.always(.json(#"{"message":"no"}"#, status: 422))
        #expect(try larder.request("PATCH", "/users/1", body: "x").status == 422)
        origin.stop()
        // Asked again or not, the response is there.
        #expect(try larder.get("/users/1").text == #"{"id":1,"name":"old"}"#)
    }

    @Test func `conditions on a write are left to the upstream`() throws {
        let origin = try Origin { request in
            request["If-Match"] == #""one""# ? .json("{}", status: 200) : .json("{}", status: 412)
        }
        let larder = try Larder(origin)
        #expect(try larder.request("PUT", "/x", ["If-Match": #""one""#], body: "{}").status == 200)
        #expect(try larder.request("PUT", "/x", ["If-Match": #""two""#], body: "{}").status == 412)
    }
}
