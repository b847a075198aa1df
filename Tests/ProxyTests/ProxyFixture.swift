import Mapping
import Store

@testable import CachePolicy
@testable import HTTPSemantics
@testable import HTTPServer
@testable import Proxy
@testable import Settings

/// Upstreams, requests and answers made for a test.
enum ProxyFixture {
    static let hasher = KeyHasher(secret: (1, 2))

    static func upstream(_ change: (inout Configuration.Upstream) throws -> Void = { _ in }) throws -> ProxiedUpstream {
        var settings = Configuration.Upstream()
        settings.name = "api"
        settings.url = try UpstreamURL("https://api.example.com")
        try change(&settings)
        return ProxiedUpstream(try CompiledUpstream(settings))
    }

    static func request(
        _ method: String = "GET",
        _ url: String = "/x",
        _ fields: [(String, String)] = [],
        of upstream: ProxiedUpstream,
        hasher: KeyHasher = Self.hasher
    ) -> ProxyRequest {
        let incoming = IncomingRequest(
            message: Request(method: method, target: url, fields: Fields(fields.map { Field($0.0, $0.1) })),
            upstream: upstream,
            target: url,
            route: String(url.prefix { $0 != "?" }),
            url: url,
            context: "",
            otherLines: [],
            credentialsDigest: nil,
            view: .wire,
            live: nil,
            base: ClientAuthority(authority: "localhost:8787")
        )
        let facts = RequestFacts(
            incoming,
            principal: .anonymous,
            otherFields: nil,
            hasher,
            credentialHasher: KeyHasher(secret: (3, 4))
        )
        return ProxyRequest(facts)
    }

    /// A response that arrived at second 1000 with these fields.
    static func answer(
        _ fields: [(String, String)],
        body: String = "{}",
        form: StoredDocument.Form = .asReceived,
        of upstream: ProxiedUpstream,
        for request: ProxyRequest,
        base: String = "localhost:8787"
    ) -> ReadyResponse {
        let lines = Fields(fields.map { Field($0.0, $0.1) })
        let policy = ResponsePolicy(
            request: request.message,
            status: 200,
            fields: lines,
            times: ExchangeTimes(request: 1_000, response: 1_000),
            settings: upstream.policySettings
        )
        var answer = Proxy.CachedResponse(
            key: request.key,
            status: 200,
            fields: lines,
            body: Array(body.utf8),
            policy: policy.stored
        )
        (answer.form, answer.isBodyComposed) = (form, form == .composed)
        return ReadyResponse(answer, digest: request.digest, upstream: upstream, base: ClientAuthority(authority: base))
    }
}
