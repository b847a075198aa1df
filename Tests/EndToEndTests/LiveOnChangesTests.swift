import Foundation
import TestSupport
import Testing

/// `Larder-Live: on`: each change of what a stream shows, whoever brings it, and when the upstream is asked for more.
@Suite(.scripts) struct LiveOnChangesTests: LiveFixtures {
    @Test func `a changed object gives an event in each stream that shows it, with the body of a GET`() throws {
        let blog = try CoherenceTests.Changing(["/users": CoherenceTests.list, "/users/1": Self.detail])
        let larder = try Larder(config: Configs.blog(blog.origin))
        // One after the other: who comes first has it from the upstream, the others are shown what is stored.
        let list = try Follower(larder, "/users")
        #expect(list.wait(for: 1))
        #expect(try larder.waitForObjects(2, of: "User"))
        let raw = try Follower(larder, "/users", ["Larder-View": "raw"])
        let mapped = try Follower(larder, "/users", ["Larder-View": "mapped"])
        #expect(raw.wait(for: 2) && mapped.wait(for: 2))
        #expect(mapped.text?.contains(#""name":"Ada""#) == true)
        _ = try larder.get("/users/1")
        #expect(list.wait(for: Self.list("Ada L.")))
        #expect(list.names == ["fresh", "changed"])
        let event = try #require(list.events.last)
        #expect(event.status == 200)
        #expect(event.headers["etag"]?.hasPrefix("\"larder-") == true)
        #expect(event.headers["cache-status"]?.contains("detail=composed") == true)
        #expect(event.id != list.events[0].id)
        #expect(mapped.wait(for: 3))
        #expect(mapped.text == (try larder.get("/users", ["Larder-View": "mapped"]).text))
        #expect(mapped.text?.contains(#""name":"Ada L.""#) == true)
        // What was received is what it was.
        #expect(raw.names == ["cached", "unchanged"])
    }

    @Test func `a write gives events in open streams of lists`() throws {
        let name = Monitor("Ada")
        let origin = try Origin { request in
            if request.method == "PATCH" {
                name.withLock { $0 = String(decoding: request.body, as: UTF8.self) }
                return .json(#"{"id":1,"login":"ada","name":"\#(name.current)"}"#)
            }
            let text = Self.list(name.current)
            return .json(request.path == "/users" ? text : #"{"id":1,"name":"\#(name.current)"}"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        let (list, user) = (try Follower(larder, "/users"), try Follower(larder, "/users/1"))
        #expect(list.wait(for: 1) && user.wait(for: 1))
        for number in 1...5 {
            #expect(try larder.request("PATCH", "/users/1", body: "Ada \(number)").status == 200)
            #expect(list.wait(for: Self.list("Ada \(number)")))
            // What the write has invalidated was asked for.
            #expect(user.wait(for: #"{"id":1,"name":"Ada \#(number)"}"#))
        }
        #expect(origin.count("/users") == 1)
        #expect(origin.count("/users/1", method: "GET") <= 11)
        #expect(!user.names.contains("error"))
    }

    @Test func `a stream does not show a response that a write has invalidated by pattern before it arrives`() throws {
        let gate = Gate()
        let text = Monitor(Self.old)
        let origin = try Origin { request in
            if request.method == "POST" {
                text.withLock { $0 = Self.new }
                return .empty(204)
            }
            let answer = OriginResponse.json(text.current, Fresh.hour)
            return text.current == Self.old ? answer.after(gate) : answer
        }
        let routes = "routes: [{ path: act, method: POST, invalidates: [\"items/*\"] }]"
        let larder = try Larder(config: Configs.plain(origin, upstream: [routes]))
        let follower = try Follower(larder, "/items/1?x=1")
        #expect(origin.waitForRequests(1))
        #expect(try larder.request("POST", "/act").status == 204)
        // The question that the write has overtaken is answered only now.
        gate.open()
        #expect(follower.wait(for: 1))
        #expect(follower.wait(for: Self.new))
        #expect(follower.names == ["fresh"])
    }

    @Test func `a response that another request fetches gives an event`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(origin)
        let follower = try Follower(larder, "/x")
        #expect(follower.wait(for: 1))
        origin.always(.json(Self.new, Fresh.hour))
        #expect(try larder.get("/x", ["Cache-Control": "no-cache"]).text == Self.new)
        #expect(follower.wait(for: Self.new))
        #expect(follower.names == ["fresh", "changed"])
        #expect(origin.count() == 2)
        // The same again is no event.
        _ = try larder.get("/x", ["Cache-Control": "no-cache"])
        _ = try larder.get("/x", ["Cache-Control": "no-cache"])
        origin.always(.json(Self.old, Fresh.hour))
        _ = try larder.get("/x", ["Cache-Control": "no-cache"])
        #expect(follower.wait(for: Self.old))
        #expect(follower.names == ["fresh", "changed", "changed"])
        #expect(Set(follower.events.map(\.id)).count == 3)
    }

    @Test func `a new response of a list gives an event, even if known newer values cannot be composed into it`() throws
    {
        let likes = Monitor(1)
        let origin = try Origin { request in
            // The list lags behind the detail: it does not know the author yet, nor is there one to take the shape from.
            request.path == "/posts"
                ? .json(#"[{"id":1,"title":"a","author":null,"n":\#(likes.current)}]"#, Fresh.hour)
                : .json(#"{"id":1,"title":"a","author":{"id":7,"login":"ada","name":"Ada"}}"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: ["lag: 30s"], top: Self.quick()))
        let list = try Follower(larder, "/posts")
        #expect(list.wait(for: 1))
        _ = try larder.get("/posts/1")
        #expect(origin.waitForRequests(3))
        likes.withLock { $0 = 2 }
        // The stream's own question may still be out, with the answer from before; who asks now shares it.
        #expect(try eventually { try larder.get("/posts").text.contains(#""n":2"#) })
        #expect(list.wait(for: try larder.get("/posts").text))
        #expect(try #require(list.text).contains(#""n":2"#))
    }

    @Test func `after a clean a stream fetches again, and an equal response gives no change`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(origin)
        let follower = try Follower(larder, "/x")
        #expect(follower.wait(for: 1))
        _ = try CleanTests.clean(larder, #"{"all":true}"#)
        #expect(origin.waitForRequests(2))
        origin.always(.json(Self.new, Fresh.hour))
        _ = try CleanTests.clean(larder, #"{"all":true}"#)
        #expect(follower.wait(for: Self.new))
        #expect(follower.names == ["fresh", "changed"])
    }

    @Test func `a response that becomes stale is fetched, and gives an event if it is new`() throws {
        let number = Monitor(0)
        let origin = try Origin { _ in
            .json(#"{"n":\#(number.next() / 3)}"#, ["Cache-Control": "max-age=1", "Age": "1"])
        }
        let larder = try Larder(config: Configs.plain(origin, top: Self.quick()))
        let follower = try Follower(larder, "/x")
        #expect(follower.wait(for: 3))
        #expect(follower.names.prefix(3) == ["fresh", "changed", "changed"])
        #expect(follower.events.prefix(3).map(\.text) == (0..<3).map { #"{"n":\#($0)}"# })
    }

    @Test(arguments: ["no-store", "max-age=0", "no-cache"])
    func `a response that may not be reused is fetched at the interval, never in a loop`(directive: String) throws {
        let origin = try Origin { _ in .json(Self.old, ["Cache-Control": directive]) }
        let larder = try Larder(config: Configs.plain(origin, top: Self.quick("1h")))
        let follower = try Follower(larder, "/x")
        #expect(follower.wait(for: 1))
        pause(.milliseconds(500))
        #expect(origin.count() == 1)
        let quick = try Larder(config: Configs.plain(origin, top: Self.quick()))
        let other = try Follower(quick, "/x")
        #expect(other.wait(for: 1))
        origin.always(.json(Self.new, ["Cache-Control": directive]))
        #expect(other.wait(for: Self.new))
        #expect(other.names == ["fresh", "changed"])
        #expect(follower.names == ["fresh"])
    }

    @Test func `a stream obeys an upstream's Retry-After`() throws {
        let origin = try Origin { _ in .json(Self.old, ["Cache-Control": "max-age=1", "Age": "1"]) }
        let larder = try Larder(config: Configs.plain(origin, top: Self.quick()))
        let follower = try Follower(larder, "/x")
        #expect(follower.wait(for: 1))
        origin.always(.json("{}", ["Retry-After": "3600"], status: 429))
        #expect(follower.wait(for: 2))
        #expect(follower.names == ["fresh", "error"])
        let count = origin.count()
        pause(.milliseconds(500))
        #expect(origin.count() == count)
        let second = try Follower(larder, "/x")
        #expect(second.wait(for: 2))
        #expect(second.names == ["cached", "error"])
        #expect(origin.count() == count)
    }

    @Test(arguments: [404, 410]) func `a deletion gives an event with the status 404 or 410`(status: Int) throws {
        let isGone = Monitor(false)
        let origin = try Origin { request in
            if request.method == "DELETE" {
                isGone.withLock { $0 = true }
                return .empty(204)
            }
            return isGone.current ? .json(#"{"message":"gone"}"#, status: status) : .json(Self.old, Fresh.hour)
        }
        let larder = try Larder(origin)
        let follower = try Follower(larder, "/x")
        #expect(follower.wait(for: 1))
        #expect(try larder.request("DELETE", "/x").status == 204)
        #expect(follower.wait(for: 2))
        #expect(follower.names == ["fresh", "changed"])
        #expect(follower.events.map(\.status) == [200, status])
        #expect(follower.text == #"{"message":"gone"}"#)
        isGone.withLock { $0 = false }
        #expect(try larder.request("PUT", "/x", body: "{}").status == 200)
        #expect(follower.wait(for: Self.old))
        #expect(follower.events.last?.status == 200)
    }
}
