import Mapping
import Store
import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import Proxy
@testable import Settings
@testable import Upstream

@Suite struct PlanTests {
    private func plan(
        _ request: ProxyRequest,
        _ found: LookUpResult,
        mode: Mode = .online,
        now: Int64 = 1_001
    ) -> Plan {
        Plan(withoutLookUp: request, mode: mode) ?? Plan(request, found, mode: mode, limit: 1 << 20, now: now)
    }

    /// What a plan comes to, in words that a table can hold.
    private func words(_ plan: Plan) -> String {
        switch plan {
        case .serve(_, .hit(isStale: false), _): "hit"
        case .serve(_, .hit(isStale: true), _): "stale hit"
        case .serve(_, .offline(let isStale), _): isStale ? "offline stale" : "offline"
        case .serve(_, .backedOff, _): "backed off"
        case .serve(_, .unreachable, _): "unreachable"
        case .serve: "another response"
        case .serveAndRefresh(_, _, _, let inquiry): inquiry == nil ? "stale hit without refresh" : "hit and refresh"
        case .ask(let inquiry):
            "ask \(inquiry.request.reason.forward.rawValue)" + (inquiry.stored == nil ? "" : " with stored")
        case .write: "write"
        case .refuse(let problem): "\(problem.status)"
        case .refuseAndExpire(let problem): "\(problem.status) and expire"
        case .held(_, _, let instead): words(instead)
        }
    }

    private func outcome(
        _ fields: [(String, String)]?,
        request: [(String, String)] = [],
        method: String = "GET",
        form: StoredDocument.Form = .asReceived,
        mode: Mode = .online,
        now: Int64
    ) throws -> String {
        let upstream = try ProxyFixture.upstream()
        let request = ProxyFixture.request(method, "/x", request, of: upstream)
        let whole = fields.map { ProxyFixture.answer($0, form: form, of: upstream, for: request) }
        return words(plan(request, LookUpResult(whole: whole), mode: mode, now: now))
    }

    @Test func `under a route with cache never, no stored response is served`() throws {
        let upstream = try ProxyFixture.upstream {
            var route = Configuration.Route(declaration: RouteDeclaration(path: "x"))
            route.overrides.cache = .never
            $0.routes = [route]
        }
        let request = ProxyFixture.request("GET", "/x", of: upstream)
        #expect(!request.isShareable)
        let found = LookUpResult(whole: ProxyFixture.answer(minute, of: upstream, for: request))
        #expect(words(plan(request, found)) == "ask bypass")
        #expect(words(plan(request, found, mode: .offline)) == "504")
    }

    @Test func `the reason why nothing was found is passed on`() throws {
        let request = ProxyFixture.request("GET", "/x", of: try ProxyFixture.upstream())
        #expect(words(plan(request, LookUpResult(absence: .varyMiss))) == "ask vary-miss")
    }

    @Test func `a stored response that is not used has a reason in Cache-Status and in the sentence`() throws {
        let upstream = try ProxyFixture.upstream()
        func status(
            _ fields: [(String, String)],
            _ request: [(String, String)] = [],
            form: StoredDocument.Form = .asReceived,
            now: Int64
        ) -> String {
            let request = ProxyFixture.request("GET", "/x", request, of: upstream)
            let whole = ProxyFixture.answer(fields, form: form, of: upstream, for: request)
            let plan = plan(request, LookUpResult(whole: whole), now: now)
            let detail = plan.inquiry?.request.reason.detail
            #expect(detail.map { plan.sentence.hasSuffix($0.text) } ?? true)
            return plan.cacheStatus(now: now)
        }
        #expect(status(minute, now: 1_100) == "larder; fwd=stale")
        let mustRevalidate = [("Cache-Control", "max-age=60, must-revalidate")]
        #expect(status(mustRevalidate, now: 1_100) == "larder; fwd=stale; detail=must-revalidate")
        #expect(status([("Cache-Control", "no-cache")], now: 1_010) == "larder; fwd=stale; detail=no-cache")
        #expect(status(minute, form: .outdated(reason: "a"), now: 1_010) == "larder; fwd=stale; detail=outdated")
        for (directive, word) in [("no-cache", "no-cache"), ("max-age=5", "max-age"), ("min-fresh=90", "min-fresh")] {
            let expected = "larder; fwd=request; detail=request-\(word)"
            #expect(status(minute, [("Cache-Control", directive)], now: 1_010) == expected)
        }
    }

    private let minute = [("Cache-Control", "max-age=60")]

    @Test func `an unknown response is fetched, or refused with 504 if the upstream may not be asked`() throws {
        #expect(try outcome(nil, now: 1_000) == "ask uri-miss")
        #expect(try outcome(nil, request: [("Cache-Control", "only-if-cached")], now: 1_000) == "504")
        #expect(try outcome(nil, mode: .offline, now: 1_000) == "504")
    }

    @Test func `a fresh response is served in both modes`() throws {
        #expect(try outcome(minute, now: 1_030) == "hit")
        #expect(try outcome(minute, mode: .offline, now: 1_030) == "hit")
    }

    @Test func `a stale response is validated, and served in the offline mode`() throws {
        #expect(try outcome(minute, now: 1_100) == "ask stale with stored")
        #expect(try outcome(minute, mode: .offline, now: 1_100) == "offline stale")
        #expect(try outcome(minute, request: [("Cache-Control", "only-if-cached")], now: 1_100) == "504")
    }

    @Test func `a client may accept stale responses, or insist on new ones`() throws {
        #expect(try outcome(minute, request: [("Cache-Control", "max-stale=60")], now: 1_100) == "stale hit")
        #expect(
            try outcome(minute, request: [("Cache-Control", "max-stale=10")], now: 1_100) == "ask stale with stored"
        )
        #expect(try outcome(minute, request: [("Cache-Control", "no-cache")], now: 1_010) == "ask request with stored")
        #expect(try outcome(minute, request: [("Cache-Control", "max-age=5")], now: 1_010) == "ask request with stored")
    }

    @Test func `within stale-while-revalidate a response is served and refreshed, unless the request says no-store`()
        throws
    {
        let fields = [("Cache-Control", "max-age=60, stale-while-revalidate=100")]
        #expect(try outcome(fields, now: 1_100) == "hit and refresh")
        #expect(
            try outcome(fields, request: [("Cache-Control", "no-store")], now: 1_100) == "stale hit without refresh"
        )
        #expect(try outcome(fields, now: 1_200) == "ask stale with stored")
    }

    @Test func `a response that cannot show the newest values is fetched, and served only in the offline mode`() throws
    {
        #expect(try outcome(minute, form: .outdated(reason: ""), now: 1_010) == "ask stale with stored")
        #expect(try outcome(minute, form: .outdated(reason: ""), mode: .offline, now: 1_010) == "offline stale")
    }

    @Test func `conditions for the origin go there without a look-up, and are ignored in the offline mode`() throws {
        let condition = [("If-Match", "\"a\"")]
        #expect(try outcome(minute, request: condition, now: 1_010) == "ask bypass")
        #expect(try outcome(minute, request: condition, mode: .offline, now: 1_010) == "hit")
        let own = [("If-Match", "\"larder-0123456789abcdef0123456789abcdef\"")]
        #expect(try outcome(minute, request: own, now: 1_010) == "412 and expire")
        #expect(try outcome(minute, request: own, mode: .offline, now: 1_010) == "hit")
    }

    @Test func `methods other than GET and HEAD are passed on, and refused in the offline mode`() throws {
        #expect(try outcome(minute, method: "OPTIONS", now: 1_010) == "ask method")
        #expect(try outcome(minute, method: "PUT", now: 1_010) == "write")
        for method in ["OPTIONS", "PUT"] {
            #expect(try outcome(minute, method: method, mode: .offline, now: 1_010) == "504")
        }
    }

    @Test func `a back-off concerns only requests that would be sent, and serves a stale response if allowed`() throws {
        let upstream = try ProxyFixture.upstream()
        let backOff = BackOff(status: 429, scope: .credential, until: 7_000_000_000)
        func held(_ fields: [(String, String)]?, _ request: [(String, String)] = [], _ method: String = "GET")
            -> (String, String)
        {
            let request = ProxyFixture.request(method, "/x", request, of: upstream)
            let whole = fields.map { ProxyFixture.answer($0, of: upstream, for: request) }
            let plan = plan(request, LookUpResult(whole: whole), now: 1_100)
                .held(by: .backOff(backOff, at: 0), now: 1_100)
            return (words(plan), plan.sentence)
        }
        #expect(held([("Cache-Control", "max-age=600")]).0 == "hit")
        let sentence =
            "the upstream responded with 429 and Retry-After, which applies to everything that this credential asks for; "
            + "Larder asks it again in 7 s"
        #expect(held(minute) == ("backed off", sentence))
        #expect(held([("Cache-Control", "max-age=60, must-revalidate")]).0 == "429")
        #expect(held(nil).0 == "429")
        #expect(held(minute, [("If-Match", "\"a\"")]).0 == "429")
        #expect(held([("Cache-Control", "max-age=60, stale-while-revalidate=100")]).0 == "hit and refresh")
        #expect(held(nil, [], "OPTIONS").0 == "ask method")
        #expect(held(nil, [], "PUT").0 == "write")
    }

    @Test func `an upstream that cannot be reached holds back all requests that would be sent, also writes`() throws {
        let upstream = try ProxyFixture.upstream()
        let hold = Hold.outage(Outage(error: .refused("Connection refused"), secondsLeft: 2))
        func held(_ fields: [(String, String)]?, _ request: [(String, String)] = [], _ method: String = "GET") -> Plan {
            let request = ProxyFixture.request(method, "/x", request, of: upstream)
            let whole = fields.map { ProxyFixture.answer($0, of: upstream, for: request) }
            return plan(request, LookUpResult(whole: whole), mode: .auto, now: 1_100).held(by: hold, now: 1_100)
        }
        #expect(words(held([("Cache-Control", "max-age=600")])) == "hit")
        #expect(words(held(minute)) == "unreachable")
        #expect(held(minute).sentence.contains("Connection refused); Larder looks again in 2 s"))
        #expect(words(held([("Cache-Control", "max-age=60, must-revalidate")])) == "504")
        #expect(words(held([("Cache-Control", "max-age=60, stale-if-error=1")])) == "504")
        #expect(words(held(minute, [("Cache-Control", "no-cache")])) == "504")
        for method in ["GET", "OPTIONS", "PUT"] {
            guard case .held(_, _, instead: .refuse(let problem)) = held(nil, [], method) else {
                Issue.record("\(method)")
                continue
            }
            #expect(problem.status == 504 && problem.retryAfter == 2)
            #expect(problem.detail?.contains("\(method) was not sent") == true)
        }
    }

    @Test func `a request waits for a limit that is reset soon, unless something stored is served`() throws {
        let upstream = try ProxyFixture.upstream { $0.budget.wait = .seconds(10) }
        func pause(_ backOff: BackOff, _ fields: [(String, String)]? = nil, _ method: String = "GET") -> Duration? {
            let request = ProxyFixture.request(method, "/x", of: upstream)
            let whole = fields.map { ProxyFixture.answer($0, of: upstream, for: request) }
            let unheld = plan(request, LookUpResult(whole: whole), now: 1_100)
            let plan = unheld.held(by: .backOff(backOff, at: 1_000_000_000), now: 1_100)
            // After the wait, what was wanted is sent.
            #expect(words(plan.unheld) == words(unheld))
            return plan.pause
        }
        func limit(until seconds: UInt64, _ scope: BackOff.Scope = .credential) -> BackOff {
            BackOff(status: 429, scope: scope, until: seconds * 1_000_000_000, isForLimit: true)
        }
        #expect(pause(limit(until: 8)) == .milliseconds(7_020))
        #expect(pause(limit(until: 8), nil, "PUT") == .milliseconds(7_020))
        #expect(pause(limit(until: 12)) == nil)
        #expect(pause(limit(until: 8), minute) == nil)
        // It is not known that a write counts against the limit, so it is sent.
        #expect(pause(limit(until: 8, .segment("x")), nil, "PUT") == nil)
        #expect(pause(BackOff(status: 503, scope: .credential, until: 8_000_000_000)) == nil)
    }

    @Test func `a plan that is held back contains the request that would have been sent`() throws {
        let upstream = try ProxyFixture.upstream()
        let request = ProxyFixture.request("GET", "/x", of: upstream)
        let stored = ProxyFixture.answer(minute, of: upstream, for: request)
        let unheld = plan(request, LookUpResult(whole: stored), mode: .auto, now: 1_100)
        let outage = Hold.outage(Outage(error: .refused("Connection refused"), secondsLeft: 2))
        let held = unheld.held(by: outage, now: 1_100)
        #expect(held.inquiry == nil && held.unheld.inquiry?.stored === stored && held.pause == nil)
        #expect(words(held.held(by: outage, now: 1_100)) == words(held))
    }

    @Test func `after the patience only a response that is stale by age, and may be served stale, is served`() throws {
        let upstream = try ProxyFixture.upstream()
        func use(
            _ fields: [(String, String)]?,
            _ request: [(String, String)] = [],
            form: StoredDocument.Form = .asReceived,
            now: Int64 = 1_100
        ) -> CacheUse? {
            let request = ProxyFixture.request("GET", "/x", request, of: upstream)
            let whole = fields.map { ProxyFixture.answer($0, form: form, of: upstream, for: request) }
            return plan(request, LookUpResult(whole: whole), now: now).inPlaceOfSlowResponse?.use
        }
        guard case .meanwhile? = use(minute) else {
            Issue.record("a stale response is not served")
            return
        }
        // Another fetch may have brought a new one.
        guard case .hit(isStale: false)? = use(minute, now: 1_010) else {
            Issue.record("a fresh response is not served")
            return
        }
        #expect(use(nil) == nil)
        #expect(use([("Cache-Control", "max-age=60, must-revalidate")]) == nil)
        #expect(use([("Cache-Control", "no-cache")]) == nil)
        #expect(use([("Cache-Control", "max-age=60, stale-if-error=1")]) == nil)
        #expect(use(minute, form: .outdated(reason: "")) == nil)
        for directive in ["no-cache", "max-age=0", "max-age=10", "min-fresh=10"] {
            #expect(use(minute, [("Cache-Control", directive)]) == nil, "\(directive)")
        }
    }
}
