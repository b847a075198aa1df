import Mapping
import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import Proxy
@testable import Settings

@Suite struct DecisionTests {
    /// What a decision comes to, in a word that a table can hold.
    private func outcome(
        _ fields: [(String, String)]?,
        request: [(String, String)] = [],
        form: Proxy.CachedResponse.Form = .received,
        mode: Mode = .online,
        now: Int64
    ) throws -> String {
        let upstream = try ProxyFixture.upstream()
        let request = ProxyFixture.request("GET", "/x", request, of: upstream)
        let found = fields.map { ProxyFixture.answer($0, form: form, of: upstream, for: request) }
        switch Decision(request, found, mode: mode, now: now) {
        case .serve(_, .hit(isStale: false)): return "hit"
        case .serve(_, .hit(isStale: true)): return "stale hit"
        case .serve(_, .offline(let isStale)): return isStale ? "offline stale" : "offline"
        case .serve: return "answer"
        case .serveAndRefresh: return "refresh behind"
        case .ask(let reason, let stored): return "ask \(reason.rawValue)" + (stored == nil ? "" : " with stored")
        case .refuse(let problem): return "\(problem.status)"
        }
    }

    @Test func `under a route with cache never, nothing is looked up or served`() throws {
        let upstream = try ProxyFixture.upstream {
            var route = Configuration.Route(declaration: RouteDeclaration(path: "x"))
            route.overrides.cache = .never
            $0.routes = [route]
        }
        let request = ProxyFixture.request("GET", "/x", of: upstream)
        #expect(!request.isShareable)
        let found = ProxyFixture.answer(minute, of: upstream, for: request)
        guard case .ask(.bypass, stored: nil) = Decision(request, found, mode: .online, now: 1_001),
            case .refuse = Decision(request, found, mode: .offline, now: 1_001)
        else {
            Issue.record("what was stored before is used")
            return
        }
    }

    @Test func `the decision says why nothing was found`() throws {
        let request = ProxyFixture.request("GET", "/x", of: try ProxyFixture.upstream())
        guard case .ask(.varyMiss, stored: nil) = Decision(request, nil, absence: .varyMiss, mode: .online, now: 1_000)
        else {
            Issue.record("another reason was given")
            return
        }
    }

    private let minute = [("Cache-Control", "max-age=60")]

    @Test func `an unknown response is fetched, or refused where asking is forbidden`() throws {
        #expect(try outcome(nil, now: 1_000) == "ask uri-miss")
        #expect(try outcome(nil, request: [("Cache-Control", "only-if-cached")], now: 1_000) == "504")
        #expect(try outcome(nil, mode: .offline, now: 1_000) == "504")
    }

    @Test func `a fresh response is served in both modes`() throws {
        #expect(try outcome(minute, now: 1_030) == "hit")
        #expect(try outcome(minute, mode: .offline, now: 1_030) == "hit")
    }

    @Test func `a stale response is fetched again, or served and marked as offline`() throws {
        #expect(try outcome(minute, now: 1_100) == "ask stale with stored")
        #expect(try outcome(minute, mode: .offline, now: 1_100) == "offline stale")
        #expect(try outcome(minute, request: [("Cache-Control", "only-if-cached")], now: 1_100) == "504")
    }

    @Test func `a client may take stale responses, or insist on new ones`() throws {
        #expect(try outcome(minute, request: [("Cache-Control", "max-stale=60")], now: 1_100) == "stale hit")
        #expect(
            try outcome(minute, request: [("Cache-Control", "max-stale=10")], now: 1_100) == "ask stale with stored"
        )
        #expect(try outcome(minute, request: [("Cache-Control", "no-cache")], now: 1_010) == "ask request with stored")
        #expect(try outcome(minute, request: [("Cache-Control", "max-age=5")], now: 1_010) == "ask request with stored")
    }

    @Test func `stale-while-revalidate serves the response and refreshes it in the background`() throws {
        let fields = [("Cache-Control", "max-age=60, stale-while-revalidate=100")]
        #expect(try outcome(fields, now: 1_100) == "refresh behind")
        #expect(try outcome(fields, now: 1_200) == "ask stale with stored")
    }

    @Test func `a response that cannot show known newer values is fetched again, and served only offline`()
        throws
    {
        #expect(try outcome(minute, form: .outdated, now: 1_010) == "ask stale with stored")
        #expect(try outcome(minute, form: .outdated, mode: .offline, now: 1_010) == "offline stale")
    }
}
