import DaemonTestSupport
import Testing

@testable import CachePolicy
@testable import HTTPSemantics

extension URIReference {
    /// The reference as text.
    fileprivate var bytes: [UInt8] {
        var bytes: [UInt8] = []
        if let scheme { bytes += scheme + [0x3A] }
        if let authority { bytes += [0x2F, 0x2F] + authority }
        bytes += path
        if let query { bytes += [0x3F] + query }
        if let fragment { bytes += [0x23] + fragment }
        return bytes
    }
}

@Suite struct URIReferenceTests {
    /// The examples of RFC 3986 §5.4.
    @Test(arguments: [
        ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"), (";x", "http://a/b/c/;x"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"), ("../../", "http://a/"), ("../../g", "http://a/g"), ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
    ])
    func `references are resolved against their base`(_ reference: String, _ expected: String) {
        let resolved = URIReference(reference).resolved(against: URIReference("http://a/b/c/d;p?q"))
        #expect(text(resolved.bytes) == expected)
    }

    @Test(
        arguments: [
            ("https://API.example.com:443/x", "https://api.example.com"), ("http://a:80", "http://a"),
            ("http://a:", "http://a"),
            ("https://a:80", "https://a:80"), ("http://user:pass@a/x", "http://a"),
            ("http://[::1]:80/x", "http://[::1]"),
            ("/x", nil), ("//a", nil),
        ] as [(String, String?)]
    )
    func `origins compare in one spelling`(_ reference: String, _ origin: String?) {
        #expect(URIReference(reference).origin == origin)
    }
}

@Suite struct InvalidationTargetsTests {
    private func find(_ method: String, _ status: Int, _ lines: [(String, String)] = []) -> [String] {
        InvalidationTargets.find(
            method: method,
            url: "https://api.example.com/v3/a/b?q=1",
            status: status,
            fields: fields(lines)
        )
        .map { text($0) }
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "DELETE", "FOO"], [200, 201, 204, 302, 303])
    func `a successful unsafe request invalidates its target`(_ method: String, _ status: Int) {
        #expect(find(method, status) == ["/v3/a/b?q=1"])
    }

    @Test(arguments: [
        ("GET", 200), ("HEAD", 200), ("OPTIONS", 200), ("POST", 400), ("POST", 404), ("POST", 500), ("DELETE", 199),
    ])
    func `safe and failed requests invalidate nothing`(_ method: String, _ status: Int) {
        #expect(find(method, status, [("Location", "/x")]) == [])
    }

    @Test(arguments: [
        ("/x?y", ["/v3/a/b?q=1", "/x?y"]), ("c", ["/v3/a/b?q=1", "/v3/a/c"]),
        ("https://api.example.com", ["/v3/a/b?q=1", "/"]),
        ("HTTPS://API.example.com:443/x#f", ["/v3/a/b?q=1", "/x"]), ("//api.example.com/x", ["/v3/a/b?q=1", "/x"]),
        ("https://evil.example/x", ["/v3/a/b?q=1"]), ("http://api.example.com/x", ["/v3/a/b?q=1"]),
        ("https://api.example.com:8443/x", ["/v3/a/b?q=1"]), ("//evil.example/x", ["/v3/a/b?q=1"]),
        ("b?q=1", ["/v3/a/b?q=1"]),
    ])
    func `Location and Content-Location count within the origin`(_ location: String, _ expected: [String]) {
        #expect(find("POST", 201, [("Location", location)]) == expected)
        #expect(find("POST", 201, [("Content-Location", location)]) == expected)
    }
}

@Suite struct LinkRewriterTests {
    private static let plain = LinkRewriter(
        upstream: "https://api.github.com",
        authority: "localhost:8787",
        prefix: "/github"
    )
    private static let deep = LinkRewriter(
        upstream: "http://gitlab.test:8080/api/v4/",
        authority: "127.0.0.1:1",
        prefix: ""
    )

    @Test(
        arguments: [
            ("https://api.github.com/users/1?a=b#c", "http://localhost:8787/github/users/1?a=b#c"),
            ("https://api.github.com", "http://localhost:8787/github"),
            ("https://api.github.com?page=2", "http://localhost:8787/github?page=2"),
            ("HTTPS://API.GitHub.com:443/x", "http://localhost:8787/github/x"),
            ("//api.github.com/x", "http://localhost:8787/github/x"),
            ("/users", "/github/users"),
            ("http://api.github.com/x", nil),
            ("https://api.github.com.evil.test/x", nil),
            ("https://github.com/x", nil),
            ("users", nil), ("?page=2", nil), ("", nil),
        ] as [(String, String?)]
    )
    func `a reference below the upstream's base is rewritten to Larder's address`(
        _ reference: String,
        _ expected: String?
    ) {
        #expect(Self.plain.rewritten(reference: bytes(reference)).map { text($0) } == expected)
    }

    @Test(
        arguments: [
            ("http://gitlab.test:8080/api/v4/x", "http://127.0.0.1:1/x"),
            ("http://gitlab.test:8080/api/v4", "http://127.0.0.1:1"),
            ("http://gitlab.test:8080/api/v45", nil), ("http://gitlab.test/api/v4/x", nil), ("/api/v4/x", "/x"),
            ("/api/v4", "/"),
            ("/other", "http://gitlab.test:8080/other"),
        ] as [(String, String?)]
    )
    func `the upstream's base path is removed from references`(_ reference: String, _ expected: String?) {
        #expect(Self.deep.rewritten(reference: bytes(reference)).map { text($0) } == expected)
    }

    @Test func `Location and Link are rewritten, other fields not`() {
        var answer = fields([
            ("Location", "https://api.github.com/a"), ("X-Url", "https://api.github.com/a"),
            (
                "Link",
                "<https://api.github.com/a?page=2>; rel=\"next\", <https://other.test/>; title=\"<https://api.github.com/>\""
            ),
            ("link", "</b>; rel=prev"), ("Link", "<unclosed"),
        ])
        Self.plain.rewrite(&answer)
        #expect(
            answer
                == fields([
                    ("Location", "http://localhost:8787/github/a"), ("X-Url", "https://api.github.com/a"),
                    (
                        "Link",
                        "<http://localhost:8787/github/a?page=2>; rel=\"next\", <https://other.test/>; title=\"<https://api.github.com/>\""
                    ),
                    ("link", "</github/b>; rel=prev"), ("Link", "<unclosed"),
                ])
        )
    }

    @Test(arguments: [
        (#"{"url":"https://api.github.com/a"}"#, #"{"url":"http://localhost:8787/github/a"}"#),
        (#"["https://api.github.com"]"#, #"["http://localhost:8787/github"]"#),
        (
            #"["https://api.github.com{/id}", "https:\/\/api.github.com\/a"]"#,
            #"["http://localhost:8787/github{/id}", "http:\/\/localhost:8787\/github\/a"]"#
        ),
        (#"{"a" : "https://api.github.com:443?q" }"#, #"{"a" : "http://localhost:8787/github?q" }"#),
        (
            #"["https:\u002f\u002Fapi.github.com\u002fa"]"#,
            #"["http:\u002f\u002flocalhost:8787\u002fgithub\u002fa"]"#
        ),
        (#"{"next":"/a?page=2","html_url" : "\/a"}"#, #"{"next":"/github/a?page=2","html_url" : "\/github\/a"}"#),
        (
            #"{"_links":{"self":{"href":"/"},"prevPage":"\u002fa"}}"#,
            #"{"_links":{"self":{"href":"/github/"},"prevPage":"\u002fgithub\u002fa"}}"#
        ),
        (#"["HTTPS://Api.GitHub.com/A"]"#, #"["http://localhost:8787/github/A"]"#),
        (#"["a\"", "https://api.github.com/", 1"#, #"["a\"", "http://localhost:8787/github/", 1"#),
        (#""https://api.github.com/unfinished"#, #""http://localhost:8787/github/unfinished"#),
    ])
    func `URLs at the start of strings are rewritten`(_ body: String, _ expected: String) {
        #expect(Self.plain.rewritten(body: bytes(body)).map { text($0) } == expected)
    }

    @Test(arguments: [
        (#"{"next":"/api/v4/x?page=2","path":"/api/v4/x"}"#, #"{"next":"/x?page=2","path":"/api/v4/x"}"#),
        (#"{"next":"\/api\/v4\/x"}"#, #"{"next":"\/x"}"#),
        (#"{"self":"/api/v4","first":"/api/v4?p=1"}"#, #"{"self":"/","first":"/?p=1"}"#),
        (
            #"{"links":["/api/v4/x","/api/v45","/other","http:\/\/gitlab.test:8080\/api\/v4\/y"]}"#,
            #"{"links":["/x","/api/v45","/other","http:\/\/127.0.0.1:1\/y"]}"#
        ),
    ])
    func `paths below a base path are rewritten in members that are links`(_ body: String, _ expected: String) {
        #expect(Self.deep.rewritten(body: bytes(body)).map { text($0) } == expected)
    }

    @Test func `with rewrite_links each field that is a link by its name is rewritten`() {
        let all = LinkRewriter(
            upstream: "https://api.github.com",
            authority: "localhost:8787",
            prefix: "/github",
            rewritesAll: true
        )
        var answer = fields([
            ("Content-Location", "/a"), ("Next-Page", "https://api.github.com/a?page=2"), ("X-Next", "2"),
            ("X-Url", "https://other.test/a"), ("X-Path", "/a"),
            ("Access-Control-Allow-Origin", "https://api.github.com"),
        ])
        all.rewrite(&answer)
        #expect(
            answer
                == fields([
                    ("Content-Location", "/github/a"), ("Next-Page", "http://localhost:8787/github/a?page=2"),
                    ("X-Next", "2"), ("X-Url", "https://other.test/a"), ("X-Path", "/a"),
                    ("Access-Control-Allow-Origin", "https://api.github.com"),
                ])
        )
    }

    @Test(arguments: [
        ("s=1", "s=1"), ("s=1; Path=/; HttpOnly", "s=1; Path=/github; HttpOnly"),
        ("s=1; path=/a/", "s=1; Path=/github/a"),
        ("s=1; Domain=api.github.com; Secure; SameSite=Lax", "s=1; SameSite=Lax"),
        ("s=1; domain=.localhost;Secure;SameSite=None; Partitioned", "s=1; domain=.localhost"),
        ("__Secure-s=1; Secure; SameSite=None; Domain=x", "__Secure-s=1; Secure; SameSite=None"),
        ("s=1; Path", "s=1; Path"),
        (
            "s=\"a,b\"; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Secure",
            "s=\"a,b\"; Expires=Sun, 06 Nov 1994 08:49:37 GMT"
        ),
    ])
    func `a cookie fits the address that the client used`(_ cookie: String, _ expected: String) {
        var answer = fields([("Set-Cookie", cookie)])
        Self.plain.rewrite(&answer)
        #expect(answer == fields([("Set-Cookie", expected)]))
    }

    @Test(arguments: [
        ("s=1; Path=/api/v4/x", "s=1; Path=/x"), ("s=1; Path=/api", "s=1; Path=/"), ("s=1; Path=/", "s=1; Path=/"),
        ("s=1; Path=/other", "s=1; Path=/other"), ("s=1; Path=/api/v4/", "s=1; Path=/"),
    ])
    func `a cookie's path loses the base path`(_ cookie: String, _ expected: String) {
        var answer = fields([("Set-Cookie", cookie)])
        Self.deep.rewrite(&answer)
        #expect(answer == fields([("Set-Cookie", expected)]))
        let secure = LinkRewriter(upstream: "https://a.test", authority: "larder.internal", prefix: "", scheme: "https")
        var kept = fields([("Set-Cookie", "s=1; Secure; SameSite=None; Path=/")])
        secure.rewrite(&kept)
        #expect(kept == fields([("Set-Cookie", "s=1; Secure; SameSite=None; Path=/")]))
    }

    @Test(arguments: [
        "", "{}", #"{"https://api.github.com/a":1}"#, #"{"https://api.github.com/a" : 1}"#,
        #"["see https://api.github.com/a"]"#,
        #"["https://api.github.com.evil.test/"]"#, #"["https://api.github.co"]"#, "https://api.github.com/",
        #"["\"https://api.github.com/"]"#,
        #"["http://api.github.com/"]"#, #"{"url":"//api.github.com/"}"#,
        #"{"path":"/a","x":["/b"],"next":"a","self":7,"url":""}"#,
        #"["https:\u002fapi.github.com/"]"#, #"["https:\u012f\u002fapi.github.com/"]"#, #"["#, #"["\"#,
    ])
    func `a body keeps its bytes unless a JSON value in it is a URL of the upstream`(_ body: String) {
        #expect(Self.plain.rewritten(body: bytes(body)) == nil)
    }
}
