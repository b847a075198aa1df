import DaemonTestSupport
import HTTPSemantics
import Testing

@testable import Proxy

@Suite struct AuthorityTests {
    @Test(
        arguments: [
            ("localhost", "localhost", nil), ("LOCALHOST:8787", "localhost", 8787), ("a.b.:80", "a.b", 80),
            ("[::1]", "::1", nil),
            ("[::1]:8787", "::1", 8787), ("127.0.0.1:1", "127.0.0.1", 1), ("a:", "a", nil), ("my_host", "my_host", nil),
        ] as [(String, String, UInt16?)]
    )
    func `hosts and ports are read`(_ value: String, _ host: String, _ port: UInt16?) {
        let authority = Authority(value)
        #expect(authority?.host == host)
        #expect(authority?.port == port)
    }

    @Test(arguments: [
        "", ":80", "a b", "a:b", "a:65536", "a:-1", "a:1:2", "u@a", "a/b", "[::1", "[::1]x", "[]", "::1", "a,b",
        "a%20b", ".",
    ])
    func `a malformed host or port is refused`(_ value: String) {
        #expect(Authority(value) == nil)
    }

    @Test(arguments: [
        ("localhost", true), ("app.localhost", true), ("127.0.0.1", true), ("127.1.2.3", true), ("[::1]", true),
        ("localhost.evil.test", false),
        ("127.0.0.1.evil.test", false), ("10.0.0.1", false), ("[::2]", false), ("notlocalhost", false),
    ])
    func `loopback is known by name and by number`(_ value: String, _ isLoopback: Bool) {
        #expect(Authority(value)?.isLoopback == isLoopback)
    }
}

@Suite struct GuardTests {
    private static let guarding = Guard(
        listeners: [.tcp(host: "127.0.0.1", port: 8787)],
        hosts: ["larder.test", "fixed.test:9000", "https://tls.test", "https://tls.test:8443"],
        cors: CORS(origins: ["http://localhost:3000", "https://app.test/"])
    )

    private func check(
        _ guarding: Guard = guarding,
        host: String?,
        origin: String? = nil,
        site: String? = nil,
        referer: String? = nil,
        agent: String? = nil,
        isOptions: Bool = false,
        asksForMethod: Bool = false,
        hasOwnField: Bool = false
    ) -> Guard.Verdict {
        func with<Result>(_ value: String?, _ body: (UnsafeRawBufferPointer?) -> Result) -> Result {
            guard let value else { return body(nil) }
            return bytes(value).withUnsafeBytes { body($0) }
        }
        return with(host) { host in
            with(origin) { origin in
                with(site) { site in
                    with(referer) { referer in
                        with(agent) { agent in
                            guarding.check(
                                Guard.Facts(
                                    authority: host,
                                    origin: origin,
                                    secFetchSite: site,
                                    referer: referer,
                                    isOptions: isOptions,
                                    asksForMethod: asksForMethod,
                                    userAgent: agent,
                                    hasLanguage: true,
                                    hasOwnField: hasOwnField
                                )
                            )
                        }
                    }
                }
            }
        }
    }

    @Test(arguments: [
        "127.0.0.1:8787", "localhost:8787", "LocalHost:8787", "[::1]:8787", "app.localhost:8787", "larder.test",
        "larder.test:8787",
        "LARDER.test.:8787", "fixed.test:9000", "127.0.0.2:8787", "localhost", "127.0.0.1", "[::1]", "tls.test",
        "tls.test:443", "tls.test:8443",
    ])
    func `Host may be one of the listener's own names`(_ host: String) {
        #expect(check(host: host) == .allowed)
    }

    @Test(arguments: [
        "localhost:9999", "127.0.0.1:1", "localhost:8788", "evil.test", "evil.test:8787",
        "localhost.evil.test:8787", "fixed.test",
        "fixed.test:8787", "larder.test:1234", "10.0.0.1:8787", "localhost:8787@evil.test", "a b",
        "localhost:8787, evil.test", "tls.test:8787", "tls.test:80",
    ])
    func `Host with another name or port is refused`(_ host: String) {
        #expect(check(host: host) == .refused(.misdirected(authority: host)))
    }

    @Test func `Host may leave out port 80`() {
        let guarding = Guard(listeners: [.tcp(host: "127.0.0.1", port: 80)])
        #expect(check(guarding, host: "localhost") == .allowed)
        #expect(check(guarding, host: "localhost:80") == .allowed)
        #expect(check(guarding, host: "localhost:8787") != .allowed)
    }

    @Test func `a wildcard address takes every address but no other name`() {
        let guarding = Guard(listeners: [.tcp(host: "0.0.0.0", port: 8787)])
        #expect(check(guarding, host: "192.168.1.5:8787") == .allowed)
        #expect(check(guarding, host: "[fe80::1]:8787") == .allowed)
        #expect(check(guarding, host: "192.168.1.5:8788") != .allowed)
        #expect(check(guarding, host: "rebound.test:8787") != .allowed)
    }

    @Test func `a Unix socket takes loopback names with any port`() {
        let guarding = Guard(listeners: [.unix(path: "larder.sock")], hosts: ["larder.test"])
        #expect(check(guarding, host: "localhost") == .allowed)
        #expect(check(guarding, host: "localhost:5") == .allowed)
        #expect(check(guarding, host: "larder.test") == .allowed)
        #expect(check(guarding, host: "") == .allowed)
        #expect(check(guarding, host: "evil.test") != .allowed)
    }

    @Test func `an HTTP/1.0 request needs no Host`() {
        #expect(check(host: nil) == .allowed)
    }

    @Test(
        arguments: [
            // A plain client, a typed-in URL, a page of our own.
            (nil, nil, .allowed),
            (nil, "none", .allowed),
            (nil, "same-origin", .allowed),
            ("http://localhost:8787", "same-origin", .allowed),
            ("http://localhost:8787", nil, .allowed),
            ("HTTP://LOCALHOST:8787", nil, .allowed),
            // Simple cross-site GETs: <img>, <script>, a link, a form.
            (nil, "cross-site", .refused(.foreignSite("cross-site"))),
            (nil, "same-site", .refused(.foreignSite("same-site"))),
            (nil, "", .refused(.foreignSite(""))),
            (nil, "none, cross-site", .refused(.foreignSite("none, cross-site"))),
            ("https://evil.test", "cross-site", .refused(.foreignOrigin("https://evil.test"))),
            ("https://evil.test", "same-origin", .refused(.foreignOrigin("https://evil.test"))),
            ("https://evil.test", nil, .refused(.foreignOrigin("https://evil.test"))),
            ("null", "cross-site", .refused(.foreignOrigin("null"))),
            ("null", nil, .refused(.foreignOrigin("null"))),
            ("", nil, .refused(.foreignOrigin(""))),
            // Another port of this machine is another origin.
            ("http://localhost:3001", "same-site", .refused(.foreignOrigin("http://localhost:3001"))),
            ("http://localhost", "same-site", .refused(.foreignOrigin("http://localhost"))),
            ("http://127.0.0.1:8787", "same-site", .refused(.foreignOrigin("http://127.0.0.1:8787"))),
            ("http://localhost:8787/path", nil, .refused(.foreignOrigin("http://localhost:8787/path"))),
            (
                "http://localhost:8787, https://evil.test", nil,
                .refused(.foreignOrigin("http://localhost:8787, https://evil.test"))
            ),
            ("http://localhost:8787", "cross-site", .refused(.foreignSite("cross-site"))),
            // Named in the configuration.
            ("http://localhost:3000", "same-site", .allowedOrigin(bytes("http://localhost:3000"))),
            ("https://app.test", "cross-site", .allowedOrigin(bytes("https://app.test"))),
            ("http://app.test", "cross-site", .refused(.foreignOrigin("http://app.test"))),
            ("https://app.test:444", "cross-site", .refused(.foreignOrigin("https://app.test:444"))),
            ("http://localhost:3000, null", nil, .refused(.foreignOrigin("http://localhost:3000, null"))),
        ] as [(String?, String?, Guard.Verdict)]
    )
    func `a browser's request is accepted if its page's origin is allowed`(
        _ origin: String?,
        _ site: String?,
        _ expected: Guard.Verdict
    ) {
        #expect(check(host: "localhost:8787", origin: origin, site: site) == expected)
    }

    @Test func `a rebound name is refused before its origin is looked at`() {
        #expect(
            check(host: "rebound.test:8787", origin: "http://rebound.test:8787", site: "same-origin")
                == .refused(.misdirected(authority: "rebound.test:8787"))
        )
    }

    private static let browser = "Mozilla/5.0 (X11; Linux x86_64)"

    @Test(
        arguments: [
            (nil, nil, .allowed), (nil, "curl/8.0", .allowed), ("http://larder.test:8787/a/b", browser, .allowed),
            ("http://localhost:3000/x", browser, .allowed), ("https://app.test", nil, .allowed),
            (nil, browser, .refused(.unattributed(authority: "larder.test:8787"))),
            (nil, "Opera/9.80", .refused(.unattributed(authority: "larder.test:8787"))),
            ("http://evil.test/x", nil, .refused(.foreignReferrer("http://evil.test/x"))),
            ("http://evil.test/", browser, .refused(.foreignReferrer("http://evil.test/"))),
            ("http://larder.test:8788/", nil, .refused(.foreignReferrer("http://larder.test:8788/"))),
            (
                "http://larder.test:8787@evil.test/", nil,
                .refused(.foreignReferrer("http://larder.test:8787@evil.test/"))
            ),
            ("about:blank", browser, .refused(.foreignReferrer("about:blank"))),
            ("", nil, .refused(.foreignReferrer(""))),
        ] as [(String?, String?, Guard.Verdict)]
    )
    func `without Origin and Sec-Fetch-Site, Referer and other browser fields decide`(
        _ referer: String?,
        _ agent: String?,
        _ expected: Guard.Verdict
    ) {
        #expect(check(host: "larder.test:8787", referer: referer, agent: agent) == expected)
        // This machine's own names are told.
        #expect(check(host: "localhost:8787", referer: referer, agent: agent) == .allowed)
    }

    @Test func `a Larder field or an admin token shows that no page sent the request`() {
        #expect(check(host: "larder.test:8787", agent: Self.browser, hasOwnField: true) == .allowed)
        let admin = Guard(listeners: [.tcp(host: "10.0.0.1", port: 80)], wantsToken: true)
        #expect(check(admin, host: "10.0.0.1", agent: Self.browser) == .allowed)
        #expect(
            check(admin, host: "10.0.0.1", referer: "http://evil.test/", agent: Self.browser)
                == .refused(.foreignReferrer("http://evil.test/"))
        )
    }

    @Test func `a preflight counts as such only from an allowed origin`() {
        #expect(
            check(
                host: "localhost:8787",
                origin: "https://app.test",
                site: "cross-site",
                isOptions: true,
                asksForMethod: true
            )
                == .preflight(bytes("https://app.test"))
        )
        #expect(
            check(host: "localhost:8787", origin: "https://app.test", isOptions: true)
                == .allowedOrigin(bytes("https://app.test"))
        )
        #expect(
            check(host: "localhost:8787", origin: "https://evil.test", isOptions: true, asksForMethod: true)
                == .refused(.foreignOrigin("https://evil.test"))
        )
    }

    @Test func `refusals have a status and say what to do`() {
        #expect(Guard.Refusal.misdirected(authority: "a").status == 421)
        #expect(Guard.Refusal.foreignOrigin("a").status == 403)
        #expect(Guard.Refusal.foreignSite("a").message.contains("cors:"))
        #expect(Guard.Refusal.prefetch.status == 403)
        #expect(Guard.Refusal.methodOverride("X-HTTP-Method").status == 400)
        #expect(Guard.Refusal.methodOverride("X-HTTP-Method").message.contains("X-HTTP-Method"))
        #expect(Guard.Refusal.unattributed(authority: "a").message.contains("Larder-View"))
    }
}

@Suite struct CORSTests {
    @Test func `a star allows every origin except null`() {
        let cors = CORS(origins: ["*"])
        #expect(cors.allows(bytes("https://any.test")))
        #expect(!cors.allows(bytes("null")))
        #expect(!CORS(origins: ["null"]).allows(bytes("null")))
        #expect(!CORS().allows(bytes("https://any.test")))
    }

    @Test func `a response names the origin and exposes its fields`() {
        #expect(
            CORS(origins: ["*"]).fields(for: bytes("https://a.test"))
                == fields([
                    ("Access-Control-Allow-Origin", "https://a.test"), ("Access-Control-Expose-Headers", "*"),
                ])
        )
    }

    @Test func `a preflight from an allowed origin is granted the method and fields that it names`() {
        let request = fields([
            ("Access-Control-Request-Method", "PATCH"),
            ("Access-Control-Request-Headers", "authorization, x-a, bad name"),
            ("Access-Control-Request-Private-Network", "true"),
        ])
        #expect(
            CORS(origins: ["*"]).preflightFields(for: bytes("https://a.test"), request: request)
                == fields([
                    ("Access-Control-Allow-Origin", "https://a.test"), ("Access-Control-Allow-Methods", "PATCH"),
                    ("Access-Control-Allow-Headers", "authorization, x-a"),
                    ("Access-Control-Allow-Private-Network", "true"),
                    ("Access-Control-Max-Age", "600"),
                    ("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"),
                ])
        )
    }

    @Test func `the upstream's own CORS fields are removed`() {
        var answer = fields([("Access-Control-Allow-Origin", "*"), ("access-control-expose-headers", "a"), ("X", "y")])
        CORS.removeFields(from: &answer)
        #expect(answer == fields([("X", "y")]))
    }
}
