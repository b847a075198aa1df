import DaemonTestSupport
import Mapping
import Store
import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import HTTPServer
@testable import Proxy
@testable import Settings

/// A worker's builder gives each request the key that it has by definition, whatever it has read before.
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
        { $0.principal = ["Accept"] },
        { $0.shared = true },
    ]

    private static let paths = [
        "", "/", "/a", "/a/", "/a//b", "/a/../b", "/a/./b", "/a.b/.c", "/a%2fb", "/a%2Fb", "/%zz", "/a;b=1", "/a:b@c",
        "/..",
    ]
    private static let queries = [
        "", "?", "?a=1", "?a=1&b=2", "?b=2&a=1", "?access_token=s", "?a=%2f", "?Access_Token=s&a", "?key=1", "?x?y=/..",
        "?larder_live=on&a=1", "?larder_live=once", "?a=1;access_token=t",
        "?code=DE", "?code=DE&state=BY", "?code=a1b2c3d4e5&state=BY", "?a=1&ticket=7", "?service=s&ticket=7", "?sid=1",
    ]
    private static let values: [String: [String]] = [
        "Accept": [
            "*/*", "application/json", "text/html", "application/json;q=0.5, text/plain", "text/html , a/b;q=0.1", "",
            "text/event-stream", "text/event-stream, text/html",
        ],
        "Accept-Language": ["de", "de, en;q=0.5", "DE,en;q=0.5", ""],
        "X-Api-Version": ["1", "2", " 1"],
        "Authorization": ["Bearer a", "Bearer b", ""],
        "Cookie": ["a=1", "a=1; b=2", "Bearer a"],
        "X-Key": ["a", "b"],
        "Private-Token": ["a"],
        "User-Agent": ["x"],
        "Connection": ["close", "keep-alive, X-Key", "Accept-Language, X-Other", "X-Api-Version, Private-Token"],
        "X-Other": ["a", "b"],
        "Larder-Live": ["on", "once"],
        "Last-Event-ID": ["3"],
        "If-None-Match": ["\"a\""],
        "TE": ["trailers"],
    ]

    /// What a builder makes of a request; nil if it refuses it.
    private struct Built {
        var incoming: IncomingRequest
        var digest: Digest128
    }

    private func build(_ text: String, _ upstream: ProxiedUpstream, _ builder: inout CacheKeyBuilder) throws -> Built? {
        var bytes = Array(text.utf8)
        let (parser, hasher) = (RequestParser(limits: HTTPLimits()), ProxyFixture.hasher)
        return try bytes.withUnsafeMutableBufferPointer { buffer in
            guard case .complete = parser.parse(try #require(buffer.baseAddress), count: buffer.count),
                (try? builder.read(parser.head, upstream, hasher)) != nil,
                let incoming = try? IncomingRequest(parser.head, upstream, builder, hasher)
            else { return nil }
            let digest = builder.digest(upstream, principal: PrincipalID(rawValue: 7), hasher)
            return Built(incoming: incoming, digest: digest)
        }
    }

    /// Checks a request against what its key is by definition, worked out by plain means.
    private func check(_ built: Built, _ text: String) throws {
        let (incoming, upstream) = (built.incoming, built.incoming.upstream)
        let key = incoming.cacheKey(of: PrincipalID(rawValue: 7))
        #expect(built.digest == ProxyFixture.hasher.digest(key), "\(text)")
        let parts = incoming.message.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var query = parts.count > 1 ? bytes(String(parts[1])) : nil
        _ = LiveMode.takeParameters(from: &query)
        let target = try upstream.targetNormaliser.normalise(path: bytes(String(parts[0])), query: query)
        #expect(bytes(incoming.target) == target, "\(text)")
        #expect(bytes(key.url) == upstream.keyURL(ofTarget: target), "\(text)")
        let message = incoming.live == nil ? incoming.message : incoming.message.plain
        let forwarded = message.fields.withoutHopByHop()
        #expect(key.context == upstream.context.canonical(forwarded), "\(text)")
        let others = forwarded.lines.filter { upstream.role(of: $0) == .other }
        let lines = others.map { "\($0.lowercasedName):\($0.text)\n" }.joined()
        #expect(String(decoding: incoming.otherLines, as: UTF8.self) == lines, "\(text)")
    }

    @Test(arguments: upstreams.indices)
    func `a request has the key of its definition, whatever the builder has read before`(_ index: Int) throws {
        let upstream = try ProxyFixture.upstream(Self.upstreams[index])
        // One for all, as on a worker: what it remembers of one request must not tell in another.
        var builder = CacheKeyBuilder()
        var known: [Digest128: [UInt8]?] = [:]
        var count = 0
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
            guard let built = try build(text + "\r\n", upstream, &builder) else { continue }
            count += 1
            try check(built, text)
            // Whoever is recognised by the digest is the very one that the credentials name.
            let credentials = built.incoming.credentials
            if let digest = built.incoming.credentialsDigest {
                if let before = known[digest] { #expect(before == credentials, "\(text)") }
                known[digest] = .some(credentials)
            } else {
                #expect(credentials == nil, "\(text)")
            }
        }
        #expect(count > 1_000)
    }
}
