import HTTPSemantics
import TestSupport
import Testing

@testable import Recording

/// Secrets in the fields of requests and of responses.
@Suite struct RedactedFieldsTests {
    @Test func `a token in the second Sec-WebSocket-Protocol line is redacted`() throws {
        let fields = Fields([Field("Sec-WebSocket-Protocol", "a, bearer"), Field("Sec-WebSocket-Protocol", "abcdefgh")])
        let redacted = try RedactedContentTests.redact(fields).requestFields?.recorded
        #expect(redacted == ["Sec-WebSocket-Protocol: a, bearer", "Sec-WebSocket-Protocol: REDACTED-1"])
    }

    @Test(arguments: [
        #"Token token="SECRET""#, #"OAuth oauth_token="SECRET", oauth_version="1.0""#,
        #"MediaBrowser Client="a", Token="SECRET""#, #"Digest username="u", response="SECRET""#,
        #"Hawk id="a", mac="SECRET""#, "AWS4-HMAC-SHA256 Credential=a, Signature=SECRET", "Custom a=b;token=SECRET",
        "GoogleLogin auth=SECRET",
    ])
    func `a parameter of Authorization is redacted wherever else it occurs`(_ value: String) throws {
        let secret = "tok-1234567890"
        let fields = Fields([Field("Authorization", value.replacing("SECRET", with: secret))])
        let exchange = try RedactedContentTests.redact(fields, response: ["X-Echo": secret], Array(secret.utf8))
        #expect(!exchange.response.body.contains("1234567890"))
        #expect(exchange.response.fields.text("x-echo")?.hasPrefix("REDACTED-") == true)
    }

    @Test(arguments: [
        ("Cookie", "abcdefgh-nameless", "REDACTED-1"), ("Cookie", #"a="quoted-value"; b="#, #"a="REDACTED-1"; b="#),
        ("Sec-WebSocket-Protocol", "bearer, abcdefghijkl", "bearer, REDACTED-1"),
        (
            "Sec-WebSocket-Protocol", "graphql-ws, base64url.bearer.authorization.k8s.io.YWJjZGVm",
            "graphql-ws, base64url.bearer.authorization.k8s.io.REDACTED-1"
        ),
        ("Sec-WebSocket-Protocol", "graphql-ws, chat", "graphql-ws, chat"),
        (
            "Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.sk-abcdefgh, openai-beta.realtime-v1",
            "realtime, openai-insecure-api-key.REDACTED-1, openai-beta.realtime-v1"
        ),
        ("Sec-WebSocket-Protocol", "jwt.abcdefgh.ijkl", "jwt.REDACTED-1"),
        ("X-Original-URL", "?access_token=abcdefghijkl", "?access_token=REDACTED-1"),
        ("X-Rewrite-URL", "/a?b=1&access_token=abcdefghijkl&c=2", "/a?b=1&access_token=REDACTED-1&c=2"),
        ("X-Params", "access_token=abcdefghijkl&c=2", "access_token=REDACTED-1&c=2"),
        ("X-Args", #"{"path":"/a","password":"abcdefghijkl"}"#, #"{"path":"/a","password":"REDACTED-1"}"#),
        ("X-Upstream", "Bearer abcdefghijkl", "Bearer REDACTED-1"),
        ("Proxy-Authorization", "Basic dXNlcjpsb25nLXBhc3N3b3Jk", "Basic REDACTED-1"),
        ("Authorization", "Bearer \t abcdefghijkl", "Bearer \t REDACTED-1"),
        ("Destination", "https://u:long-password@x/y", "https://REDACTED-2@x/y"),
        (
            "Referer", "//u:long-password@x/y?code=abc123def4&state=1#id_token=a",
            "//REDACTED-2@x/y?code=REDACTED-3&state=1#id_token=REDACTED-4"
        ),
        ("Content-Type", "multipart/form-data; boundary=----key=1", "multipart/form-data; boundary=----key=1"),
        ("Cache-Control", "max-age=0, no-cache", "max-age=0, no-cache"),
    ])
    func `secrets in request fields are redacted`(_ name: String, _ value: String, _ expected: String) throws {
        let fields = try RedactedContentTests.redact(Fields([Field(name, value)])).requestFields
        #expect(fields?.recorded == ["\(name): \(expected)"])
    }

    @Test(arguments: [
        ("Location", "https://app/cb?code=abc123def4&state=xyz", "https://app/cb?code=REDACTED-1&state=xyz"),
        ("Location", "https://app/cb#access_token=abc&n=1", "https://app/cb#access_token=REDACTED-1&n=1"),
        ("Set-Cookie", "abcdefgh-nameless; Path=/", "REDACTED-1; Path=/"),
        ("Set-Cookie", "abcdefgh-nameless==; Path=/", "REDACTED-1; Path=/"),
        ("Set-Cookie", "a=; Max-Age=0", "a=; Max-Age=0"),
        ("Location", "/cb?ticket=ST-1-abcdefgh", "/cb?ticket=REDACTED-1"), ("Location", "/x?ticket=17", "/x?ticket=17"),
        ("Location", "/cb?code=DE&state=CA", "/cb?code=DE&state=CA"),
        ("Authentication-Info", #"nextnonce="abc", qop=auth"#, "REDACTED-1"),
        (
            "Link", #"/x?page=2&access_token=abc; rel="next", </y>; rel=prev"#,
            #"/x?page=2&access_token=REDACTED-1; rel="next", </y>; rel=prev"#
        ),
        ("Link", "</x?access_token=abc&page=2>; rel=next", "</x?access_token=REDACTED-1&page=2>; rel=next"),
        ("Operation-Location", "https://x/y?sig=abcdefgh", "https://x/y?sig=REDACTED-1"),
        (
            "Location", "/x?to=https%3A%2F%2Fy%2F%3Faccess_token%3Dabc%26b%3D1&c=2",
            "/x?to=https%3A%2F%2Fy%2F%3Faccess_token%3DREDACTED-1%26b%3D1&c=2"
        ),
    ])
    func `fields of responses are redacted`(_ name: String, _ value: String, _ expected: String) throws {
        let fields = try RedactedContentTests.redact(response: Fields([Field(name, value)])).response.fields
        #expect(fields.recorded == ["\(name): \(expected)"])
    }
}
