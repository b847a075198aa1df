import Foundation
import TestSupport
import Testing

/// Requests at the same time: what is shared is fetched once, and nobody waits for what is not.
@Suite(.scripts) struct CoalescingTests {
    @Test func `200 clients for one slow URL make one request`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.json(#"{"id":1}"#, Fresh.hour).after(gate) }
        let larder = try Larder.patient(origin)
        let answers = Background {
            try together(200) { _ in try larder.get("/slow") }
        }
        #expect(try larder.waitForFollowers(199))
        gate.open()
        let all = try answers.value()
        #expect(all.allSatisfy { $0.status == 200 && $0.text == #"{"id":1}"# })
        #expect(origin.count() == 1)
        #expect(all.count { $0.cacheStatus.contains("collapsed") } == 199)
    }

    @Test func `200 clients for a response that may not be stored do not wait for one another`() throws {
        // From the second request on, the origin answers nobody before 200 are there.
        let crowd = Monitor(0)
        let origin = try Origin { request in
            if request.number > 0 {
                crowd.withLock { $0 += 1 }
                crowd.wait { $0 >= 200 }
            }
            return .json(#"{"n":\#(request.number)}"#, ["Cache-Control": "no-store"])
        }
        let larder = try Larder(origin)
        #expect(try larder.get("/own").status == 200)
        let answers = Background {
            try together(200) { _ in try larder.get("/own") }
        }
        let all = try answers.value()
        #expect(all.allSatisfy { $0.status == 200 })
        #expect(Set(all.map(\.text)).count == 200)
        #expect(!all.contains { $0.cacheStatus.contains("collapsed") })
    }

    @Test func `clients that waited for a response that may not be shared all go upstream at once`() throws {
        let first = Gate()
        let crowd = Monitor(0)
        let origin = try Origin { request in
            if request.number == 0 {
                first.wait()
            } else {
                crowd.withLock { $0 += 1 }
                crowd.wait { $0 >= 30 }
            }
            return .json(#"{"n":\#(request.number)}"#, ["Cache-Control": "no-store"])
        }
        let larder = try Larder.patient(origin)
        let leader = Background { try larder.get("/x") }
        origin.waitForRequests(1)
        let others = Background { try together(30) { _ in try larder.get("/x") } }
        #expect(try larder.waitForFollowers(30))
        #expect(origin.count() == 1)
        first.open()
        let all = try [leader.value()] + others.value()
        #expect(Set(all.map(\.text)).count == 31)
    }

    @Test func `after a storable response requests are collapsed again`() throws {
        let origin = try Origin { _ in .json("{}", ["Cache-Control": "no-store"]) }
        let larder = try Larder.patient(origin)
        _ = try larder.get("/x")
        origin.always(.json("[]", Fresh.never))
        _ = try larder.get("/x")
        origin.forget()
        let gate = Gate()
        origin.behave { _ in OriginResponse.json("[1]", Fresh.hour).after(gate) }
        let answers = Background { try together(10) { _ in try larder.get("/x") } }
        #expect(try larder.waitForFollowers(9))
        gate.open()
        #expect(try answers.value().allSatisfy { $0.text == "[1]" })
        #expect(origin.count() == 1)
    }

    @Test func `each request for a 404 that is never fresh goes upstream`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.never, status: 404) }
        let larder = try Larder(config: Configs.blog(origin))
        // The object is noted as gone before the response goes on, and the rest of it comes at once.
        for _ in 0..<100 { #expect(try larder.get("/users/1").status == 404) }
        #expect(origin.count() == 100)
    }

    @Test func `a fetch goes on for its followers when its first client leaves`() throws {
        let origin = try Origin { _ in .json("{}") }
        let larder = try Larder.patient(origin)
        for (round, isHeadOut) in [false, true].enumerated() {
            let path = "/\(isHeadOut)"
            let early = Gate()
            origin.behave { _ in
                isHeadOut
                    ? OriginResponse.json(#"{"id":1}"#, Fresh.hour).split(before: 4, by: early)
                    : OriginResponse.json(#"{"id":1}"#, Fresh.hour).after(early)
            }
            var leader: Client? = try larder.client()
            try leader?.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
            origin.waitForRequests(1, path)
            let follower = try larder.client()
            try follower.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try larder.waitForFollowers(round + 1))
            leader?.socket.resetOnClose()
            leader = nil
            #expect(try larder.waitForConnections(1))
            early.open()
            #expect(try follower.response().text == #"{"id":1}"#)
            #expect(origin.count(path) == 1)
            #expect(try larder.get(path).isHit)
        }
    }

    @Test func `a fetch without clients is cancelled, and the next request starts another`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.json("1", Fresh.hour).after(gate) }
        let larder = try Larder(origin)
        var client: Client? = try larder.client()
        try client?.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        origin.waitForRequests(1)
        client?.socket.resetOnClose()
        client = nil
        origin.always(.json("2", Fresh.hour))
        // One who comes before the leaving is noticed waits with those who left.
        #expect(eventually { (try? larder.client(limit: .milliseconds(500)).get("/x").text) == "2" })
        gate.open()
    }

    @Test func `principals, contexts and variants do not share a fetch`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            let mark = ["Authorization", "Accept-Language", "X-Shape"].map { request[$0] ?? "-" }
            return OriginResponse.json("\"\(mark.joined(separator: " "))\"", Fresh.hour + ["Vary": "X-Shape"]).after(
                gate
            )
        }
        let larder = try Larder.patient(origin)
        let kinds: [(FieldLines, String)] = [
            ([:], "- - -"), (["Authorization": "a"], "a - -"), (["Authorization": "b"], "b - -"),
            (["Accept-Language": "en"], "- en -"), (["X-Shape": "round"], "- - round"),
            (["X-Shape": "square"], "- - square"),
        ]
        let answers = Background { try together(30) { try larder.get("/x", kinds[$0 % 6].0).text } }
        // What only `Vary` tells apart is one until there is a response.
        #expect(origin.waitForRequests(4))
        #expect(try larder.waitForFollowers(26))
        gate.open()
        for (number, text) in try answers.value().enumerated() { #expect(text == "\"\(kinds[number % 6].1)\"") }
        // One fetch for each, also for the variants that only the first response told apart.
        #expect(origin.count() == kinds.count)
    }

    @Test func `a request that requires revalidation joins a fetch before its response begins, but not after`() throws {
        let (head, rest) = (Gate(), Gate())
        let origin = try Origin { request in
            guard request.number == 0 else { return .json("2", Fresh.hour) }
            return OriginResponse(
                steps: [.wait(head)] + OriginResponse.json("100", Fresh.hour).split(before: 2, by: rest).steps
            )
        }
        let larder = try Larder.patient(origin)
        let leader = try larder.client()
        try leader.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        origin.waitForRequests(1)
        let early = Background { try larder.get("/x", ["Cache-Control": "no-cache"]) }
        #expect(try larder.waitForFollowers(1))
        #expect(origin.count() == 1)
        head.open()
        #expect(try leader.head().status == 200)
        // Whoever asks only now wants to hear something newer.
        #expect(try larder.get("/x", ["Cache-Control": "max-age=0"]).text == "2")
        rest.open()
        #expect(try leader.bytes(3) == Array("100".utf8))
        #expect(try early.value().text == "100")
    }
}
