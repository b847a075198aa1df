import Mapping
import DaemonTestSupport
import Testing

@testable import CachePolicy
@testable import Proxy
@testable import Settings

@Suite struct KeyRulesTests {
    @Test(
        arguments: [
            ("/a?b=2&a=1", "/a?a=1&b=2"), ("/a?a=2&b=1&a=1", "/a?a=2&a=1&b=1"), ("/a", "/a"), ("/a?", "/a?"),
            ("/a?b&a&", "/a?&a&b"), ("/a?z=1&utm_source=x&y=2&fbclid", "/a?y=2&z=1"), ("/a?utm_=x", "/a"),
            ("/a?UTM_x=1", "/a?UTM_x=1"), ("/a?%75tm%5Fx=1&q", "/a?q"), ("/a?q=utm_x", "/a?q=utm_x"),
            ("/a?fbclid2=1", "/a?fbclid2=1"),
        ]
    )
    func `parameters are sorted by name and ignored ones left out`(_ url: String, _ expected: String) throws {
        let rules = try #require(KeyRules(.init(sort: true, ignore: ["utm_*", "fbclid"])))
        #expect(text(rules.applied(to: bytes(url))) == expected)
        #expect(text(rules.applied(to: bytes(expected))) == expected)
    }

    @Test func `parameters keep their order if they are not to be sorted, and key rules without settings are none`()
        throws
    {
        let rules = try #require(KeyRules(.init(sort: false, ignore: ["x"])))
        #expect(text(rules.applied(to: bytes("/a?c=1&x&b=2&a=3"))) == "/a?c=1&b=2&a=3")
        #expect(KeyRules(.init()) == nil)
    }

    @Test(arguments: [
        ("*", "", true), ("*", "abc", true), ("a*", "a", true), ("a*", "ba", false), ("*a", "ba", true),
        ("a*c", "ac", true), ("a*c", "abc", true), ("a*a", "a", false), ("a*b*c", "axbyc", true),
        ("a*b*c", "acb", false), ("*b*", "abc", true), ("ab*b", "ab", false), ("a**b", "ab", true), ("a", "a", true),
        ("a", "A", false), ("a", "", false),
    ])
    func `a star in a parameter's name matches any text`(_ pattern: String, _ name: String, _ matches: Bool) {
        #expect(Glob(pattern).matches(bytes(name)) == matches)
    }

    @Test func `each route has its own key rules, and credentials stay redacted`() throws {
        let upstream = try ProxyFixture.upstream {
            $0.url = try UpstreamURL("https://api.example.com/v3")
            $0.routes = ["search", "items/{id}"].map { path in
                var route = Configuration.Route(declaration: RouteDeclaration(path: path))
                if path == "search" { route.overrides.key = .init(sort: true, ignore: ["page"]) }
                return route
            }
        }
        func key(_ path: String, _ query: String) throws -> String {
            text(
                upstream.keyURL(
                    ofTarget: try upstream.targetNormaliser.normalise(path: bytes(path), query: bytes(query))
                )
            )
        }
        #expect(try key("/search", "q=1&page=2&access_token=s&a=0") == "/v3/search?a=0&access_token=REDACTED&q=1")
        #expect(try key("/items/1", "q=1&page=2&a=0") == "/v3/items/1?q=1&page=2&a=0")
        #expect(upstream.hasKeyRules)
        #expect(try !ProxyFixture.upstream().hasKeyRules)
    }
}
