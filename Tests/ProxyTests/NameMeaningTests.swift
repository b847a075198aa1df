import DaemonTestSupport
import Testing

@testable import HTTPSemantics
@testable import Proxy

/// Which names look like a credential or an identity; docs/http-reference.md has the table.
@Suite struct NameMeaningTests {
    private func isCredential(_ meaning: NameMeaning) -> Bool {
        if case .credential = meaning { true } else { false }
    }

    @Test(arguments: [
        "Authorization", "AUTHORIZATION", "Cookie", "X-Auth-Token", "Api-Key", "api_key", "apikey", "APIKEY", "ApiKey",
        "apiKey", "X-Shopify-Access-Token", "JOB-TOKEN", "Deploy-Token", "X-Vault-Token", "X-Goog-Api-Key",
        "Ocp-Apim-Subscription-Key", "ocpapimsubscriptionkey", "X-MBX-APIKEY", "X-TrackerToken", "x-trackertoken",
        "XAuthToken", "AccessToken", "accesstoken", "access_token2", "token1", "oauth2", "X-Amz-Security-Token",
        "X-Amz-Signature", "Signature", "password", "userPassword", "client_secret", "clientSecret", "session",
        "JSESSIONID", "PHPSESSID", "sessionid", "auth[token]", "key", "X-Api-Key2", "backendtoken", "X-GitHub-OTP",
        "Impersonate-User", "jwt", "s3key", "X-JFrog-Art-Api", "appid", "pass", "X-MS-Client-Principal",
        "Mcp-Session-Id",
        "code_verifier",
    ])
    func `a credential is recognised in any spelling`(_ name: String) {
        #expect(isCredential(.ofField(Array(name.utf8))), "\(NameMeaning.ofField(Array(name.utf8)))")
    }

    @Test(arguments: [
        "author", "authors", "keyword", "keywords", "monkey", "hockey", "turkey", "page_token", "pageToken",
        "nextPageToken", "nextpagetoken", "$skiptoken", "syncToken", "continuation_token", "csrf_token", "csrfToken",
        "csrfmiddlewaretoken", "_xsrf_token", "max_tokens", "sort_key", "sortkey", "startkey", "start_key", "keyboard",
        "tokenizer", "user", "username", "user_id", "account", "tenant", "sudo", "q", "", "%", "authority", "page",
        "design", "assign", "secretary", "passing", "cookies_policy_of", "desktop", "code", "ticket", "client_id",
        "uid",
        "CallSid", "side", "member_id",
    ])
    func `a query parameter that is no credential is not taken for one`(_ name: String) {
        #expect(NameMeaning.ofParameter(Array(name.utf8)) == .unknown)
    }

    @Test(arguments: [
        "Sudo", "X-User", "X-User-Id", "X-Remote-User", "Stripe-Account", "X-Tenant-Id", "X-Redmine-Switch-User",
        "On-Behalf-Of", "X-Scope-OrgID", "OpenAI-Organization", "X-Hasura-Role", "X-SSL-Client-Cert",
        "Dropbox-API-Select-Admin", "Dropbox-API-Select-User", "X-Uid", "X-Login", "X-Member-Id", "X-MemberId",
        "x-memberid", "X-Customer-Id", "Client-Id", "X-MS-Client-Principal-Id", "X-Consumer-Id", "X-Consumer-Custom-Id",
        "X-Consumer-Username", "X-Customer", "X-Member", "xMember", "X-Member-Number", "X-Company-Name", "X-Store-Id",
        "X-Merchant-Id", "X-Merchant", "Remote-Email", "Remote-Groups", "X-Visitor-UUID",
        "X-Apigateway-Api-Userinfo", "X-Rh-Identity", "X-Amzn-Oidc-Identity", "X-SSL-Client-S-DN", "X-Project-Id",
        "x-customernumber", "x-clientuuid",
    ])
    func `a field that names a user or a tenant is recognised`(_ name: String) {
        guard case .identity = NameMeaning.ofField(Array(name.utf8)) else {
            Issue.record("\(name): \(NameMeaning.ofField(Array(name.utf8)))")
            return
        }
    }

    @Test(arguments: [
        "User-Agent", "X-User-Agent", "Api-User-Agent", "X-Stripe-Client-User-Agent", "X-Stripe-Client-Telemetry",
        "Idempotency-Key", "X-Idempotency-Key", "X-Request-Id", "Request-Id", "X-Correlation-ID", "traceparent",
        "sentry-trace", "baggage", "X-B3-TraceId", "X-Amzn-Trace-Id", "uber-trace-id", "X-Cloud-Trace-Context",
        "X-CSRF-Token", "X-CSRFToken", "X-XSRF-TOKEN", "Sec-WebSocket-Key", "Sec-Fetch-User", "X-Forwarded-User",
        "X-Forwarded-Access-Token", "Proxy-Authorization", "If-None-Match", "Content-Type", "Range", "Date",
        "x-ms-client-request-id", "X-Request-UID", "amz-sdk-invocation-id", "X-Stainless-Retry-Count",
        "Accept-Encoding",
    ])
    func `a harmless field is recognised`(_ name: String) {
        #expect(NameMeaning.ofField(Array(name.utf8)) == .harmless)
    }

    @Test(arguments: [
        "X-Unheard-Of", "X-Feature", "Prefer-Not", "X", "X-Real-IP", "From", "X-Client", "X-Client-Version",
        "X-Client-Name", "X-Customer-Type", "X-Member-Since", "X-Store", "X-Store-Code", "X-Profile", "X-Device-Model",
        "X-Project", "Teamwork", "Downer",
    ])
    func `the meaning of any other field is unknown`(_ name: String) {
        #expect(NameMeaning.ofField(Array(name.utf8)) == .unknown)
    }

    @Test func `response fields with a credential are secret, fields about a credential are not`() {
        for name in ["X-Auth-Token", "X-Subject-Token", "Authorization", "x-session-key", "AccessToken"] {
            #expect(NameMeaning.isSecretItself(Array(name.utf8)), "\(name)")
        }
        for name in [
            "X-OAuth-Scopes", "X-Accepted-OAuth-Scopes", "github-authentication-token-expiration", "Surrogate-Key",
            "Idempotency-Key", "X-CSRF-Token", "Signature", "ETag", "X-Next-Page-Token",
        ] {
            #expect(!NameMeaning.isSecretItself(Array(name.utf8)), "\(name)")
        }
    }

    @Test func `a field that permits credentials is no credential`() {
        for name in ["Access-Control-Allow-Credentials", "access-control-allow-headers"] {
            #expect(!NameMeaning.isSecretField(Array(name.utf8)), "\(name)")
        }
        #expect(NameMeaning.isSecretField(Array("Mcp-Session-Id".utf8)))
    }

    // MARK: URLs

    @Test(arguments: [
        ("/a;jsessionid=s/b?c=1", "/a;jsessionid=REDACTED/b?c=1"), ("/a?b;token=s;c", "/a?b;token=REDACTED;c"),
        ("/a?b=1&%61pi%5Fkey=s", "/a?b=1&%61pi%5Fkey=REDACTED"), ("/token=s", "/token=s"),
        ("/a?token=&x", "/a?token=REDACTED&x"),
        ("/a;b=1;token=x;c?token=y#token=z", "/a;b=1;token=REDACTED;c?token=REDACTED#token=REDACTED"),
    ])
    func `credential parameters are redacted wherever parameters can occur`(_ target: String, _ expected: String) {
        #expect(text(PrincipalFields().redacted(target: bytes(target))) == expected)
    }

    @Test(arguments: [
        ("https://u:p@a.test/x?key=s", "https://REDACTED@a.test/x?key=REDACTED"), ("//u@a.test", "//REDACTED@a.test"),
        ("/x//u@a.test", "/x//u@a.test"), ("https://a.test/u@x", "https://a.test/u@x"), ("u@a.test", "u@a.test"),
    ])
    func `user names and passwords in URLs are redacted`(_ url: String, _ expected: String) {
        #expect(PrincipalFields().redacted(url: url) == expected)
    }

    @Test func `each parameter that is redacted in the key divides principals`() {
        let principal = PrincipalFields()
        var random = SystemRandomNumberGenerator()
        let pieces = ["/", ";", "?", "&", "=", "#", "token", "key", "a", "%74oken", "%3B", "s1", "s2", "//u:p@h"]
        for _ in 0..<20_000 {
            let count = Int.random(in: 1...9, using: &random)
            let target = bytes("/" + (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }.joined())
            let isRedacted = principal.redacted(target: target) != target
            if isRedacted { #expect(principal.canonical(target: target, fields: Fields()) != nil, "\(text(target))") }
            #expect(
                principal.redacted(target: principal.redacted(target: target)) == principal.redacted(target: target)
            )
        }
    }
}
