import Mapping
import Store
import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import HTTPServer
@testable import Proxy
@testable import Settings

/// The short way of a hit and the long way of everything else name a request's document and principal alike.
@Suite struct CacheKeyTests {
    private static let upstreams: [@Sendable (inout Configuration.Upstream) throws -> Void] = [
        { _ in },
        {
            $0.prefix = "/api"
            $0.url = try UpstreamURL("https://api.example.com/v3")
            $0.routes = [("a", true, []), ("**", false, ["b", "x*"])].map { path, sorts, ignored in
                var route = Configuration.Route(declaration: RouteDeclaration(path: path))
                route.overrides.key = .init(sort: sorts, ignore: ignored)
                return route
            }
        },
        { $0.prefix = "/api" },
        { $0.url = try UpstreamURL("https://api.example.com/v3") },
        {
            $0.prefix = "/api"
            $0.url = try UpstreamURL("https://api.example.com/v3")
        },
        {
            $0.principal = ["X-Key", "?key"]
            $0.context = ["Accept", "X-*"]
        },
        { $0.shared = true },
    ]

    private static let paths = [
        "", "/", "/a", "/a/", "/a//b", "/a/../b", "/a/./b", "/a.b/.c", "/a%2fb", "/a%2Fb", "/%zz", "/a;b=1", "/a:b@c",
        "/..",
    ]
    private static let queries = [
        "", "?", "?a=1", "?a=1&b=2", "?b=2&a=1", "?access_token=s", "?a=%2f", "?Access_Token=s&a", "?key=1", "?x?y=/..",
    ]
    private static let values: [String: [String]] = [
        "Accept": [
            "*/*", "application/json", "text/html", "application/json;q=0.5, text/plain", "text/html , a/b;q=0.1", "",
        ],
        "Accept-Language": ["de", "de, en;q=0.5", "DE,en;q=0.5", ""],
        "X-Api-Version": ["1", "2", " 1"],
        "Authorization": ["Bearer a", "Bearer b", ""],
        "Cookie": ["a=1", "a=1; b=2", "Bearer a"],
        "X-Key": ["a", "b"],
        "Private-Token": ["a"],
        "User-Agent": ["x"],
    ]

    /// A request, and what the two ways make of it; nil where the short way will not, or the long way refuses.
    private struct Names {
        var quick: Digest128?
        var digest: Digest128
        var credentials: [UInt8]?
        var key: CacheKey
    }

    private func names(_ text: String, _ upstream: ProxiedUpstream, _ cacheKey: inout CacheKeyDigester) throws -> Names?
    {
        var bytes = Array(text.utf8)
        let parser = RequestParser(limits: HTTPLimits())
        return try bytes.withUnsafeMutableBufferPointer { buffer in
            guard case .complete = parser.parse(try #require(buffer.baseAddress), count: buffer.count) else {
                return nil
            }
            guard cacheKey.read(parser.head, upstream) else { return nil }
            let quick = cacheKey.credentialsDigest(upstream, ProxyFixture.hasher)
            let digest = cacheKey.digest(
                parser.head,
                upstream,
                principal: PrincipalID(rawValue: 7),
                ProxyFixture.hasher
            )
            guard let incoming = try? IncomingRequest(parser.head, upstream, credentialsDigest: quick) else {
                return nil
            }
            let others =
                incoming.parts.otherFields.isEmpty ? nil : ProxyFixture.hasher.digest(incoming.parts.otherFields)
            #expect(cacheKey.otherFieldsDigest(ProxyFixture.hasher) == others, "\(text)")
            let request = ProxyRequest(
                parser.head.owned(),
                incoming,
                principal: PrincipalID(rawValue: 7),
                otherFields: others,
                hasher: ProxyFixture.hasher
            )
            #expect(digest == request.digest, "\(text)")
            return Names(quick: quick, digest: digest, credentials: incoming.parts.credentials, key: request.key)
        }
    }

    @Test(arguments: upstreams.indices) func `one request, one key`(_ index: Int) throws {
        let upstream = try ProxyFixture.upstream(Self.upstreams[index])
        // One for all, as on a worker: what it remembers of one request must not tell in another.
        var cacheKey = CacheKeyDigester()
        var known: [Digest128: [UInt8]?] = [:]
        var short = 0
        var random = SystemRandomNumberGenerator()
        for _ in 0..<5_000 {
            let path = upstream.settings.prefix + (Self.paths.randomElement(using: &random) ?? "")
            let target = (path.isEmpty ? "/" : path) + (Self.queries.randomElement(using: &random) ?? "")
            var text = "GET \(target) HTTP/1.1\r\nHost: localhost:8787\r\n"
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                guard let (name, values) = Self.values.randomElement(using: &random) else { continue }
                let spelling = Bool.random(using: &random) ? name : name.lowercased()
                text += "\(spelling): \(values.randomElement(using: &random) ?? "")\r\n"
            }
            guard let names = try names(text + "\r\n", upstream, &cacheKey) else { continue }
            short += 1
            // Whoever is recognised by the digest is the very one that the credentials name.
            if let quick = names.quick {
                if let before = known[quick] { #expect(before == names.credentials, "\(text)") }
                known[quick] = .some(names.credentials)
            } else {
                #expect(names.credentials == nil, "\(text)")
            }
        }
        #expect(short > 500)
    }
}
