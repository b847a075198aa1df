import Foundation
import TestSupport
import Testing

/// `/changes`: what became of which object, as a stream that nothing is lost from.
@Suite(.scripts) struct ChangesTests {
    typealias Changing = CoherenceTests.Changing

    private static let again: FieldLines = ["Cache-Control": "no-cache"]

    private static func users(_ count: Int, _ name: String) -> String {
        "[" + (1...count).map { #"{"id":\#($0),"login":"u\#($0)","name":"\#(name)"}"# }.joined(separator: ",") + "]"
    }

    // MARK: The stream

    @Test func `a client hears of what other clients' requests change, each change with a number of its own`() throws {
        let blog = try Changing(["/users": Self.users(2, "a"), "/posts/1": #"{"id":1,"title":"t","author":{"id":1}}"#])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let listener = try ChangeListener(larder)
        #expect(listener.status == 200)
        #expect(listener.fields["Content-Type"] == "text/event-stream")
        #expect(listener.fields["Cache-Control"] == "no-store")

        _ = try larder.get("/users")
        #expect(try listener.next(2).map(\.text) == ["created User 1", "created User 2"])
        // The same again is nothing.
        _ = try larder.get("/users", Self.again)
        blog["/users"] = #"[{"id":1, "name" : "\u0061"},{"id":2.0,"name":"b"}]"#
        _ = try larder.get("/users", Self.again)
        _ = try larder.get("/posts/1")
        let rest = try listener.next(2)
        // Identities are spelled as the upstream spells them.
        #expect(rest.map(\.text) == ["changed User 2.0", "created Post 1"])
        let change = rest[0]
        #expect(change.members["upstream"] as? String == "blog")
        #expect(change.members["principal"] as? String == "anonymous")
        #expect(change.members["context"] as? String == "")
        #expect(change.members["kind"] as? String == "changed")
        #expect(change.sequence == change.id && rest[1].id > change.id)
        #expect((change.members["time"] as? String)?.hasPrefix("20") == true)
        #expect(change.members["object"] == nil)
    }

    @Test func `a PATCH of another client's is told with the members it left`() throws {
        let blog = try Changing(["/users/1": #"{"id":1, "login":"ada"}"#])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users/1")
        #expect(try larder.waitForObjects(1, of: "User"))
        let listener = try ChangeListener(larder, "values=true")
        blog["/users/1"] = "{\"id\":1,\n \"login\":\"bela\"}"
        #expect(try larder.request("PATCH", "/users/1", body: #"{"login":"bela"}"#).status == 200)
        let change = try #require(try listener.next())
        #expect(change.text == "changed User 1")
        #expect((change.members["object"] as? [String: Any])?["login"] as? String == "bela")
    }

    @Test func `who comes back with the last number goes on behind it, and who has seen nothing yet too`() throws {
        let blog = try Changing(["/users": Self.users(5, "a")])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let early = try ChangeListener(larder)
        _ = try larder.get("/users")
        let seen = try early.next(2)
        // Within what one commit brought.
        let back = try ChangeListener(larder, after: seen[1].id)
        #expect(try back.next(3).map(\.identity) == ["3", "4", "5"])
        // The field of a browser that comes back outdoes its URL.
        let browser = try ChangeListener(larder, "since=0", after: seen[0].id)
        #expect(try browser.next(4).map(\.identity) == ["2", "3", "4", "5"])
        let all = try ChangeListener(larder, "since=0")
        #expect(try all.next(5).map(\.identity) == ["1", "2", "3", "4", "5"])
        let some = try ChangeListener(larder, "since=\(seen[0].id)")
        #expect(try some.next(1).map(\.identity) == ["2"])

        // A stream that tells of nothing gives a number at its head.
        let quiet = try ChangeListener(larder, "model=Post")
        var head: [UInt8] = []
        while head.isEmpty || !String(decoding: head, as: UTF8.self).contains("id: ") {
            head += try quiet.client.chunk() ?? []
        }
        let number = try #require(String(decoding: head, as: UTF8.self).firstMatch(of: /id: ([0-9]+)\n\n/)?.1)
        blog["/users"] = Self.users(5, "a").replacingOccurrences(of: #""name":"a"}]"#, with: #""name":"z"}]"#)
        _ = try larder.get("/users", Self.again)
        let later = try ChangeListener(larder, after: Int64(number))
        #expect(try later.next(1).map(\.text) == ["changed User 5"])
    }

    @Test func `filters add up, and repeated ones are alternatives`() throws {
        let blog = try Changing(["/users": Self.users(4, "a"), "/posts/1": #"{"id":1,"author":{"id":9}}"#])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users")
        _ = try larder.get("/posts/1")
        #expect(try eventually { try larder.changes().count == 6 })
        func told(_ query: String) throws -> [String] {
            try larder.changes(query).map { "\($0["model"] ?? "") \($0["id"] ?? "")" }
        }
        #expect(try told("model=Post") == ["Post 1"])
        #expect(try told("model=Post&model=User&id=1&id=9").sorted() == ["Post 1", "User 1", "User 9"])
        #expect(try told("upstream=blog&model=User&id=3") == ["User 3"])
        #expect(try told("principal=anonymous&model=Post") == ["Post 1"])
        #expect(try told("principal=p-00000000").isEmpty)
        let listener = try ChangeListener(larder, "since=0&model=User&id=2&id=4")
        #expect(try listener.next(2).map(\.text) == ["created User 2", "created User 4"])
    }

    // MARK: What nothing is lost from

    @Test(arguments: [1, 2])
    func `under load, kills and broken connections every change is told once`(seed: UInt64) throws {
        let value = Monitor(0)
        let origin = try Origin { request in
            let number = value.next()
            if request.path == "/users" { return .json(Self.users(20, "n\(number)"), Fresh.hour) }
            let id = request.path.split(separator: "/").last ?? "1"
            return .json(#"{"id":\#(id),"login":"l\#(number)"}"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        var state = seed
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        var told: [Int64] = []
        var position: Int64?
        for round in 0..<9 {
            let listener = try ChangeListener(larder, "since=0", after: position)
            let port = larder.port
            let paths = (0..<12).map { _ in random(3) == 0 ? "/users" : "/users/\(random(30) + 1)" }
            let load = Background {
                for path in paths {
                    // The daemon may be gone, which is what this is about.
                    _ = try? Client(port: port).request("GET", path, Self.again + ["Connection": "close"])
                }
            }
            // Long enough for what is under way; where there is less to hear than was drawn, silence is the end.
            try listener.client.socket.limit(.milliseconds(500))
            for _ in 0..<random(60) + 1 {
                guard let event = try? listener.next() else { break }
                #expect(event.name != "reset")
                told.append(event.id)
            }
            // What was not taken any more is told again.
            position = told.last ?? position
            if round % 3 == 1 { larder.kill() }
            try load.value()
            if round % 3 == 1 { try larder.start() }
            if round % 3 == 2 { try larder.restart() }
        }
        // Nothing is under way any more: what is kept is what there is.
        #expect(try larder.waitForQuiet())
        let kept = try larder.changes().compactMap { ($0["sequence"] as? NSNumber)?.int64Value }
        let last = try ChangeListener(larder, "since=0", after: position)
        while told.count < kept.count { told.append(try #require(try last.next()).id) }
        #expect(told == kept)
        #expect(Set(kept).count == kept.count && kept == kept.sorted())
        #expect(kept.count > 50)
    }

    @Test func `what is missing is said, once, and then it goes on`() throws {
        let blog = try Changing(["/users": Self.users(3, "a")])
        let larder = try Larder(config: Configs.blog(blog.origin, top: ["store: { changes: 4 }"]))
        let early = try ChangeListener(larder)
        _ = try larder.get("/users")
        let first = try #require(try early.next(3).first)
        var last = try #require(try larder.changes().last?["sequence"] as? NSNumber).int64Value
        for round in 0..<6 {
            blog["/users"] = Self.users(3, "b\(round)")
            _ = try larder.get("/users", Self.again)
            // Each in a commit of its own: what is dropped is dropped by the commit.
            #expect(try eventually { try larder.changes(since: last).count == 3 })
            last = try #require(try larder.changes().last?["sequence"] as? NSNumber).int64Value
        }
        let kept = try larder.changes()
        #expect((4...6).contains(kept.count))
        // Those evicted.
        let back = try ChangeListener(larder, after: first.id)
        let reset = try #require(try back.next())
        #expect(reset.name == "reset")
        #expect(reset.members["reason"] as? String == "evicted")
        #expect((reset.members["after"] as? NSNumber)?.int64Value == first.id)
        #expect((reset.members["upTo"] as? NSNumber)?.int64Value == reset.id)
        #expect(try back.next(kept.count).allSatisfy { $0.name == "changed" && $0.id > reset.id })
        // The oldest kept are what was asked for.
        #expect(try ChangeListener(larder, "since=0").next()?.name == "changed")
        // Numbers of another store, of the future, and what is none at all.
        for unknown in [1, last + 1_000_000, .max] {
            let lost = try ChangeListener(larder, after: unknown)
            let reset = try #require(try lost.next())
            #expect(reset.name == "reset")
            #expect(reset.members["reason"] as? String == "unknown")
            #expect(reset.id >= last)
        }
        let page = try larder.admin("GET", "/changes", ["Accept": "application/json", "Last-Event-ID": "abc"]).object
        #expect((page["resets"] as? [[String: Any]])?.first?["reason"] as? String == "unknown")
        #expect(page["more"] as? Bool == false)
    }

    @Test func `what a clean has taken is told as missing`() throws {
        let blog = try Changing(["/users": Self.users(3, "a"), "/posts/1": #"{"id":1,"title":"t"}"#])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let early = try ChangeListener(larder)
        _ = try larder.get("/users")
        let first = try #require(try early.next())
        #expect(try larder.admin("POST", "/clean", body: #"{"model":"User"}"#).status == 200)
        _ = try larder.get("/posts/1")
        let back = try ChangeListener(larder, after: first.id)
        let events = try back.next(2)
        #expect(Set(events.map(\.name)) == ["reset", "created"])
        #expect(events.first { $0.name == "reset" }?.members["reason"] as? String == "cleaned")
    }

    // MARK: Those who listen badly, and those who are many

    @Test func `a client that does not read is cut off, and misses nothing when it comes back`() throws {
        let blog = try Changing(["/users": Self.users(2000, "a")])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let slow = try ChangeListener(larder)
        try slow.client.socket.receiveBuffer(4096)
        let quick = try ChangeListener(larder, "model=User&id=1")
        var rounds = 0
        while rounds < 80, try larder.total("larder_change_streams_cut_total") == 0 {
            rounds += 1
            blog["/users"] = Self.users(2000, "b\(rounds)")
            _ = try larder.get("/users", Self.again)
            // Nobody else waits for it.
            #expect(try quick.next()?.identity == "1")
        }
        #expect(rounds < 80)
        #expect(larder.residentMemory < 400 << 20)
        var seen: [Int64] = []
        // What was on its way when the connection was cut may be read or not.
        while let event = try? slow.next() { seen.append(event.id) }
        let back = try ChangeListener(larder, after: slow.lastID)
        let kept = try larder.changes().compactMap { ($0["sequence"] as? NSNumber)?.int64Value }
        while seen.count < kept.count { seen.append(try #require(try back.next()).id) }
        #expect(seen == kept)
    }

    @Test func `a thousand clients hear of every change, and of nothing twice`() throws {
        let blog = try Changing(["/users": Self.users(3, "a")])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let listeners = try (0..<1000).map { number in
            try ChangeListener(larder, number % 2 == 0 ? "" : "model=User&id=\(number % 3 + 1)")
        }
        #expect(try eventually { try larder.total("larder_change_streams") == 1000 })
        for round in 0..<3 {
            blog["/users"] = Self.users(3, "b\(round)")
            _ = try larder.get("/users", Self.again)
        }
        for (number, listener) in listeners.enumerated() {
            let wanted = number % 2 == 0 ? ["1", "2", "3"] : ["\(number % 3 + 1)"]
            #expect(try listener.next(wanted.count * 3).map(\.identity) == wanted + wanted + wanted)
        }
        // They leave without a word.
        for listener in listeners { listener.client.socket.shutDown() }
        #expect(try eventually { try larder.total("larder_change_streams") == 0 })
        #expect(try larder.get("/users").isHit)
    }

    @Test func `streams end in order when the daemon does`() throws {
        let blog = try Changing(["/users": Self.users(1, "a")])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let listener = try ChangeListener(larder)
        #expect(larder.terminate() == .exited(0))
        #expect(try listener.next() == nil)
    }

    // MARK: The face

    @Test func `what is asked wrongly is refused with the reason`() throws {
        let blog = try Changing(["/users": Self.users(1, "a")])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let refused: [(query: String, part: String)] = [
            ("model=Nothing", "the config declares Note, Post, Tag, User"), ("model=", "model is empty"),
            ("upstream=github", "the config has blog"), ("principal=me", "p- and eight hexadecimal digits"),
            ("id=", "id is empty"), ("since=-1", "since must be the number of a change"),
            ("since=1e3", "since must be the number of a change"), ("since=", "since must be the number of a change"),
            ("since=99999999999999999999", "since must be the number of a change"), ("since=1&since=2", "given twice"),
            ("values=maybe", "values is true or false"), ("limit=5", "limit goes with Accept: application/json"),
            ("modell=User", "modell is no parameter of /changes"),
        ]
        for (query, part) in refused {
            let answer = try larder.admin("GET", "/changes?\(query)")
            #expect(answer.status == 400 && answer.isProblem, "\(query)")
            #expect((answer.object["detail"] as? String)?.contains(part) == true, "\(query): \(answer.text)")
        }
        for limit in ["0", "1001", "ten"] {
            #expect(try larder.admin("GET", "/changes?limit=\(limit)", ["Accept": "application/json"]).status == 400)
        }
        #expect(try larder.admin("GET", "/changes", ["Accept": "text/plain"]).status == 406)
        #expect(try larder.admin("POST", "/changes").status == 405)
        for wrong in ["Bearer nonsense", "Basic abc"] {
            #expect(try larder.admin("GET", "/changes", ["Authorization": wrong]).status == 401)
        }
        let head = try larder.admin("HEAD", "/changes")
        #expect(head.status == 200 && head["Content-Type"] == "text/event-stream" && head.body.isEmpty)
        let paths = try larder.admin("GET", "/openapi.json").object["paths"] as? [String: Any]
        #expect(paths?["/changes"] != nil)
    }

    @Test func `where none are kept, that is said`() throws {
        let blog = try Changing(["/users": Self.users(1, "a")])
        let larder = try Larder(config: Configs.blog(blog.origin, top: ["store: { changes: 0 }"]))
        _ = try larder.get("/users")
        let answer = try larder.admin("GET", "/changes")
        #expect(answer.status == 404)
        #expect(answer.text.contains("changes: 0"))
    }

    @Test func `the command shows what is kept, and listens`() throws {
        let blog = try Changing(["/users": Self.users(2, "a")])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users")
        #expect(try eventually { try larder.changes().count == 2 })
        let listed = try larder.command("changes", "--model", "User")
        #expect(listed.end == .exited(0), "\(listed.errors)")
        let lines = listed.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        let wanted = [1, 2].map { ["created", "User", "\($0)", "blog", "anonymous"] }
        #expect(lines.map { Array($0.dropFirst(2)) } == wanted)
        let behind = try larder.command("changes", "--since", lines[0][0], "--values")
        #expect(behind.output.contains(#"{"id":2,"login":"u2","name":"a"}"#) && !behind.output.contains("u1"))
        #expect(try larder.command("changes", "--json").output.hasPrefix(#"{"changes":[{"sequence":"#))
        let unknown = try larder.command("changes", "--model", "Nobody")
        #expect(unknown.end == .exited(1) && unknown.errors.contains("no model is named \"Nobody\""))
        #expect(try larder.command("changes", "--since", "x").end == .exited(64))

        let follower = try ChildProcess(
            Larder.binary,
            [
                "changes", "--follow", "--json", "--since", "0", "--admin", "127.0.0.1:\(larder.adminPort)", "--store",
                larder.folder.file("larder.db"),
            ],
            environment: Larder.environment
        )
        #expect(eventually { follower.output.split(separator: "\n").count == 2 })
        blog["/users"] = Self.users(2, "c")
        _ = try larder.get("/users", Self.again)
        #expect(eventually { follower.output.split(separator: "\n").count == 4 })
        #expect(follower.output.split(separator: "\n").last?.contains(#""kind":"changed""#) == true)
        follower.signal(SIGTERM)
        follower.waitForEnd()
    }
}
