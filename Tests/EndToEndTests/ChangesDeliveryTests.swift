import Foundation
import TestSupport
import Testing

/// `/changes` as a stream that nothing is lost from, whatever happens to those who listen and to the daemon.
@Suite(.scripts) struct ChangesDeliveryTests: ChangesFixtures {
    // MARK: What nothing is lost from

    @Test(arguments: [1, 2])
    func `under load, kills and broken connections every change is delivered once`(seed: UInt64) throws {
        let value = Monitor(0)
        let origin = try Origin { request in
            let number = value.next()
            if request.path == "/users" { return .json(Self.users(20, "n\(number)"), Fresh.hour) }
            let id = request.path.split(separator: "/").last ?? "1"
            return .json(#"{"id":\#(id),"login":"l\#(number)"}"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        var random = SeededGenerator(seed: seed)
        var told: [Int64] = []
        var position: Int64?
        for round in 0..<9 {
            let listener = try ChangeListener(larder, "since=0", after: position)
            let port = larder.port
            let paths = (0..<12).map { _ in random.once(in: 3) ? "/users" : "/users/\(random.below(30) + 1)" }
            let load = Background {
                for path in paths {
                    // The daemon may be gone, which is what this is about.
                    _ = try? Client(port: port).request("GET", path, Self.again + ["Connection": "close"])
                }
            }
            // Long enough for what is under way; where there is less to hear than was drawn, silence is the end.
            try listener.client.socket.limit(.milliseconds(500))
            for _ in 0..<random.below(60) + 1 {
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

    @Test func `a gap in the changes is reported once, and the stream goes on`() throws {
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
        #expect((reset.members["up_to"] as? NSNumber)?.int64Value == reset.id)
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

    @Test func `changes that a clean removed are reported as missing`() throws {
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
        let listed = try larder.command("changes", "--since", "0")
        #expect(listed.errors.contains(" changes are missing between "), "\(listed.errors)")
        #expect(listed.errors.contains(", because a clean has removed their objects\n"))
        let selected = try larder.command("changes", "--model", "Post")
        #expect(selected.errors.contains("; they may be of other objects than those selected\n"))
    }

    // MARK: Those who listen badly, and those who are many

    @Test func `a client that does not read is disconnected, and misses no change when it returns`() throws {
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

    @Test func `a thousand clients get every change exactly once`() throws {
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

    @Test func `streams of changes end properly when the daemon stops`() throws {
        let blog = try Changing(["/users": Self.users(1, "a")])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let listener = try ChangeListener(larder)
        #expect(larder.terminate() == .exited(0))
        #expect(try listener.next() == nil)
    }
}
