import DaemonTestSupport
import Testing

@testable import CachePolicy
@testable import HTTPSemantics

@Suite struct StoredFieldsTests {
    private static let answer = fields([
        ("Content-Type", "a/b"), ("Connection", "close, X-Hop"), ("X-Hop", "1"), ("Keep-Alive", "1"),
        ("Transfer-Encoding", "chunked"), ("Proxy-Authenticate", "x"), ("Set-Cookie", "a=b"), ("Age", "5"),
        ("Alt-Svc", "h3=\":443\""), ("X-A", "1"), ("x-a", "2"), ("ETag", "\"a\""),
    ])

    private func names(_ fields: Fields) -> [String] { fields.lines.map(\.lowercasedName) }

    @Test func `hop-by-hop fields, cookies and ages are not stored`() {
        #expect(names(StoredFields.storable(Self.answer)) == ["content-type", "x-a", "x-a", "etag"])
        #expect(names(StoredFields.storable(Self.answer, replaysCookies: true)).contains("set-cookie"))
        #expect(names(StoredFields.storable(Self.answer, leavingOut: [bytes("x-a")])) == ["content-type", "etag"])
    }

    @Test(
        arguments: [
            ("X-A", true), ("Content-Type", true), ("Content-Language", true), ("Content-MD5", true),
            ("Content-Security-Policy", true), ("Cache-Control", true), ("Expires", true), ("ETag", true),
            ("Content-Length", false), ("Content-Encoding", false), ("Content-Range", false), ("Connection", false),
            ("Keep-Alive", false), ("Transfer-Encoding", false), ("Upgrade", false), ("Proxy-Authenticate", false),
            ("Set-Cookie", false),
        ]
    )
    func `RFC 9111 §3.2: a later response replaces every field but those of framing, coding and connection`(
        _ name: String,
        _ isReplaced: Bool
    ) {
        let stored = fields([(name, "old"), ("X-Other", "1")])
        let refreshed = StoredFields.refreshed(stored, by: fields([(name, "new")]))
        #expect(refreshed.combined(name.lowercased()) == (isReplaced ? "new" : "old"))
        #expect(refreshed.contains("x-other"))
    }

    @Test func `a 304 does not bring back a digest that was removed with its coding`() {
        #expect(!StoredFields.refreshed(Fields(), by: fields([("Content-MD5", "x")])).contains("content-md5"))
    }

    @Test func `fields named by no-cache are not reused`() {
        #expect(
            names(StoredFields.reusable(fields([("X-A", "1"), ("X-B", "2")]), leavingOut: [bytes("x-a")])) == ["x-b"]
        )
    }

    @Test func `a 304 has the fields that do not describe the body`() {
        let stored = fields([
            ("ETag", "\"a\""), ("Last-Modified", "x"), ("Content-Type", "a/b"), ("Content-Length", "1"), ("Vary", "a"),
            ("Cache-Control", "max-age=1"), ("Content-Location", "/a"), ("Link", "<a>"),
        ])
        #expect(
            names(StoredFields.notModified(stored)) == ["etag", "vary", "cache-control", "content-location", "link"]
        )
        #expect(names(StoredFields.notModified(fields([("Last-Modified", "x")]))) == ["last-modified"])
    }
}

@Suite struct UpstreamFieldsTests {
    @Test func `only the fields meant for the upstream are sent to it`() {
        let request = fields([
            ("Host", "localhost:8787"), ("Accept", "a/b"), ("Authorization", "x"), ("Cookie", "y"),
            ("Connection", "X-Hop"),
            ("X-Hop", "1"), ("TE", "trailers"), ("Upgrade", "h2c"), ("Proxy-Authorization", "z"),
            ("Proxy-Connection", "close"),
            ("X-Forwarded-For", "1.2.3.4"), ("x-forwarded-host", "evil"), ("Forwarded", "for=1"),
            ("X_Forwarded_For", "1.2.3.4"),
            ("Larder-View", "raw"), ("Larder-Live", "on"), ("Accept-Encoding", "gzip"), ("Expect", "100-continue"),
            ("Content-Length", "5"), ("Transfer-Encoding", "chunked"), ("Origin", "http://localhost:3000"),
            ("Sec-Fetch-Site", "cross-site"), ("If-None-Match", "\"a\", \"larder-1\""), ("If-Range", "\"a\""),
            ("X-Custom", "kept"), ("Content-Type", "c/d"), ("Via", "1.0 a"), ("Via", "1.1 b"),
        ])
        #expect(
            UpstreamFields.make(from: request, removingConditions: false)
                == fields([
                    ("Accept", "a/b"), ("Authorization", "x"), ("Cookie", "y"), ("If-Range", "\"a\""),
                    ("X-Custom", "kept"),
                    ("Content-Type", "c/d"), ("If-None-Match", "\"a\""), ("Via", "1.0 a, 1.1 b, 1.1 larder"),
                ])
        )
        let own = UpstreamFields.make(from: request, removingConditions: true)
        #expect(!own.contains("if-none-match") && !own.contains("if-range"))
    }

    @Test func `Origin is sent as configured, and Larder-View only to a Larder behind this one`() {
        let request = fields([("Origin", "http://localhost:3000"), ("Larder-View", "mapped"), ("Larder-Live", "on")])
        let via = ("Via", "1.1 larder")
        #expect(
            UpstreamFields.make(from: request, removingConditions: false, origin: .pass, passesView: true)
                == fields([("Origin", "http://localhost:3000"), ("Larder-View", "mapped"), via])
        )
        #expect(
            UpstreamFields.make(from: request, removingConditions: false, origin: .replace("https://a.test"))
                == fields([("Origin", "https://a.test"), via])
        )
    }

    @Test func `a method override is recognised in every spelling that gateways read`() {
        for name in ["X-HTTP-Method-Override", "x_http_method_override", "X-Method_Override", "X-HTTP-METHOD"] {
            #expect(UpstreamFields.overridesMethod(Array(name.utf8)), "\(name)")
        }
        #expect(!UpstreamFields.overridesMethod(Array("X-HTTP-Method-Overrides".utf8)))
    }

    @Test func `a request that has passed through Larder eight times is a loop`() {
        var request = Fields()
        for _ in 0..<7 { Via.append(to: &request) }
        #expect(!Via.isLoop(request))
        Via.append(to: &request)
        #expect(Via.isLoop(request))
        #expect(!Via.isLoop(fields([("Via", "1.1 varnish, 1.1 larderx, larder")])))
    }
}

@Suite struct StatusFactsTests {
    @Test(arguments: [
        (500, true), (503, true), (504, true), (429, true), (501, false), (403, false), (404, false), (200, false),
        (600, true), (999, true),
    ])
    func `a stale response may replace a failure, but no other response`(_ status: Int, _ isFailure: Bool) {
        #expect(StatusFacts.isFailureByStatus(status) == isFailure)
    }

    @Test func `the fields of a 403 show whether it is a rate limit`() {
        #expect(StatusFacts.isRateLimited(429, Fields()))
        #expect(!StatusFacts.isRateLimited(403, Fields()))
        #expect(StatusFacts.isRateLimited(403, fields([("X-RateLimit-Remaining", "0")])))
        #expect(!StatusFacts.isRateLimited(403, fields([("X-RateLimit-Remaining", "10")])))
        #expect(StatusFacts.isRateLimited(403, fields([("Retry-After", "10")])))
        #expect(!StatusFacts.isRateLimited(200, fields([("X-RateLimit-Remaining", "0")])))
    }

    @Test(arguments: [
        ("GET", true), ("HEAD", true), ("OPTIONS", true), ("TRACE", true), ("POST", false), ("get", false),
        ("FOO", false),
    ])
    func `unknown methods are not safe`(_ method: String, _ isSafe: Bool) {
        #expect(MethodFacts.isSafe(method) == isSafe)
    }
}

@Suite struct ContextFieldsTests {
    @Test(arguments: [
        "", "*/*", "application/json", "Application/JSON", "application/json; charset=UTF-8", "application/json;q=0.9",
        "application/json, text/plain, */*", "application/json, */*;q=0.5", " application/json , ", "application/*",
        "*/*;q=0.001",
    ])
    func `Accept for plain JSON is not part of the context`(_ accept: String) {
        #expect(bytes(accept).withUnsafeBytes { ContextFields.isPlainJSONAccept($0) })
        #expect(ContextFields().canonical(fields([("Accept", accept)])) == "")
    }

    @Test(arguments: [
        "text/html", "text/plain", "text/plain, application/json", "application/vnd.github+json",
        "application/json;q=0",
        "application/json; version=2", "application/json, text/html", "application/jsonx", "json",
    ])
    func `Accept for another type is part of the context`(_ accept: String) {
        #expect(!bytes(accept).withUnsafeBytes { ContextFields.isPlainJSONAccept($0) })
        #expect(ContextFields().canonical(fields([("Accept", accept)])).hasPrefix("accept="))
    }

    @Test func `the canonical text orders names and normalises values`() {
        let context = ContextFields().canonical(
            fields([
                ("X-GitHub-Api-Version", " 2022-11-28 "), ("accept-LANGUAGE", "DE;q=0.5, en"),
                ("Time-Zone", "Europe/Berlin"),
                ("Accept", "application/vnd.github+json"), ("X-Other", "1"), ("Stripe-Version", "1"),
            ])
        )
        #expect(
            context == """
                accept=application/vnd.github+json
                accept-language=en,de;q=0.500
                stripe-version=1
                time-zone=Europe/Berlin
                x-github-api-version=2022-11-28
                """
        )
    }

    @Test(arguments: [
        ("*-Version", "API-VERSION", true), ("*-Version", "Version", false), ("*-Version", "-version", true),
        ("*-Version", "X-Version-B", false), ("*-Version", "Sec-CH-UA-Full-Version", false),
        ("Sec-CH-UA", "sec-ch-ua", true), ("X-*", "x-a", true), ("X-*", "xa", false), ("Accept", "accept", true),
        ("Accept", "accept-language", false), ("Accept", "accep", false), ("*", "anything", true),
        ("*", "sec-fetch-mode", false),
    ])
    func `context names can have a star at either end`(_ pattern: String, _ name: String, _ matches: Bool) {
        #expect(bytes(name).withUnsafeBytes { ContextFields.Matcher(pattern).matches($0) } == matches)
    }

    @Test(arguments: [
        ("accept", "*/*", false), ("Accept", "text/html", true), ("X-Api-Version", "1", true), ("X-A", "1", false),
    ])
    func `a request field is relevant if it can change the context`(
        _ name: String,
        _ value: String,
        _ isRelevant: Bool
    ) {
        let context = ContextFields()
        let answer = bytes(name).withUnsafeBytes { name in
            bytes(value).withUnsafeBytes { context.isRelevant(name, $0) }
        }
        #expect(answer == isRelevant)
    }
}
