import Foundation
import TestSupport
import Testing

/// The last requests and the state of the upstreams, as the admin side shows them.
@Suite(.scripts) struct RequestsTests {
    private func requests(_ larder: Larder, _ query: String = "") throws -> [[String: Any]] {
        try larder.admin("GET", "/requests" + query).object["requests"] as? [[String: Any]] ?? []
    }

    private func upstream(_ larder: Larder) throws -> [String: Any] {
        let upstreams = try larder.admin("GET", "/upstreams").object["upstreams"] as? [[String: Any]]
        return try #require(upstreams?.first)
    }

    /// Waits for a state: the end of a transfer comes a moment after the last byte of its response.
    private func becomes(_ state: String, _ larder: Larder) throws -> Bool {
        try eventually { try upstream(larder)["state"] as? String == state }
    }

    @Test func `the last requests show what each client was given and how`() throws {
        let origin = try Origin([
            "/users/1": .json(#"{"id":1}"#, Fresh.hour), "/nobody": .json("{}", status: 404),
        ])
        let larder = try Larder(origin)
        #expect(try requests(larder).isEmpty)
        _ = try larder.get("/users/1")
        // A request is noted when its client has the response.
        #expect(try eventually { try requests(larder).count == 1 })
        _ = try larder.get("/users/1")
        _ = try larder.get("/users/1", ["If-None-Match": "*"])
        _ = try larder.request("POST", "/nobody", body: "{}")
        var seen: [[String: Any]] = []
        #expect(
            try eventually {
                seen = try requests(larder)
                return seen.count == 4
            }
        )
        #expect(seen.map { $0["id"] as? Int } == [1, 2, 3, 4])
        #expect(seen.map { $0["method"] as? String } == ["GET", "GET", "GET", "POST"])
        #expect(seen.map { $0["outcome"] as? String } == ["miss", "hit", "hit", "bypass"])
        #expect(seen.map { $0["status"] as? Int } == [200, 200, 304, 404])
        #expect(seen.map { $0["bytes"] as? Int } == [8, 8, 0, 2])
        #expect(seen.map { $0["url"] as? String } == ["/users/1", "/users/1", "/users/1", "/nobody"])
        let miss = seen[0]["cache_status"] as? String
        #expect(miss?.prefixMatch(of: /larder; fwd=uri-miss; ttl=3[56][0-9][0-9]; stored/) != nil, "\(miss ?? "")")
        #expect((seen[1]["cache_status"] as? String)?.hasPrefix("larder; hit; ttl=") == true)
        #expect(seen[0]["upstream_seconds"] as? Double ?? -1 > 0)
        #expect(seen[1]["upstream_seconds"] == nil)
        #expect(seen[0]["key"] as? String == seen[1]["key"] as? String)
        #expect((seen[0]["key"] as? String)?.count == 32)
        #expect(seen.allSatisfy { $0["client"] as? String == "127.0.0.1" })
        #expect(seen.allSatisfy { ($0["upstream"] as? String)?.isEmpty == false })
        #expect(try requests(larder, "?limit=1").map { $0["id"] as? Int } == [4])
        #expect(try requests(larder, "?after=2").map { $0["id"] as? Int } == [3, 4])
        #expect(try larder.admin("GET", "/requests").object["next"] as? Int == 4)
        // A number of an earlier run.
        #expect(try requests(larder, "?after=4000").count == 4)
        for query in ["?limit=0", "?limit=1001", "?after=-1", "?after=x", "?follow=maybe", "?colour=red"] {
            #expect(try larder.admin("GET", "/requests" + query).status == 400, "\(query)")
        }
    }

    @Test func `hits from memory are listed once somebody has asked for the list, and misses always`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        for _ in 0..<50 { #expect(try larder.get("/x").isHit) }
        let before = try larder.admin("GET", "/requests").object
        let outcomes = (before["requests"] as? [[String: Any]] ?? []).map { $0["outcome"] as? String }
        #expect(outcomes.count { $0 == "miss" } == 1)
        // One or the other may have come before the response was in memory.
        #expect(outcomes.count < 25)
        for _ in 0..<10 { #expect(try larder.get("/x").isHit) }
        let next = try #require(before["next"] as? Int)
        #expect(
            try requests(larder, "?after=\(next)").map { $0["outcome"] as? String }
                == Array(repeating: "hit", count: 10)
        )
    }

    @Test func `credentials and hostile characters of a request are never shown`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x?access_token=s3cret&q=1", ["Authorization": "Bearer s3cret"])
        _ = try larder.get("/%1B%5B31m%E2%80%AEgnp")
        #expect(try eventually { try requests(larder).count == 2 })
        let text = try larder.admin("GET", "/requests").text
        #expect(!text.contains("s3cret"))
        #expect(text.contains("q=1"))
        #expect(!text.utf8.contains(0x1B) && !text.contains("\u{202E}"))
        #expect(text.contains("gnp"))
    }

    @Test func `refused requests are listed without their parameters`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x?token=s3cret", ["Host": "evil.example"])
        let seen = try requests(larder)
        #expect(seen.map { $0["status"] as? Int } == [421])
        #expect(seen.map { $0["outcome"] as? String } == ["error"])
        #expect(seen.map { $0["url"] as? String } == ["/x?…"])
        #expect(origin.count() == 0)
    }

    @Test func `a request whose client left is shown as such`() throws {
        let gate = Gate()
        let origin = try Origin { _ in
            gate.wait()
            return .json("[]", Fresh.hour)
        }
        let larder = try Larder(origin)
        var client: Client? = try larder.client()
        try client?.send("GET /slow HTTP/1.1\r\nHost: 127.0.0.1:\(larder.port)\r\n\r\n")
        #expect(origin.waitForRequests(1))
        client = nil
        #expect(try eventually { try requests(larder).map { $0["status"] as? Int } == [499] })
        #expect(try requests(larder).first?["detail"] as? String == "client-left")
        gate.open()
    }

    @Test func `followers get each request as it ends`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/before")
        #expect(try eventually { try requests(larder).count == 1 })
        let follower = try RequestsFollower(larder, "/requests?follow")
        _ = try larder.get("/x")
        var events = try follower.next(1)
        _ = try larder.get("/x")
        events += try follower.next(1)
        #expect(events.map(\.name) == ["request", "request"])
        #expect(events.map(\.id) == ["2", "3"])
        let members = try events.map {
            try JSONSerialization.jsonObject(with: Data($0.data.utf8)) as? [String: Any] ?? [:]
        }
        #expect(members.map { $0["outcome"] as? String } == ["miss", "hit"])
        // Who comes back gets what it has missed.
        let again = try RequestsFollower(larder, "/requests?follow&after=1")
        #expect(try again.next(2).map(\.id) == ["2", "3"])
        #expect(larder.terminate() == .exited(0))
    }

    @Test func `a follower that does not read misses requests, and delays no other client`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin)
        let follower = try RequestsFollower(larder, "/requests?follow")
        _ = try larder.get("/x")
        let client = try larder.client()
        for _ in 0..<25 {
            let request = "GET /x HTTP/1.1\r\nHost: 127.0.0.1:\(larder.port)\r\n\r\n"
            try client.send(String(repeating: request, count: 100))
            for _ in 0..<100 { #expect(try client.response().status == 200) }
        }
        var (seen, missed) = (0, 0)
        while seen + missed < 2_501 {
            let event = try #require(try follower.next(1).first)
            if event.name == "missed" {
                let data = try JSONSerialization.jsonObject(with: Data(event.data.utf8)) as? [String: Int]
                missed += data?["missed"] ?? 0
            } else {
                seen += 1
            }
        }
        #expect(seen + missed == 2_501)
    }

    // MARK: Upstreams

    @Test func `an upstream's state, last error and rate limit are shown`() throws {
        let reset = Int(Date().timeIntervalSince1970) + 3600
        let origin = try Origin { request in
            switch request.path {
            case "/limited":
                .json(
                    "[]",
                    [
                        "X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "4990", "X-RateLimit-Reset": "\(reset)",
                        "X-RateLimit-Resource": "core",
                    ]
                )
            case "/gone": .reset
            case "/pause": .json("{}", ["Retry-After": "30", "X-RateLimit-Remaining": "0"], status: 429)
            default: .json("[]")
            }
        }
        let larder = try Larder(origin)
        #expect(try upstream(larder)["state"] as? String == "unused")
        #expect(try upstream(larder)["origin"] as? String == origin.url)
        _ = try larder.get("/limited")
        #expect(try becomes("reachable", larder))
        var state = try upstream(larder)
        let limit = try #require(state["rate_limit"] as? [String: Any])
        #expect(limit["limit"] as? Int == 5000)
        #expect(limit["remaining"] as? Int == 4990)
        #expect(limit["resource"] as? String == "core")
        #expect((limit["reset"] as? String)?.hasSuffix("Z") == true)
        _ = try larder.get("/gone")
        #expect(try becomes("unreachable", larder))
        state = try upstream(larder)
        #expect(state["unreachable_since"] is String)
        #expect(state["is_held_back"] as? Bool == false)
        let error = try #require(state["last_error"] as? [String: Any])
        #expect((error["message"] as? String)?.contains("GET \(origin.url)/gone: ") == true)
        _ = try larder.get("/pause")
        #expect(try eventually { try upstream(larder)["requests"] as? Int == 3 })
        state = try upstream(larder)
        #expect(state["state"] as? String == "backing_off")
        #expect(state["back_off_until"] is String)
        #expect(state["unreachable_since"] == nil)
        #expect(state["requests"] as? Int == 3)
        #expect(state["failures"] as? Int == 1)
    }

    @Test
    func `an upstream whose responses are errors is failing, and the log has a line for its beginning and its end`()
        throws
    {
        let origin = try Origin { request in .json("{}", status: Int(request.path.dropFirst()) ?? 200) }
        let larder = try Larder(origin)
        for status in [404, 500, 503, 500, 502] { _ = try larder.get("/\(status)") }
        #expect(try becomes("reachable", larder))
        _ = try larder.get("/500")
        #expect(try becomes("failing", larder))
        #expect(try upstream(larder)["failing_since"] is String)
        let error = try upstream(larder)["last_error"] as? [String: Any]
        let words = "/500: the upstream responded with 500 Internal Server Error"
        #expect((error?["message"] as? String)?.hasSuffix(words) == true)
        #expect(try larder.total("larder_upstream_failing") == 1)
        #expect(try larder.admin("GET", "/readyz").status == 200)
        for _ in 0..<10 { _ = try larder.get("/500") }
        #expect(larder.process.waitForErrors { $0.contains("the upstream's responses fail") })
        #expect(larder.log.contains("5 of the last 6 responses"))
        for _ in 0..<20 { _ = try larder.get("/200") }
        #expect(try becomes("reachable", larder))
        #expect(larder.process.waitForErrors { $0.contains("the upstream's responses succeed again") })
        #expect(larder.log.contains("failed_requests=15"))
        #expect(larder.log.ranges(of: "the upstream's responses fail").count == 1)
    }
}

/// A client that follows one of the admin side's streams.
private final class RequestsFollower {
    private let client: Client
    private var rest: [UInt8] = []
    private var waiting: [ServerSentEvent] = []

    init(_ larder: Larder, _ target: String) throws {
        client = try Client(.port(larder.adminPort), limit: .seconds(120))
        var head = "GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(larder.adminPort)\r\n"
        if let token = larder.token { head += "Authorization: Bearer \(token)\r\n" }
        try client.send(head + "\r\n")
        #expect(try client.head().status == 200)
        // Its first bytes say that it follows.
        rest += try client.chunk() ?? []
    }

    /// So many further events.
    func next(_ count: Int) throws -> [ServerSentEvent] {
        while waiting.count < count {
            // Only what ends with an empty line is whole.
            if let end = rest.lastIndex(of: 0x0A), end > 0, rest[end - 1] == 0x0A {
                waiting += ServerSentEvent.parse(Array(rest[...end]))
                rest.removeFirst(end + 1)
            }
            if waiting.count >= count { break }
            guard let chunk = try client.chunk() else { throw SocketError.closed }
            rest += chunk
        }
        defer { waiting.removeFirst(count) }
        return Array(waiting.prefix(count))
    }
}
