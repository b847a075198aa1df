import Foundation
import TestSupport
import Testing

/// Many streams, slow ones, and the end of the daemon.
@Suite(.scripts) struct LiveLoadTests {
    @Test func `a thousand streams get a change, and other clients are served meanwhile`() throws {
        let name = Monitor("Ada")
        let origin = try Origin { request in
            if request.method == "PATCH" { name.withLock { $0 = String(decoding: request.body, as: UTF8.self) } }
            let user = #"{"id":1,"name":"\#(name.current)"}"#
            return .json(request.path == "/users" ? "[\(user)]" : user, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        let followers = try (0..<1000).map { _ in try Follower(larder, "/users") }
        #expect(followers.allSatisfy { $0.wait { $0.contains { $0.name != "cached" } } })
        #expect(try larder.total("larder_live_streams") == 1000)
        #expect(try larder.total("larder_live_documents") == 1)
        let memory = larder.residentMemory
        #expect(try larder.request("PATCH", "/users/1", body: "Bela").status == 200)
        #expect(followers.allSatisfy { $0.wait { $0.last?.text == #"[{"id":1,"name":"Bela"}]"# } })
        #expect(try larder.get("/users").isHit)
        #expect(larder.residentMemory < memory + 64 << 20)
        #expect(try larder.total("larder_live_cut_off_total") == 0)
        for follower in followers { follower.leave() }
        #expect(try eventually { try larder.total("larder_live_streams") == 0 })
        #expect(try eventually { try larder.total("larder_live_documents") == 0 })
    }

    @Test func `streams beyond the limit are refused`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(config: Configs.plain(origin, top: ["live: { streams: 2 }"]))
        let followers = try (0..<2).map { _ in try Follower(larder, "/x") }
        #expect(followers.allSatisfy { $0.wait(for: 1) })
        for mode in ["on", "once"] {
            let refused = try larder.get("/x", ["Larder-Live": mode])
            #expect(refused.status == 503)
            #expect(refused.object["type"] as? String == "urn:larder:live-too-many")
        }
    }

    @Test func `a client that does not read is disconnected, and does not affect others`() throws {
        let version = Monitor(0)
        let filler = String(repeating: "x", count: 100_000)
        let origin = try Origin { _ in .json(#"{"n":\#(version.next()),"x":"\#(filler)"}"#, Fresh.hour) }
        let larder = try Larder(config: Configs.plain(origin, top: ["limits: { relay_window: 64KiB }"]))
        let reading = try Follower(larder, "/x")
        let idle = try Socket.connect(port: larder.port)
        try idle.receiveBuffer(4096)
        try idle.send(
            Client.message("GET", "/x", ["Larder-Live": "on"], host: "127.0.0.1:\(larder.port)")
        )
        #expect(reading.wait(for: 1))
        #expect(try eventually { try larder.total("larder_live_streams") == 2 })
        let memory = larder.residentMemory
        var last = ""
        let isCut = try eventually {
            last = try larder.get("/x", ["Cache-Control": "no-cache"]).text
            return try larder.total("larder_live_cut_off_total") == 1
        }
        #expect(isCut)
        #expect(reading.wait(for: last))
        #expect(larder.residentMemory < memory + 48 << 20)
        #expect(try eventually { try larder.total("larder_live_streams") == 1 })
    }

    @Test func `a slow reader may miss events, but gets the last`() throws {
        let version = Monitor(0)
        let filler = String(repeating: "x", count: 400_000)
        let origin = try Origin { _ in .json(#"{"n":\#(version.next()),"x":"\#(filler)"}"#, Fresh.hour) }
        let larder = try Larder(config: Configs.plain(origin, top: ["limits: { relay_window: 256KiB }"]))
        let client = try larder.client()
        try client.send("GET /x HTTP/1.1\r\nHost: 127.0.0.1:\(larder.port)\r\nLarder-Live: on\r\n\r\n")
        _ = try client.head()
        var text = String(decoding: try client.chunk() ?? [], as: UTF8.self)
        var last = ""
        for _ in 0..<40 {
            last = try larder.get("/x", ["Cache-Control": "no-cache"]).text
            text += String(decoding: try client.chunk() ?? [], as: UTF8.self)
        }
        let end = String(last.prefix(12)).replacingOccurrences(of: "\"", with: "\\\"")
        while !text.contains(end) {
            guard let chunk = try client.chunk() else { break }
            text += String(decoding: chunk, as: UTF8.self)
        }
        #expect(text.contains(end))
        #expect(try larder.total("larder_live_cut_off_total") == 0)
    }

    @Test func `heartbeats are sent, and reveal clients that are gone`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(
            config: Configs.plain(
                origin,
                top: ["live: { heartbeat: 100ms, retry: 5s }", "timeouts: { idle: 500ms, write_stall: 500ms }"]
            )
        )
        let follower = try Follower(larder, "/x")
        #expect(follower.state.wait { $0.comments >= 10 })
        #expect(follower.names == ["fresh"])
        #expect(follower.state.current.retry == 5000)
        #expect(!follower.state.current.isOver)
        follower.leave()
        #expect(try eventually { try larder.total("larder_live_streams") == 0 })
    }

    @Test func `a stopping daemon does not wait for streams`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(config: Configs.plain(origin, top: ["timeouts: { drain: 1h }"]))
        let followers = try (0..<50).map { try Follower(larder, "/\($0 % 5)") }
        #expect(followers.allSatisfy { $0.wait(for: 1) })
        // One that never reads.
        let filler = String(repeating: "x", count: 8 << 20)
        origin.always(.json("\"\(filler)\"", Fresh.hour))
        let idle = try Socket.connect(port: larder.port)
        try idle.receiveBuffer(4096)
        try idle.send(Client.message("GET", "/big", ["Larder-Live": "on"], host: "127.0.0.1:\(larder.port)"))
        #expect(try eventually { try larder.total("larder_live_streams") == 51 })
        #expect(origin.waitForRequests(1, "/big"))
        #expect(larder.terminate() == .exited(0))
        #expect(followers.allSatisfy { $0.state.wait { $0.isOver && $0.hasEnded } })
    }

    /// The connections of both close while the server begins to wait for them.
    @Test(arguments: 1...4) func `a stopping daemon does not wait for connections that have just closed`(round: Int)
        throws
    {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(config: Configs.plain(origin, top: ["timeouts: { drain: 1h }"]))
        let followers = try (0..<2).map { _ in try Follower(larder, "/a") }
        #expect(followers.allSatisfy { $0.wait(for: 1) })
        #expect(larder.terminate() == .exited(0))
    }

    /// Writes through Larder and changes that only the upstream knows of, while streams are open on all documents.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `after any changes the last event of each stream equals the response to a GET`(
        seed: UInt64
    ) throws {
        let blog = try Blog()
        let larder = try Larder(
            config: Configs.blog(blog.origin, top: ["live: { interval: 100ms }"])
        )
        var random = SeededGenerator(seed: seed)
        let targets = [
            "/users", "/users/1", "/users/2", "/users/3", "/posts", "/posts/1", "/posts/2", "/search/users?q=1",
        ]
        let followers = try targets.flatMap { target in
            try ["wire", "mapped"].map { (target, $0, try Follower(larder, target, ["Larder-View": $0])) }
        }
        let clients = try (0..<4).map { _ in try larder.client() }
        for _ in 0..<300 {
            let client = clients.randomElement(using: &random) ?? clients[0]
            let (user, post) = (Int.random(in: 1...3, using: &random), Int.random(in: 1...2, using: &random))
            let name = "n\(Int.random(in: 0..<1000, using: &random))"
            switch Int.random(in: 0..<8, using: &random) {
            case 0, 1: _ = try client.request("PATCH", "/users/\(user)", body: name)
            case 2: _ = try client.request("PATCH", "/posts/\(post)", body: name)
            // The upstream changes on its own, and a request finds out.
            case 3:
                blog.rename(user, name)
                _ = try client.get("/users/\(user)", ["Cache-Control": "no-cache"])
            case 4:
                blog.retitle(post, name)
                _ = try client.get("/posts", ["Cache-Control": "no-cache"])
            case 5: _ = try client.request("DELETE", "/users/\(user)")
            case 6: _ = try client.request("PUT", "/users/\(user)", body: name)
            default: _ = try client.get(targets.randomElement(using: &random) ?? "/users")
            }
        }
        for (target, view, follower) in followers {
            let isSame = try eventually {
                let answer = try larder.get(target, ["Larder-View": view])
                let last = follower.events.last { $0.body != nil }
                return last?.body == answer.body && last?.status == answer.status
            }
            #expect(isSame, "\(target) as \(view), seed \(seed): \(follower.text ?? "") is not what a GET is given")
            // Each state is told once.
            let states = follower.events.filter { $0.body != nil }
            for (one, next) in zip(states, states.dropFirst()) {
                #expect(one.body != next.body || one.status != next.status, "\(target) as \(view), seed \(seed)")
                #expect((Int64(one.id ?? "") ?? 0) < (Int64(next.id ?? "") ?? 0))
            }
        }
    }
}

/// Users and posts that can be changed, with or without a request's knowing.
private final class Blog: Sendable {
    private struct State {
        var names: [Int: String] = [1: "a", 2: "b", 3: "c"]
        var titles: [Int: String] = [1: "t", 2: "u"]
    }

    private let state: Monitor<State>
    let origin: Origin

    init() throws {
        let state = Monitor(State())
        self.state = state
        origin = try Origin { request in
            let text = String(decoding: request.body, as: UTF8.self)
            let number = Int(request.path.split(separator: "/").last ?? "") ?? 0
            let isUser = request.path.hasPrefix("/users")
            return state.withLock { state in
                switch request.method {
                case "DELETE":
                    state.names[number] = nil
                    return .empty(204)
                case "PATCH" where isUser && state.names[number] == nil:
                    return .json(#"{"message":"no such user"}"#, status: 404)
                case "PATCH", "PUT":
                    if isUser { state.names[number] = text } else { state.titles[number] = text }
                default: break
                }
                return Self.answer(request.path, number, state)
            }
        }
    }

    func rename(_ user: Int, _ name: String) {
        state.withLock { if $0.names[user] != nil { $0.names[user] = name } }
    }

    func retitle(_ post: Int, _ title: String) { state.withLock { $0.titles[post] = title } }

    private static func answer(_ path: String, _ number: Int, _ state: State) -> OriginResponse {
        func user(_ id: Int) -> String? { state.names[id].map { #"{"id":\#(id),"login":"l\#(id)","name":"\#($0)"}"# } }
        func post(_ id: Int) -> String {
            #"{"id":\#(id),"title":"\#(state.titles[id] ?? "")","author":\#(user(id) ?? "null")}"#
        }
        let users = state.names.keys.sorted().compactMap(user).joined(separator: ",")
        let text: String? =
            switch path {
            case "/users": "[\(users)]"
            case "/search/users": #"{"items":[\#(users)]}"#
            case "/posts": "[\([1, 2].map(post).joined(separator: ", "))]"
            case _ where path.hasPrefix("/posts/"): post(number)
            default: user(number)
            }
        return text.map { .json($0, Fresh.hour) } ?? .json(#"{"message":"no such user"}"#, Fresh.hour, status: 404)
    }
}
