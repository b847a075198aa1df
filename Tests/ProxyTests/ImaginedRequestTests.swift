import HTTPSemantics
import Testing

@testable import Proxy
@testable import Settings

@Suite struct ImaginedRequestTests {
    private static func upstreams() throws -> [ProxiedUpstream] {
        let declared: [(String, String, String, [Address])] = [
            ("github", "https://api.github.com/v3", "/github", []), ("lab", "http://lab.example:8080", "/lab", []),
            ("own", "http://127.0.0.1:9000", "", [.tcp(host: "127.0.0.1", port: 8790)]),
        ]
        return try declared.map { upstream in
            var settings = Configuration.Upstream()
            (settings.name, settings.prefix, settings.listen) = (upstream.0, upstream.2, upstream.3)
            settings.url = try UpstreamURL(upstream.1)
            settings.hosts = upstream.0 == "lab" ? ["lab.internal"] : []
            return ProxiedUpstream(try CompiledUpstream(settings))
        }
    }

    private static let listen: [Address] = [.tcp(host: "10.0.0.1", port: 8787)]

    @Test(arguments: [
        ("/github/users?q=1", "github", "/github/users?q=1"), ("/lab", "lab", "/lab"), ("/lab?x", "lab", "/lab?x"),
        ("https://api.github.com/v3/users", "github", "/github/users"),
        ("https://api.github.com/v3", "github", "/github"),
        ("HTTPS://API.GITHUB.COM:443/v3?q", "github", "/github?q"), ("http://lab.example:8080", "lab", "/lab/"),
        ("http://lab.example:8080/a//b", "lab", "/lab/a//b"), ("http://127.0.0.1:9000/x", "own", "/x"),
        ("http://localhost:8790/x", "own", "/x"), ("http://127.0.0.1:8787/lab/x", "lab", "/lab/x"),
        ("http://[::1]:40000/lab/x", "lab", "/lab/x"), ("http://10.0.0.1:8787/github/x", "github", "/github/x"),
        ("http://lab.internal/lab/x", "lab", "/lab/x"),
    ])
    func `paths, Larder's URLs and upstreams' URLs are understood`(_ text: String, _ name: String, _ target: String)
        throws
    {
        let asked = try NamedURL(text, among: try Self.upstreams(), at: Self.listen)
        #expect(asked.upstream.name == name)
        #expect(asked.target == target)
    }

    @Test(arguments: [
        "", "users", "https://api.github.com/", "https://api.github.com/v33", "http://",
        "http://api.github.com/v3", "https://api.github.com:444/v3", "http://evil.example/github",
        "ftp://lab.example/x",
        "http://user@lab.example:8080/x", "/lab/a#b", "/lab/a b", "/lab/\r\nX: y", "/lab/\u{0}",
        "http://10.0.0.1:x/lab",
    ])
    func `a URL of no upstream is refused with a reason`(_ text: String) throws {
        let upstreams = try Self.upstreams()
        #expect(throws: ImaginedRequestError.self) {
            try NamedURL(text, among: upstreams, at: Self.listen)
        }
    }

    @Test(
        arguments: [
            // By the client's path, by the upstream's, and by neither's prefix.
            ("/github/v3/users", "github", "/github/v3/users", .client),
            ("/v3/users?q", "github", "/github/users?q", .upstream),
            ("/v3", "github", "/github", .upstream), ("/lab/v3/x", "lab", "/lab/v3/x", .client),
            ("/", "lab", "/lab/", .upstream), ("/projects/1", "lab", "/lab/projects/1", .upstream),
            ("/githubx", "lab", "/lab/githubx", .upstream), ("http://lab.example:8080/a", "lab", "/lab/a", .url),
        ] as [(String, String, String, NamedURL.Reading)]
    )
    func `a path is the client's or the upstream's, as the longer of prefix and base path says`(
        _ text: String,
        _ name: String,
        _ target: String,
        _ reading: NamedURL.Reading
    ) throws {
        let upstreams = try Self.upstreams().filter { $0.name != "own" }
        let asked = try NamedURL(text, among: upstreams, at: Self.listen)
        #expect(asked.upstream.name == name)
        #expect(asked.target == target)
        #expect(asked.reading == reading)
    }

    @Test(arguments: [
        ("https://a.example/v2", "", "/v2/orders?x", "/orders?x"), ("https://a.example/v2", "", "/v2?x", "/?x"),
        ("https://a.example/v2", "", "/v2", "/"), ("https://a.example", "/shop", "/orders", "/shop/orders"),
        ("https://a.example", "/shop", "/?x", "/shop/?x"), ("https://a.example/v2", "/v2", "/v2/x", "/v2/x"),
        ("https://a.example/v2", "/shop", "/v2/orders", "/shop/orders"), ("https://a.example", "", "/x", "/x"),
    ])
    func `an upstream's URL is translated back into the client's path`(
        _ url: String,
        _ prefix: String,
        _ sent: String,
        _ client: String
    ) throws {
        let upstream = try ProxyFixture.upstream { settings in
            (settings.url, settings.prefix) = (try UpstreamURL(url), prefix)
        }
        #expect(upstream.clientURL(ofURL: sent) == client)
    }

    @Test func `an ambiguous path needs the upstream's name`() throws {
        let two = try ["a", "b"].map { name in
            var settings = Configuration.Upstream()
            (settings.name, settings.url) = (name, try UpstreamURL("https://api.example.com"))
            return ProxiedUpstream(try CompiledUpstream(settings))
        }
        func place(_ text: String, _ upstreams: [ProxiedUpstream], named name: String? = nil) throws -> ProxiedUpstream
        {
            try NamedURL(text, among: upstreams, at: [], upstream: name).upstream
        }
        #expect(throws: ImaginedRequestError.self) { try place("/x", two) }
        #expect(throws: ImaginedRequestError.self) { try place("https://api.example.com/x", two) }
        #expect(try place("/x", two, named: "b").name == "b")
        #expect(throws: ImaginedRequestError.self) { try place("/x", two, named: "c") }
    }
}
