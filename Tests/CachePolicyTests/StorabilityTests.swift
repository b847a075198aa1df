import DaemonTestSupport
import Testing

@testable import CachePolicy

/// RFC 9111 §3: which answers may be stored, by a private cache and by a shared one.
@Suite struct StorabilityTests {
    private typealias Lines = [(String, String)]
    private static let get = request()
    private static let authorized = request("GET", [("Authorization", "x")])

    @Test(
        arguments: [
            (200, [], .yes),
            (200, [("Cache-Control", "max-age=60")], .yes),
            (200, [("Cache-Control", "no-cache")], .yes),
            (200, [("Cache-Control", "private")], .yes),
            (200, [("Cache-Control", "no-store")], .no(.noStore)),
            (200, [("Cache-Control", "max-age=60"), ("Cache-Control", "NO-STORE=1")], .no(.noStore)),
            (200, [("Cache-Control", "no-store, must-understand, max-age=60")], .yes),
            (599, [("Cache-Control", "no-store, must-understand, max-age=60")], .no(.notUnderstood)),
            (599, [("Cache-Control", "must-understand, max-age=60")], .no(.notUnderstood)),
            (599, [("Cache-Control", "max-age=60")], .yes),
            (600, [("Cache-Control", "max-age=60")], .no(.notUnderstood)),
            (200, [("Vary", "a, *"), ("Cache-Control", "max-age=60")], .no(.varyAny)),
            (202, [("Cache-Control", "max-age=60")], .no(.momentaryStatus)),
            (206, [("Cache-Control", "max-age=60")], .no(.partial)),
            (304, [("Cache-Control", "max-age=60")], .no(.notModified)),
            (103, [("Cache-Control", "max-age=60")], .no(.interim)),
            (416, [("Cache-Control", "max-age=60")], .yes),
            (412, [("Cache-Control", "max-age=60")], .yes),
            (302, [], .no(.notExplicit)),
            (302, [("Cache-Control", "max-age=60")], .yes),
            (302, [("Expires", "0")], .yes),
            (302, [("Cache-Control", "public")], .yes),
            (302, [("Cache-Control", "private")], .yes),
            (302, [("Cache-Control", "s-maxage=60")], .no(.notExplicit)),
            (500, [], .no(.notExplicit)),
            (503, [("Cache-Control", "max-age=60")], .yes),
            (404, [], .yes),
            (403, [], .no(.notExplicit)),
        ] as [(Int, [(String, String)], Storability)]
    )
    func `a private cache stores what RFC 9111 §3 lets it`(
        _ status: Int,
        _ lines: [(String, String)],
        _ expected: Storability
    ) {
        #expect(policy(lines, status: status).storability == expected)
        // A private cache holds answers for one principal, so a credential changes nothing (§3.5).
        #expect(policy(lines, status: status, request: Self.authorized).storability == expected)
    }

    @Test(arguments: [203, 204, 300, 301, 308, 404, 405, 410, 414, 501])
    func `some statuses may be stored without explicit freshness`(_ status: Int) {
        #expect(policy([], status: status).storability == .yes)
    }

    @Test(
        arguments: [
            (false, "max-age=60", .yes),
            (false, "private", .no(.isPrivate)),
            (false, "private=\"x\", max-age=60", .yes),
            (false, "private=\"\", max-age=60", .no(.isPrivate)),
            (false, "s-maxage=60", .yes),
            (true, "max-age=60", .no(.authorization)),
            (true, "max-age=60, public", .yes),
            (true, "max-age=60, must-revalidate", .yes),
            (true, "s-maxage=60", .yes),
            (true, "max-age=60, proxy-revalidate", .no(.authorization)),
            (true, "max-age=60, private", .no(.isPrivate)),
        ] as [(Bool, String, Storability)]
    )
    func `a shared cache obeys private and Authorization`(
        _ isAuthorized: Bool,
        _ value: String,
        _ expected: Storability
    ) {
        let request = isAuthorized ? Self.authorized : Self.get
        #expect(policy([("Cache-Control", value)], request: request, shared: true).storability == expected)
    }

    @Test func `fields named by private are kept out of a shared store only`() {
        let lines = [("Cache-Control", "private=\"X-A\", no-cache=\"X-B\"")]
        #expect(policy(lines, shared: true).fieldsNotStored == [bytes("x-a")])
        #expect(policy(lines).fieldsNotStored.isEmpty)
        #expect(policy(lines).fieldsNotReused == [bytes("x-b")])
    }

    @Test(
        arguments: [
            ("HEAD", [], .yes),
            ("POST", [("Cache-Control", "max-age=60")], .no(.method)),
            ("POST", [("Content-Location", "/x")], .no(.method)),
            ("POST", [("Cache-Control", "max-age=60"), ("Content-Location", "/x")], .yes),
            ("PUT", [("Cache-Control", "max-age=60"), ("Content-Location", "/x")], .no(.method)),
            ("get", [("Cache-Control", "max-age=60")], .no(.method)),
            ("FOO", [("Cache-Control", "max-age=60")], .no(.method)),
            ("OPTIONS", [("Cache-Control", "max-age=60")], .no(.method)),
        ] as [(String, [(String, String)], Storability)]
    )
    func `methods other than GET and HEAD are not stored`(
        _ method: String,
        _ lines: [(String, String)],
        _ expected: Storability
    ) {
        #expect(policy(lines, request: request(method)).storability == expected)
    }

    @Test func `a request's no-store is obeyed, even if a route forces storing`() {
        let request = request("GET", [("Cache-Control", "no-store")])
        var route = CacheOverrides()
        #expect(policy([], request: request).storability == .no(.requestNoStore))
        route.cache = .force
        #expect(policy([], request: request, route: route).storability == .no(.requestNoStore))
    }

    @Test func `a route can forbid or force storing`() {
        var never = CacheOverrides()
        never.cache = .never
        #expect(policy([("Cache-Control", "max-age=60")], route: never).storability == .no(.neverByRoute))
        var force = CacheOverrides()
        force.cache = .force
        #expect(
            policy([("Cache-Control", "no-store, private"), ("Vary", "*")], shared: true, route: force).storability
                == .yes
        )
        #expect(policy([], status: 202, route: force).storability == .no(.momentaryStatus))
        var fresh = CacheOverrides()
        fresh.fresh = .seconds(60)
        #expect(policy([], status: 302, route: fresh).storability == .yes)
        #expect(policy([("Cache-Control", "no-store")], route: fresh).storability == .no(.noStore))
    }
}
