import Foundation
import TestSupport
import Testing

/// Which spellings of a URL have one response (RFC 3986 §6.2.2, and `key:` of a route).
@Suite(.scripts) struct KeyTests {
    static let routes = [
        "routes:", "  - { path: search, key: { sort: true, ignore: [\"utm_*\", fbclid] } }",
        "  - { path: plain }",
    ]

    static func counting() throws -> Origin {
        let count = Monitor(0)
        return try Origin { .json("{\"n\":\(count.next()),\"target\":\"\($0.target)\"}", Fresh.hour) }
    }

    @Test func `equivalent percent-escapes give one cache key, others do not`() throws {
        let origin = try Self.counting()
        let larder = try Larder(origin)
        _ = try larder.get("/%7euser/a%2fb?q=%41&r=%26")
        for target in ["/~user/a%2Fb?q=A&r=%26", "/%7Euser/%61%2fb?q=%41&r=%26"] {
            #expect(try larder.get(target).isHit, "\(target)")
        }
        for target in ["/~user/a/b?q=A&r=%26", "/~user/a%2Fb?q=A&r=&", "/~user/a%2Fb?r=%26&q=A"] {
            #expect(try !larder.get(target).isHit, "\(target)")
        }
        #expect(origin.requests[0].target == "/%7euser/a%2fb?q=%41&r=%26")
    }

    @Test func `a route takes parameters in any order and ignores those it names, also after a restart`() throws {
        let origin = try Self.counting()
        let larder = try Larder(config: Configs.plain(origin, top: Self.routes))
        let first = try larder.get("/search?b=2&utm_source=mail&a=1")
        // The first who asks is asked for as he spelled it.
        #expect(origin.requests[0].target == "/search?b=2&utm_source=mail&a=1")
        for target in ["/search?a=1&b=2", "/search?fbclid=x&b=2&a=1", "/search?utm_=&a=1&utm_x=y&b=2"] {
            for _ in 0..<2 {
                let answer = try larder.get(target)
                #expect(answer.isHit && answer.text == first.text, "\(target)")
            }
        }
        #expect(try !larder.get("/search?a=1&b=3").isHit)
        #expect(try !larder.get("/plain?b=2&a=1").isHit)
        #expect(try !larder.get("/plain?a=1&b=2").isHit)
        #expect(try larder.waitForDocuments(4))
        try larder.restart()
        #expect(try larder.get("/search?utm_medium=y&a=1&b=2").isHit)
    }

    private static let byQuery = """
          - { path: items, query: { state: open }, fresh: 1h, key: { sort: true, ignore: ["*"] } }
          - { path: items, query: { state: "*" }, key: { ignore: [b] } }
          - { path: items }
          - { path: "items/{id}.json", key: { ignore: [a] } }
        """

    @Test func `a rule with query: has its own key rules, and the parameters that it requires always count`() throws {
        let origin = try Self.counting()
        let larder = try Larder(config: Configs.plain(origin, top: ["routes:", Self.byQuery]))
        for (first, same, others) in [
            ("/items?b=2&state=open&a=1", ["/items?state=open", "/items?c=3&state=open"], ["/items?state=all"]),
            ("/items?state=none&b=2", ["/items?b=3&state=none", "/items?state=none"], ["/items?state=none&a=1"]),
            ("/items?b=2", ["/items?b=2"], ["/items?b=3", "/items"]),
            ("/items/7.json?a=1", ["/items/7.json"], ["/items/7?a=1", "/items/7"]),
        ] {
            _ = try larder.get(first)
            for target in same { #expect(try larder.get(target).isHit, "\(target)") }
            for target in others { #expect(try !larder.get(target).isHit, "\(target)") }
        }
        let explained = try larder.command("explain", "/items?b=2&state=open").output
        #expect(explained.contains("/items?state=open"), "\(explained)")
        #expect(
            explained.split(separator: "\n").contains { $0.hasPrefix("  route") && $0.hasSuffix(" items") },
            "\(explained)"
        )
    }

    @Test func `larder key and larder route show the rule with query: that applies`() throws {
        let config = """
            upstreams: { api: { url: "http://api.example" } }
            routes:
            \(Self.byQuery)
            """
        let (code, output, errors) = try key("/items?b=2&state=open", config: config)
        #expect(code == 0, "\(errors)")
        #expect(output.contains("key        /items?state=open\n"), "\(output)")
        #expect(output.contains(#"route      "items" query: { state: open }  key: parameters sorted"#), "\(output)")
        let plain = try key("/items", config: config).1
        #expect(plain.contains("key        /items\n") && plain.contains(#"route      "items""#), "\(plain)")
        let none = try key("/others", config: config).1
        #expect(none.contains("route      none"), "\(none)")
    }

    @Test func `larder key and larder route say of every request how it is served`() throws {
        let origin = try Self.counting()
        let larder = try Larder(config: Configs.plain(origin, top: ["routes:", Self.byQuery]))
        let config = larder.folder.file("larder.yaml")
        func said(_ command: [String]) throws -> String {
            let process = try TestProcess(
                Larder.binary,
                command + ["--config", config],
                environment: Larder.environment
            )
            process.waitForEnd()
            return process.output
        }
        let queries = ["", "?state=open", "?state=none", "?b=1", "?b=2&state=open&a=1", "?a=1&state=none&b=2", "?a=1"]
        let targets =
            queries.map { "/items\($0)" } + queries.map { "/items/7.json\($0)" } + ["/items/7?a=1", "/items/7"]
        // By the key that is said, the response that the first of its requests was served.
        var served: [String: String] = [:]
        for target in targets {
            let key = try #require(try said(["key", target]).firstMatch(of: #/key +(\S+)/#)).1
            let answer = try larder.get(target)
            #expect(answer.isHit == (served[String(key)] != nil), "\(target)")
            #expect(answer.text == served[String(key), default: answer.text], "\(target)")
            served[String(key)] = answer.text
            // What `larder route` says to be the rule has the key rules that `larder key` shows.
            let demand = try said(["route", "GET", target]).firstMatch(of: #/\nroute +(.+)/#)?.1
            let rule = try said(["key", target]).firstMatch(of: #/\nroute +(.+?)(  key:.*)?\n/#)?.1
            #expect(demand == rule || demand?.hasPrefix("none") == true && rule == "none", "\(target)")
        }
        #expect(served.count == origin.count())
    }

    @Test func `a write invalidates all spellings of its path`() throws {
        let origin = try Origin { $0.method == "GET" ? .json("{}", Fresh.hour) : .empty(204) }
        let larder = try Larder(config: Configs.plain(origin, top: Self.routes))
        _ = try larder.get("/search?b=2&a=1")
        _ = try larder.get("/%7Ex")
        _ = try larder.request("PUT", "/search", body: "{}")
        _ = try larder.request("PUT", "/~x", body: "{}")
        #expect(try !larder.get("/search?a=1&b=2").isHit)
        #expect(try !larder.get("/~x").isHit)
    }

    @Test func `a write invalidates its path with any query, even a malformed one`() throws {
        let origin = try Origin { $0.method == "GET" ? .json("{}", Fresh.hour) : .empty(204) }
        let larder = try Larder(origin)
        let targets = ["/%61bc?q=100%", "/%7eu?%zz=%41", "/a%2fb?%"]
        for target in targets {
            _ = try larder.get(target)
            #expect(try larder.get(target).isHit, "\(target)")
        }
        for path in ["/abc", "/~u", "/a%2Fb"] { _ = try larder.request("PUT", path, body: "{}") }
        for target in targets { #expect(try !larder.get(target).isHit, "\(target)") }
    }

    // MARK: The command

    private func key(_ arguments: String..., config: String) throws -> (Int32?, String, String) {
        let folder = TemporaryFolder()
        let path = try folder.write(config, to: "larder.yaml")
        let process = try TestProcess(
            Larder.binary,
            ["key", "--config", path] + arguments,
            environment: Larder.environment
        )
        guard case .exited(let code) = process.waitForEnd() else { return (nil, process.output, process.errors) }
        return (code, process.output, process.errors)
    }

    private static let config = """
        upstreams:
          github: { url: "https://api.github.com/v3", prefix: /github }
          other: { url: "http://other.example", prefix: /other }
        routes:
          - { path: "search/**", key: { sort: true, ignore: ["utm_*"] } }
        """

    @Test(arguments: [
        "/github/search/issues?q=b&utm_x=1&a=%7e&access_token=secret",
        "https://api.github.com/v3/search/issues?q=b&utm_x=1&a=%7e&access_token=secret",
        "https://API.github.com:443/v3/search/issues?q=b&utm_x=1&a=%7e&access_token=secret",
        "http://localhost:8787/github/search/issues?q=b&utm_x=1&a=%7e&access_token=secret",
    ])
    func `larder key shows the cache key without a daemon`(_ url: String) throws {
        let (code, output, errors) = try key(
            url,
            "-H",
            "Accept-Language: de",
            "-H",
            "Authorization: Bearer hush",
            "--json",
            config: Self.config
        )
        #expect(code == 0, "\(errors)")
        let json = try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
        #expect(json["upstream"] as? String == "github")
        #expect(json["key"] as? String == "/v3/search/issues?a=~&access_token=REDACTED&q=b")
        #expect(
            json["sent"] as? String
                == "https://api.github.com/v3/search/issues?q=b&utm_x=1&a=%7e&access_token=REDACTED"
        )
        #expect((json["context"] as? [String: [String]])?["given"] == ["accept-language=de"])
        #expect((json["principal"] as? [String: [String]])?["given"] == ["authorization", "?access_token"])
        #expect(((json["rules"] as? [[String: Any]])?.first)?["path"] as? String == "search/**")
        #expect(!output.contains("hush") && !output.contains("secret"))
        let text = try key(url, config: Self.config).1
        #expect(text.contains("key        /v3/search/issues?a=~&access_token=REDACTED&q=b\n"))
        #expect(text.contains(#"route      "search/**"  key: parameters sorted"#))
        #expect(!text.contains("secret"))
    }

    @Test(arguments: [
        ("users", "is not a URL"), ("ftp://x/y", "not supported"),
        ("https://elsewhere.example/x", "neither Larder nor"),
        ("/github/a#b", "fragment"), ("/github/a b", "0x20"),
        ("/github/../../a", "400"), ("http://user:pw@localhost/github", "is not a host"),
        ("/github/\(String(repeating: "x", count: 70_000))", "longer than"),
        ("/github/\(String(repeating: "x", count: 20_000))", "414"), ("/github/a%zz", "400"),
    ])
    func `larder key refuses an invalid URL, or one of no upstream, with the reason`(_ url: String, _ complaint: String)
        throws
    {
        let (code, output, errors) = try key("--", url, config: Self.config)
        #expect(code == 1)
        #expect(output.isEmpty && errors.contains(complaint), "\(errors.prefix(300))")
    }

    @Test func `larder key reports a mistake in the config as check does`() throws {
        let (code, _, errors) = try key("/x", config: Self.config.replacing("sort: true", with: "sort: maybe"))
        #expect(code == 78)
        #expect(errors.contains("larder.yaml:5:"))
    }
}
