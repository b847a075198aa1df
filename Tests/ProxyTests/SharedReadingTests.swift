import DaemonTestSupport
import Settings
import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import Proxy

/// Who shares what where an upstream is read as a shared cache reads it.
@Suite struct SharedReadingTests {
    @Test func `requests with different credentials do not wait for each other's responses`() throws {
        let upstream = try ProxyFixture.upstream { $0.shared = true }
        let one = ProxyFixture.request("GET", "/x", [("Authorization", "a")], of: upstream)
        let same = ProxyFixture.request("GET", "/x", [("authorization", "a"), ("Accept", "x")], of: upstream)
        let other = ProxyFixture.request("GET", "/x", [("Authorization", "b")], of: upstream)
        let none = ProxyFixture.request("GET", "/x", [], of: upstream)
        #expect(one.mayShare(with: same) && none.mayShare(with: none))
        #expect(!one.mayShare(with: other) && !one.mayShare(with: none) && !none.mayShare(with: one))
    }

    @Test func `a response updates shared objects only if a shared cache might store it`() throws {
        let shared = try ProxyFixture.upstream { $0.shared = true }
        let own = try ProxyFixture.upstream()
        let authorization = [("Authorization", "a")]
        for (control, authorized, anonymous) in [
            ("", false, true), ("max-age=60", false, true), ("public", true, true), ("private", false, false),
            ("public, no-store", false, false),
        ] {
            let answer = fields([("Cache-Control", control)])
            #expect(
                ProxyFixture.request("PATCH", "/x", authorization, of: shared).mayShareObjects(answer) == authorized
            )
            #expect(ProxyFixture.request("PATCH", "/x", [], of: shared).mayShareObjects(answer) == anonymous)
            #expect(ProxyFixture.request("PATCH", "/x", authorization, of: own).mayShareObjects(answer))
        }
    }

    @Test func `in a shared cache a response that varies by Authorization is stored only without Authorization`() throws
    {
        let shared = try ProxyFixture.upstream { $0.shared = true }
        let answer = policy([("Cache-Control", "public, max-age=60"), ("Vary", "X-A, authorization")], shared: true)
        let authorized = fields([("Authorization", "a")])
        #expect(shared.selection(answer, isJSON: true, route: CacheOverrides(), request: authorized) == nil)
        let anonymous = try #require(shared.selection(answer, isJSON: true, route: CacheOverrides(), request: Fields()))
        #expect(anonymous.matches(Fields()) && !anonymous.matches(authorized))
        var route = CacheOverrides()
        route.vary.ignore = ["Authorization"]
        #expect(shared.selection(answer, isJSON: true, route: route, request: authorized)?.lines.map(\.name) == ["x-a"])
        let own = try ProxyFixture.upstream()
        #expect(
            own.selection(answer, isJSON: true, route: CacheOverrides(), request: authorized)?.lines.map(\.name) == [
                "x-a"
            ]
        )
    }
}
