import Testing

@testable import HTTPSemantics
@testable import HTTPServer
@testable import Proxy
@testable import Settings

/// Which upstream a path belongs to, at an address with several.
@Suite struct SiteTests {
    private static func site(_ prefixes: [String]) throws -> Site {
        let upstreams = try prefixes.map { prefix in try ProxyFixture.upstream { $0.prefix = prefix } }
        let address = try Address("127.0.0.1:8787")
        return Site(Entrance(address: address, configured: address), upstreams: upstreams)
    }

    private static func prefix(_ path: String, in site: Site) -> String? {
        Array(path.utf8).withUnsafeBytes { site.position(for: $0) }.map { site.upstreams[$0].settings.prefix }
    }

    @Test(arguments: [
        ("/a", "/a"), ("/a/", "/a"), ("/a/x", "/a"), ("/a-b", "/a-b"), ("/a-b/c", "/a-b"), ("/ab", "/ab"),
        ("/a.b/c/d", "/a.b/c"),
        ("/a/b", "/a/b"), ("/a/b/c/d", "/a/b/c"), ("/a/bc", "/a"), ("/a.b", nil), ("/", nil), ("/z", nil), ("/a!", nil),
    ])
    func `the longest prefix of a path decides`(path: String, prefix: String?) throws {
        let site = try Self.site(["/a-b", "/a", "/ab", "/a.b/c", "/a/b", "/a/b/c", "/b"])
        #expect(Self.prefix(path, in: site) == prefix)
    }

    @Test func `an upstream without a prefix gets the requests that match no other`() throws {
        let site = try Self.site(["/a", "", "/b/c"])
        #expect(Self.prefix("/a/x", in: site) == "/a")
        #expect(Self.prefix("/b", in: site)?.isEmpty == true)
        #expect(Self.prefix("/", in: site)?.isEmpty == true)
    }

    @Test func `each of four thousand upstreams is found by its prefix`() throws {
        let prefixes = (0..<4_000).map { "/p\($0)" }
        let site = try Self.site(prefixes)
        for prefix in prefixes { #expect(Self.prefix("\(prefix)/x", in: site) == prefix) }
        #expect(Self.prefix("/p4000/x", in: site) == nil)
    }
}
