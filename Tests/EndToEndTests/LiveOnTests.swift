import Foundation
import TestSupport
import Testing

/// `Larder-Live: on`: how streams begin, whose they are, and how they go on where they ended.
@Suite(.scripts) struct LiveOnTests: LiveFixtures {
    // MARK: The beginning

    @Test func `Larder-Live: on begins like once, and stays open`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.tagged("a")) }
        let larder = try Larder(origin)
        let first = try Follower(larder, "/x")
        #expect(first.wait(for: 1))
        #expect(first.names == ["fresh"])
        #expect(first.text == Self.old)
        let state = first.state.current
        #expect(state.status == 200)
        #expect(state.fields["Content-Type"] == "text/event-stream")
        #expect(state.fields["Cache-Control"] == "no-store")
        #expect(state.fields["Cache-Status"]?.contains("fwd=uri-miss") == true)
        #expect(state.retry == 2000)
        let second = try Follower(larder, "/x")
        #expect(second.wait(for: 2))
        #expect(second.names == ["cached", "unchanged"])
        #expect(second.text == Self.old)
        #expect(second.events[0].headers["etag"] == #""a""#)
        #expect(second.events[1].body == nil)
        // The same state has the same number, for everybody.
        #expect(Set((first.events + second.events).map(\.id)).count == 1)
        #expect(first.id.flatMap { Int64($0) }.map { $0 > 1_000_000_000_000_000 } == true)
        origin.always(.json(Self.new, Fresh.tagged("b")))
        let third = try Follower(larder, "/x")
        #expect(third.wait(for: 2))
        #expect(third.names == ["cached", "fresh"])
        #expect(third.text == Self.new)
        // Those who were there hear of it as of a change.
        for follower in [first, second] {
            #expect(follower.wait(for: Self.new))
            #expect(follower.names.last == "changed")
            #expect(follower.id == third.id)
            #expect(!follower.state.current.isOver)
        }
        #expect(try larder.get("/x").text == Self.new)
    }

    @Test func `a response that takes long to be committed gives an event at once, and a number later`() throws {
        let origin = try Origin { _ in .json(CoherenceTests.list, Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin, top: ["store: { withhold: 50ms }"]))
        let lock = try CommitLock(larder)
        let follower = try Follower(larder, "/users")
        #expect(follower.wait(for: 1))
        #expect(follower.names == ["fresh"])
        #expect(follower.text == CoherenceTests.list)
        let early = follower.state.current.lastID
        // On a slow machine the lock may have ended before.
        #expect(early == "" || !lock.isHeld)
        lock.release()
        #expect(follower.state.wait(.seconds(15)) { $0.lastID?.isEmpty == false })
        #expect(follower.names == ["fresh"])
        // It is the number of what it was told.
        let number = try #require(follower.state.current.lastID)
        let next = try Follower(larder, "/users", after: number)
        #expect(next.wait(for: 1))
        #expect(next.names.first == "unchanged")
    }

    @Test func `an upstream's outage gives one event, and so does its return`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(config: Configs.plain(origin, top: Self.quick()))
        _ = try larder.get("/x")
        origin.stop()
        let follower = try Follower(larder, "/x")
        #expect(follower.wait(for: 2))
        #expect(follower.names == ["cached", "error"])
        #expect(follower.events[1].problemType == "urn:larder:upstream-failed")
        #expect(follower.events[1].age != nil)
        #expect(follower.events[1].id == follower.events[0].id)
        try origin.restart()
        #expect(follower.wait(for: 3))
        #expect(follower.names == ["cached", "error", "unchanged"])
    }

    @Test func `a request that is held back during an outage does not count as the upstream's return`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(config: Configs.plain(origin, top: Self.quick()))
        _ = try larder.get("/x")
        origin.stop()
        let follower = try Follower(larder, "/x")
        #expect(follower.wait(for: 2))
        // Others find out that it cannot be reached. From then on the stream's requests are held back.
        #expect(
            try eventually {
                _ = try larder.get("/none")
                return try larder.total("larder_unreachable_requests_total") > 0
            }
        )
        let held = try larder.total("larder_unreachable_requests_total")
        #expect(try eventually { try larder.total("larder_unreachable_requests_total") >= held + 2 })
        #expect(follower.names == ["cached", "error"])
        try origin.restart()
        #expect(follower.wait(for: 3))
        #expect(follower.names == ["cached", "error", "unchanged"])
    }

    @Test func `without a stored response errors give events, and again only if they differ`() throws {
        let number = Monitor(0)
        let origin = try Origin { _ in .json(#"{"request":\#(number.next())}"#, status: 500) }
        let larder = try Larder(config: Configs.plain(origin, top: Self.quick()))
        let follower = try Follower(larder, "/x")
        #expect(follower.wait(for: 1))
        #expect(follower.names == ["error"])
        #expect(follower.events[0].status == 500)
        #expect(follower.events[0].problemStatus == 500)
        #expect(follower.events[0].text == #"{"request":0}"#)
        #expect(origin.waitForRequests(2))
        origin.always(.json(#"{"other":1}"#, status: 503))
        #expect(follower.wait(for: 2))
        #expect(follower.events.map(\.problemStatus) == [500, 503])
        origin.always(.json(Self.old, Fresh.hour))
        #expect(follower.wait(for: Self.old))
        #expect(follower.names == ["error", "error", "changed"])
    }

    // MARK: Whose it is

    @Test func `each principal's streams show only its own responses`() throws {
        let origin = try PrincipalTests.personal()
        let larder = try Larder(origin)
        let one = try Follower(larder, "/x", ["Authorization": "Bearer aaa"])
        let other = try Follower(larder, "/x", ["Authorization": "Bearer bbb"])
        #expect(one.wait(for: 1) && other.wait(for: 1))
        #expect(one.text != other.text)
        let again = try Follower(larder, "/x", ["Authorization": "Bearer aaa"], after: other.id)
        #expect(again.wait(for: 2))
        #expect(again.names == ["cached", "unchanged"])
        #expect(again.text == one.text)
        for secret in ["aaa", "bbb"] {
            #expect(larder.storeBytes.firstRange(of: Array("Bearer \(secret)".utf8)) == nil)
        }
    }

    @Test func `a browser's no-cache does not make a stream fetch all the time`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.tagged("a")) }
        let larder = try Larder(origin)
        let follower = try Follower(
            larder,
            "/x",
            ["Cache-Control": "no-cache", "Pragma": "no-cache", "Accept": "text/event-stream"]
        )
        #expect(follower.wait(for: 1))
        origin.always(.json(Self.new, Fresh.tagged("b")))
        _ = try larder.get("/x", ["Accept": "*/*", "Cache-Control": "no-cache"])
        #expect(follower.wait(for: Self.new))
        #expect(origin.count() == 2)
        for name in ["Larder-Live", "Last-Event-ID"] { #expect(origin.requests.allSatisfy { $0[name] == nil }) }
    }

    // MARK: Modes

    @Test func `offline a stream shows stored responses, and follows changes of their objects`() throws {
        let blog = try CoherenceTests.Changing(["/users": CoherenceTests.list, "/users/1": Self.detail])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users")
        #expect(try larder.waitForObjects(2, of: "User"))
        #expect(try larder.admin("PUT", "/mode", body: #"{"mode":"offline"}"#).status == 200)
        let (list, nothing) = (try Follower(larder, "/users"), try Follower(larder, "/users/1"))
        #expect(list.wait(for: 1) && nothing.wait(for: 1))
        #expect(list.names == ["cached"])
        #expect(nothing.events.map(\.problemType) == ["urn:larder:offline"])
        #expect(blog.origin.count() == 1)
        #expect(try larder.admin("PUT", "/mode", body: #"{"mode":"online"}"#).status == 200)
        // Back online, what is not known is asked for, and all who show it hear of it.
        #expect(nothing.wait(for: Self.detail))
        #expect(list.wait(for: Self.list("Ada L.")))
        #expect(list.names == ["cached", "changed"])
    }

    @Test func `a stream with only-if-cached fetches nothing, and gets what others fetch`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(origin)
        let follower = try Follower(larder, "/x", ["Cache-Control": "only-if-cached"])
        #expect(follower.wait(for: 1))
        #expect(follower.events.map(\.problemType) == ["urn:larder:only-if-cached"])
        _ = try larder.get("/x")
        #expect(follower.wait(for: Self.old))
        #expect(follower.names == ["error", "changed"])
        #expect(origin.count() == 1)
    }

    // MARK: Going on

    @Test(arguments: ["leave", "kill", "restart"])
    func `a client that reconnects gets an event named unchanged if nothing has changed`(how: String) throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.tagged("a")) }
        let larder = try Larder(origin)
        let before = try Follower(larder, "/x")
        #expect(before.wait(for: 1))
        let id = try #require(before.id)
        switch how {
        case "kill":
            larder.kill()
            try larder.start()
        case "restart": try larder.restart()
        default: before.leave()
        }
        let after = try Follower(larder, "/x", after: id)
        #expect(after.wait(for: 2))
        #expect(after.names == ["unchanged", "unchanged"])
        #expect(after.events.map(\.id) == [id, id])
        #expect(after.events[0].status == 200)
        // Numbers of another store, or of nobody, are no reason to be silent.
        for other in ["1", "\(Int64.max)", "x", "\((Int64(id) ?? 0) + 1)"] {
            let stranger = try Follower(larder, "/x", after: other)
            #expect(stranger.wait(for: 2))
            #expect(stranger.names == ["cached", "unchanged"])
        }
    }

    @Test(arguments: [false, true]) func `a client that reconnects after a change gets the newest state`(kills: Bool)
        throws
    {
        let blog = try CoherenceTests.Changing(["/users": CoherenceTests.list, "/users/1": Self.detail])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let before = try Follower(larder, "/users")
        #expect(before.wait(for: 1))
        let id = try #require(before.id)
        before.leave()
        _ = try larder.get("/users/1")
        #expect(try eventually { try larder.get("/users").text == Self.list("Ada L.") })
        blog["/users"] = Self.list("Ada L.")
        if kills {
            larder.kill()
            try larder.start()
        }
        let after = try Follower(larder, "/users", after: id)
        #expect(after.wait(for: 2))
        #expect(after.names == ["cached", "unchanged"])
        #expect(after.text == Self.list("Ada L."))
        #expect(after.id != id)
    }

    @Test func `a change of members that a document does not show gives no event`() throws {
        let list = #"[{"id":1,"login":"ada"}]"#
        let blog = try CoherenceTests.Changing(["/users": list, "/users/1": #"{"id":1,"login":"ada","name":"A"}"#])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let before = try Follower(larder, "/users")
        #expect(before.wait(for: 1))
        for name in ["B", "C"] {
            blog["/users/1"] = #"{"id":1,"login":"ada","name":"\#(name)"}"#
            _ = try larder.get("/users/1", ["Cache-Control": "no-cache"])
        }
        larder.kill()
        try larder.start()
        let after = try Follower(larder, "/users", after: before.id)
        #expect(after.wait(for: 2))
        #expect(after.names == ["unchanged", "unchanged"])
        #expect(before.names == ["fresh"])
    }
}
