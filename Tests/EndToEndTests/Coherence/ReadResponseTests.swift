import Foundation
import TestSupport
import Testing

/// Who has read a response to its end finds its objects, as they were in it, in all other responses.
@Suite(.scripts) struct ReadResponseTests {
    /// Users whose name is a number that the scenario raises.
    final class Counting: Sendable {
        let number = Monitor(0)
        let origin: Origin

        init(
            _ answer: @escaping @Sendable (_ body: String, _ number: Int) -> OriginResponse = { body, _ in
                .json(body, Fresh.hour)
            }
        ) throws {
            let number = number
            origin = try Origin { request in
                let user = Self.user(number.current)
                return answer(request.path == "/users" ? "[\(user)]" : user, number.current)
            }
        }

        func rise() { number.withLock { $0 += 1 } }
        var user: String { Self.user(number.current) }

        static func user(_ number: Int) -> String { #"{"id":1,"name":"\#(number)"}"# }
    }

    @Test func `a list shows the values of the response before it, a hundred times in succession`() throws {
        let blog = try Counting()
        let larder = try Larder(config: Configs.blog(blog.origin))
        let client = try larder.client()
        _ = try client.get("/users")
        for _ in 0..<100 {
            blog.rise()
            #expect(try client.get("/users/1", ["Cache-Control": "no-cache"]).text == blog.user)
            let list = try client.get("/users")
            #expect(list.text == "[\(blog.user)]")
            #expect(list.isHit)
        }
        #expect(blog.origin.count("/users") == 1)
    }

    @Test(arguments: ["length", "chunked", "mapped", "conditional"])
    func `the end of a response waits for its commit in every framing and view, and so does a 304`(how: String) throws {
        let isConditional = how == "conditional"
        let blog = try Counting { body, number in
            let fields: FieldLines = ["Content-Type": "application/json"] + Fresh.tagged("\(number)")
            return how == "chunked"
                ? .chunked([Array(body.utf8)], fields) : .body(Array(body.utf8), fields)
        }
        let larder = try Larder(config: Configs.blog(blog.origin))
        let client = try larder.client()
        _ = try client.get("/users")
        for _ in 0..<20 {
            blog.rise()
            var fields: FieldLines = ["Cache-Control": "max-age=0"]
            if how == "mapped" { fields.append("Larder-View", "mapped") }
            // The client has it already, from elsewhere.
            if isConditional { fields.append("If-None-Match", "\"\(blog.number.current)\"") }
            #expect(try client.get("/users/1", fields).status == (isConditional ? 304 : 200))
            #expect(try client.get("/users").text == "[\(blog.user)]")
        }
    }

    @Test func `clients that wait for a commit, and those that come a moment later, get the same response`() throws {
        let blog = try Counting()
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users")
        blog.rise()
        let (gate, number) = (Gate(), blog.number)
        blog.origin.behave { _ in OriginResponse.json(Counting.user(number.current), Fresh.hour).after(gate) }
        let opener = Background {
            _ = try eventually { try larder.total("larder_coalesced_requests_total") >= 9 }
            gate.open()
        }
        let lists = try together(20) { index in
            // Half of them come when the response may be there already.
            if index >= 10 { gate.wait() }
            let client = try larder.client()
            let detail = try client.get("/users/1").text
            return [detail, try client.get("/users").text]
        }
        try opener.value()
        #expect(lists.allSatisfy { $0 == [blog.user, "[\(blog.user)]"] })
        #expect(blog.origin.count("/users/1") == 1)
    }

    @Test func `only the end of a response waits for its commit`() throws {
        let blog = try Counting()
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users")
        blog.rise()
        let lock = try CommitLock(larder)
        let client = try larder.client()
        try client.send("GET /users/1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try client.head().status == 200)
        let bytes = Array(blog.user.utf8)
        #expect(try client.bytes(bytes.count - 1) == bytes.dropLast())
        lock.release()
        #expect(try client.bytes(1) == [bytes[bytes.count - 1]])
        #expect(try client.get("/users/1").text == blog.user)
    }

    @Test func `a store that cannot commit delays no response for long`() throws {
        let blog = try Counting()
        let larder = try Larder(config: Configs.blog(blog.origin, top: ["store: { withhold: 50ms }"]))
        _ = try larder.get("/users")
        blog.rise()
        let lock = try CommitLock(larder)
        defer { lock.release() }
        let first = try larder.get("/users/1")
        #expect(first.text == blog.user && first.status == 200)
        #expect(lock.isHeld)
        // Nobody gets it from the cache before its objects are stored: other documents do not show them yet.
        lock.release()
        #expect(try larder.get("/users/1").text == blog.user)
    }

    @Test func `a response that is not yet committed is no hit, so that no hit is older than it`() throws {
        let name = Monitor("v0")
        // So many that they are still being stored when the next request comes.
        let others = (2...3_000).map { #"{"id":\#($0),"login":"u\#($0)","name":"n"}"# }.joined(separator: ",")
        let origin = try Origin { request in
            let user = #"{"id":1,"login":"ada","name":"\#(name.current)"}"#
            return .json(request.path == "/users" ? "[\(user),\(others)]" : "[\(user)]", Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin, top: ["store: { withhold: 1ms }"]))
        _ = try larder.get("/users?page=2")
        #expect(try larder.waitForDocuments(1))
        name.withLock { $0 = "v1" }
        #expect(try larder.get("/users").text.contains("v1"))
        let (list, other) = (try larder.get("/users"), try larder.get("/users?page=2"))
        #expect(list.isHit && list.text.contains("v1"))
        #expect(other.isHit && other.text.contains("v1"), "\(other.text)")
    }

    @Test func `a large list ends before all of it is stored, and is a hit once it is`() throws {
        let users = (1...5_000).map { #"{"id":\#($0),"login":"user\#($0)","name":"Name \#($0)","company":null}"# }
        let list = "[\(users.joined(separator: ","))]"
        let origin = try Origin { _ in .json(list, Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin, top: ["store: { withhold: 1ms }"]))
        let client = try larder.client()
        #expect(try client.get("/users").text == list)
        let second = try client.get("/users")
        #expect(second.isHit && second.text == list)
        #expect(try larder.waitForObjects(5_000, of: "User"))
        #expect(try client.get("/users").text == list)
        #expect(origin.count() == 1)
    }

    @Test func `a daemon that stops sends the withheld ends of responses`() throws {
        let blog = try Counting()
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users")
        let lock = try CommitLock(larder)
        let client = try larder.client()
        try client.send("GET /users/1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try client.head().status == 200)
        larder.process.signal(SIGTERM)
        lock.release()
        #expect(try client.bytes(blog.user.utf8.count) == Array(blog.user.utf8))
        #expect(larder.process.waitForEnd() == .exited(0))
    }
}
