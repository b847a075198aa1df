import Foundation
import TestSupport
import Testing

/// Lists that were passed on and are still to be taken apart and stored.
@Suite(.scripts) struct BacklogTests {
    /// An origin of long lists of users, page 0 the longest by far; a PATCH renames one of them.
    private func origin(of count: Int) throws -> Origin {
        let name = Monitor("old")
        return try Origin { request in
            guard request.method == "GET" else {
                name.withLock { $0 = String(decoding: request.body, as: UTF8.self) }
                return .json(#"{"id":7,"login":"u7","name":"\#(name.current)"}"#)
            }
            let users = (0..<(request.target.hasSuffix("page=0") ? count * 40 : count)).map {
                #"{"id":\#($0),"login":"u\#($0)","name":"\#($0 == 7 ? name.current : "n")"}"#
            }
            return .json("[\(users.joined(separator: ","))]", Fresh.hour)
        }
    }

    private func queued(_ larder: Larder) throws -> Int {
        let line = try larder.admin("GET", "/metrics").text.split(separator: "\n")
            .first { $0.hasPrefix("larder_ingest_queue ") }
        return Int(line?.split(separator: " ").last ?? "") ?? -1
    }

    @Test func `a write does not wait for lists queued before it, and these show its response's values`() throws {
        let origin = try origin(of: 400)
        let larder = try Larder(origin, config: Configs.blog(origin, top: ["store: { withhold: 1ms }"]))
        let client = try larder.client()
        let pages = 10
        for page in 0..<pages { #expect(try client.get("/users?page=\(page)").status == 200) }
        #expect(try larder.request("PATCH", "/users/7", body: "new").status == 200)
        #expect(try queued(larder) > 0)
        // Those that were not taken in when the write was answered, too.
        for page in [pages - 1, pages / 2, 0] {
            let list = try client.get("/users?page=\(page)")
            #expect(list.isHit)
            #expect(list.text.contains(#"{"id":7,"login":"u7","name":"new"}"#))
        }
        #expect(try larder.waitForQuiet())
        let list = try client.get("/users?page=0")
        #expect(list.isHit)
        #expect(list.text.contains(#"{"id":7,"login":"u7","name":"new"}"#))
        #expect(try client.get("/users/7").status == 200)
    }

    @Test func `a stop without time to store queued responses drops them, but keeps the mark of a write`() throws {
        let gate = Gate()
        let origin = try origin(of: 2000)
        let larder = try Larder(
            config: Configs.blog(origin, top: ["timeouts: { drain: 0s }", "store: { withhold: 1ms }"])
        )
        let client = try larder.client()
        _ = try client.get("/users/1")
        #expect(try larder.waitForQuiet())
        for page in 0..<60 { _ = try client.get("/users?page=\(page)") }
        let count = origin.requests.count
        origin.behave { _ in OriginResponse.json(#"{"id":1,"name":"new"}"#, Fresh.hour).after(gate) }
        let write = Background { try? larder.request("PATCH", "/users/1", body: "new").status }
        origin.waitForRequests(count + 1)
        #expect(larder.terminate(.seconds(30)) == .exited(0))
        gate.open()
        _ = try write.value()
        #expect(larder.log.contains("responses were not stored"))
        #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
        try larder.start()
        #expect(try !larder.get("/users/1").isHit)
    }

    @Test func `a write whose response finds no room in the store is answered, and its objects are fetched again`()
        throws
    {
        let text = String(repeating: "x", count: 6_000_000)
        let state = Monitor("old")
        let origin = try Origin { request in
            if request.method == "PATCH" {
                state.withLock { $0 = "new" }
                return .json(#"{"id":7,"name":"new","company":"\#(text)"}"#)
            }
            return .json(#"[{"id":7,"name":"\#(state.current)"}]"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin, top: ["store: { maximum_size: 4MiB }"]))
        #expect(try larder.get("/users").text.contains("old"))
        #expect(try larder.waitForObjects(1, of: "User"))
        let answer = try larder.request("PATCH", "/users/7", body: "{}")
        #expect(answer.status == 200)
        #expect(answer.body.count > 6_000_000)
        let list = try larder.get("/users")
        #expect(!list.isHit)
        #expect(list.text == #"[{"id":7,"name":"new"}]"#)
        #expect(try larder.get("/users").isHit)
    }
}
