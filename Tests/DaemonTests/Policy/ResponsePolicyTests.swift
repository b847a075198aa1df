import Testing

@testable import Daemon

@Suite struct StorabilityTests {
    private typealias Lines = [(String, String)]
    private static let get = RequestFacts(method: "GET")
    private static let authorized = RequestFacts(method: "GET", hasAuthorization: true)

    @Test(
        arguments: [
            (200, [], .yes),
            (200, [("Cache-Control", "max-age=60")], .yes),
            (200, [("Cache-Control", "no-cache")], .yes),
            (200, [("Cache-Control", "private")], .yes),
            (200, [("Cache-Control", "no-store")], .no(.noStore)),
            (200, [("Cache-Control", "max-age=60"), ("Cache-Control", "NO-STORE=1")], .no(.noStore)),
            (200, [("Cache-Control", "no-store, must-understand, max-age=60")], .yes),
            (599, [("Cache-Control", "no-store, must-understand, max-age=60")], .no(.notUnderstood)),
            (599, [("Cache-Control", "must-understand, max-age=60")], .no(.notUnderstood)),
            (599, [("Cache-Control", "max-age=60")], .yes),
            (600, [("Cache-Control", "max-age=60")], .no(.notUnderstood)),
            (200, [("Vary", "a, *"), ("Cache-Control", "max-age=60")], .no(.varyAny)),
            (202, [("Cache-Control", "max-age=60")], .no(.askAgain)),
            (206, [("Cache-Control", "max-age=60")], .no(.partial)),
            (304, [("Cache-Control", "max-age=60")], .no(.notModified)),
            (103, [("Cache-Control", "max-age=60")], .no(.interim)),
            (416, [("Cache-Control", "max-age=60")], .yes),
            (412, [("Cache-Control", "max-age=60")], .yes),
            (302, [], .no(.notExplicit)),
            (302, [("Cache-Control", "max-age=60")], .yes),
            (302, [("Expires", "0")], .yes),
            (302, [("Cache-Control", "public")], .yes),
            (302, [("Cache-Control", "private")], .yes),
            (302, [("Cache-Control", "s-maxage=60")], .no(.notExplicit)),
            (500, [], .no(.notExplicit)),
            (503, [("Cache-Control", "max-age=60")], .yes),
            (404, [], .yes),
            (403, [], .no(.notExplicit)),
        ] as [(Int, [(String, String)], Storability)]
    )
    func `a private cache stores what RFC 9111 §3 lets it`(
        _ status: Int,
        _ lines: [(String, String)],
        _ expected: Storability
    ) {
        #expect(policy(lines, status: status).storability == expected)
        // A private cache holds answers for one principal, so a credential changes nothing (§3.5).
        #expect(policy(lines, status: status, request: Self.authorized).storability == expected)
    }

    @Test(arguments: [203, 204, 300, 301, 308, 404, 405, 410, 414, 501])
    func `some statuses may be stored without a word`(_ status: Int) {
        #expect(policy([], status: status).storability == .yes)
    }

    @Test(
        arguments: [
            (false, "max-age=60", .yes),
            (false, "private", .no(.isPrivate)),
            (false, "private=\"x\", max-age=60", .yes),
            (false, "private=\"\", max-age=60", .no(.isPrivate)),
            (false, "s-maxage=60", .yes),
            (true, "max-age=60", .no(.authorization)),
            (true, "max-age=60, public", .yes),
            (true, "max-age=60, must-revalidate", .yes),
            (true, "s-maxage=60", .yes),
            (true, "max-age=60, proxy-revalidate", .no(.authorization)),
            (true, "max-age=60, private", .no(.isPrivate)),
        ] as [(Bool, String, Storability)]
    )
    func `a shared cache minds private and Authorization`(
        _ isAuthorized: Bool,
        _ value: String,
        _ expected: Storability
    ) {
        let request = RequestFacts(method: "GET", hasAuthorization: isAuthorized)
        #expect(policy([("Cache-Control", value)], request: request, shared: true).storability == expected)
    }

    @Test func `fields named by private are kept out of a shared store only`() {
        let lines = [("Cache-Control", "private=\"X-A\", no-cache=\"X-B\"")]
        #expect(policy(lines, shared: true).fieldsNotStored == [bytes("x-a")])
        #expect(policy(lines).fieldsNotStored.isEmpty)
        #expect(policy(lines).fieldsNotReused == [bytes("x-b")])
    }

    @Test(
        arguments: [
            ("HEAD", [], .yes),
            ("POST", [("Cache-Control", "max-age=60")], .no(.method)),
            ("POST", [("Content-Location", "/x")], .no(.method)),
            ("POST", [("Cache-Control", "max-age=60"), ("Content-Location", "/x")], .yes),
            ("PUT", [("Cache-Control", "max-age=60"), ("Content-Location", "/x")], .no(.method)),
            ("get", [("Cache-Control", "max-age=60")], .no(.method)),
            ("FOO", [("Cache-Control", "max-age=60")], .no(.method)),
            ("OPTIONS", [("Cache-Control", "max-age=60")], .no(.method)),
        ] as [(String, [(String, String)], Storability)]
    )
    func `methods other than GET and HEAD are not stored`(
        _ method: String,
        _ lines: [(String, String)],
        _ expected: Storability
    ) {
        #expect(policy(lines, request: RequestFacts(method: method)).storability == expected)
    }

    @Test func `the request's no-store holds`() {
        let request = RequestFacts(method: "GET", directives: asking("no-store"))
        var route = Settings.Overrides()
        #expect(policy([], request: request).storability == .no(.requestNoStore))
        route.cache = .force
        #expect(policy([], request: request, route: route).storability == .no(.requestNoStore))
    }

    @Test func `a route may forbid and force`() {
        var never = Settings.Overrides()
        never.cache = .never
        #expect(policy([("Cache-Control", "max-age=60")], route: never).storability == .no(.neverByRoute))
        var force = Settings.Overrides()
        force.cache = .force
        #expect(
            policy([("Cache-Control", "no-store, private"), ("Vary", "*")], shared: true, route: force).storability
                == .yes
        )
        #expect(policy([], status: 202, route: force).storability == .no(.askAgain))
        var fresh = Settings.Overrides()
        fresh.fresh = .seconds(60)
        #expect(policy([], status: 302, route: fresh).storability == .yes)
        #expect(policy([("Cache-Control", "no-store")], route: fresh).storability == .no(.noStore))
    }
}

@Suite struct FreshnessLifetimeTests {
    private static let now = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")

    @Test(
        arguments: [
            ([], 0, .none),
            ([("Cache-Control", "max-age=60")], 60, .maxAge),
            ([("Cache-Control", "max-age=60"), ("Expires", "0")], 60, .maxAge),
            ([("Cache-Control", "max-age=0"), ("Expires", "Sun, 06 Nov 1994 09:49:37 GMT")], 0, .maxAge),
            ([("Cache-Control", "max-age=x"), ("Expires", "Sun, 06 Nov 1994 09:49:37 GMT")], 0, .maxAge),
            ([("Cache-Control", "s-maxage=5")], 0, .none),
            ([("Cache-Control", "s-maxage=5, max-age=60")], 60, .maxAge),
            ([now, ("Expires", "Sun, 06 Nov 1994 09:49:37 GMT")], 3600, .expires),
            ([("Expires", "Sun, 06 Nov 1994 09:49:37 GMT")], 3600, .expires),
            ([("Date", "never"), ("Expires", "Sun, 06 Nov 1994 09:49:37 GMT")], 3600, .expires),
            (
                [("Date", "Sun, 06 Nov 1994 08:39:37 GMT"), ("Expires", "Sun, 06 Nov 1994 09:49:37 GMT")], 4200,
                .expires
            ),
            ([now, ("Expires", "Sun, 06 Nov 1994 08:49:37 GMT")], 0, .expires),
            ([now, ("Expires", "Sun, 06 Nov 1990 08:49:37 GMT")], 0, .expires),
            ([now, ("Expires", "0")], 0, .expires),
            ([now, ("Expires", "")], 0, .expires),
            ([now, ("Expires", "tomorrow")], 0, .expires),
            ([now, ("Expires", "Sun, 06 Nov 1994 09:49:37 CET")], 0, .expires),
            ([now, ("Expires", "Sun, 06 Nov 1994 09:49:37 GMT"), ("Expires", "0")], 0, .expires),
            (
                [now, ("Expires", "Sun, 06 Nov 1994 09:49:37 GMT"), ("Expires", "Sun, 06 Nov 1994 08:50:37 GMT")], 60,
                .expires
            ),
            ([now, ("Expires", "Sunday, 06-Nov-94 09:49:37 GMT")], 3600, .expires),
            ([now, ("Expires", "Sun Nov  6 09:49:37 1994")], 3600, .expires),
            ([now, ("Expires", "Sun, 06 Nov 9994 09:49:37 GMT")], 2_147_483_648, .expires),
            // A tenth of the time since the last change, at most a day.
            ([now, ("Last-Modified", "Sun, 06 Nov 1994 08:32:57 GMT")], 100, .heuristic),
            ([now, ("Last-Modified", "Sun, 06 Nov 1990 08:32:57 GMT")], 86_400, .heuristic),
            ([now, ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")], 0, .none),
            ([now, ("Last-Modified", "Sun, 06 Nov 1995 08:49:37 GMT")], 0, .none),
            ([now, ("Last-Modified", "yesterday")], 0, .none),
            ([now, ("Last-Modified", "Sun, 06 Nov 1994 08:32:57 GMT"), ("Expires", "0")], 0, .expires),
        ] as [([(String, String)], Int64, AnswerPolicy.LifetimeSource)]
    )
    func `a private cache takes the first that is there`(
        _ lines: [(String, String)],
        _ seconds: Int64,
        _ source: AnswerPolicy.LifetimeSource
    ) {
        let answer = policy(lines).answer
        #expect(answer.lifetime == seconds)
        #expect(answer.lifetimeSource == source)
    }

    @Test(
        arguments: [
            ([("Cache-Control", "s-maxage=5, max-age=60")], 5, .sMaxAge),
            ([("Cache-Control", "s-maxage=600, max-age=60")], 600, .sMaxAge),
            ([("Cache-Control", "s-maxage=x, max-age=60")], 0, .sMaxAge),
            ([("Cache-Control", "s-maxage=5"), ("Expires", "Sun, 06 Nov 1994 09:49:37 GMT")], 5, .sMaxAge),
            ([("Cache-Control", "max-age=60")], 60, .maxAge),
        ] as [([(String, String)], Int64, AnswerPolicy.LifetimeSource)]
    )
    func `a shared cache takes s-maxage first`(
        _ lines: [(String, String)],
        _ seconds: Int64,
        _ source: AnswerPolicy.LifetimeSource
    ) {
        let answer = policy(lines, shared: true).answer
        #expect(answer.lifetime == seconds)
        #expect(answer.lifetimeSource == source)
    }

    @Test(arguments: [(200, 100), (404, 100), (301, 100), (302, 0), (403, 0), (500, 0)] as [(Int, Int64)])
    func `the heuristic is for statuses that allow it`(_ status: Int, _ seconds: Int64) {
        let lines = [Self.now, ("Last-Modified", "Sun, 06 Nov 1994 08:32:57 GMT")]
        #expect(policy(lines, status: status).answer.lifetime == seconds)
        #expect(policy(lines + [("Cache-Control", "public")], status: status).answer.lifetime == 100)
    }

    @Test func `a targeted field replaces Cache-Control and Expires`() {
        let lines = [("Cache-Control", "no-store"), ("Expires", "Sun, 06 Nov 1994 09:49:37 GMT")]
        let short = policy(lines + [("Larder-Cache-Control", "max-age=60")])
        #expect(short.storability == .yes)
        #expect(short.answer.lifetime == 60)
        #expect(short.answer.lifetimeSource == .targeted)
        let silent = policy(lines + [("Larder-Cache-Control", "no-transform")])
        #expect(silent.answer.lifetime == 0)
        let broken = policy(lines + [("Larder-Cache-Control", "max-age==60")])
        #expect(broken.storability == .no(.noStore))
        #expect(policy(lines + [("CDN-Cache-Control", "max-age=60")]).storability == .no(.noStore))
    }

    @Test(
        arguments: [
            // Date, Age, requested, received, expected
            (0, nil, 0, 0, 0), (-100, nil, 0, 0, 100), (100, nil, 0, 0, 0), (0, "50", 0, 0, 50),
            (-100, "50", 0, 0, 100),
            (0, "50", -5, 0, 55), (0, nil, -5, 0, 5), (0, "-50", 0, 0, 0), (0, "99999999999", -5, 0, 2_147_483_648),
            (0, "50", 5, 0, 50),
        ] as [(Int64, String?, Int64, Int64, Int64)]
    )
    func `the initial age is that of RFC 9111 §4.2.3`(
        _ dated: Int64,
        _ age: String?,
        _ requested: Int64,
        _ received: Int64,
        _ expected: Int64
    ) {
        let answer = policy(
            [("Date", date(exampleDate + dated))] + (age.map { [("Age", $0)] } ?? []),
            requestTime: exampleDate + requested,
            responseTime: exampleDate + received
        ).answer
        #expect(answer.initialAge == expected)
        #expect(!answer.flags.contains(.dateAssumed))
    }

    @Test func `a missing or broken Date is the time of arrival`() {
        for lines in [[], [("Date", "x")]] as [[(String, String)]] {
            let answer = policy(lines).answer
            #expect(answer.date == exampleDate)
            #expect(answer.flags.contains(.dateAssumed))
        }
    }

    @Test func `flags come from directives`() {
        #expect(
            policy([("Cache-Control", "no-cache, must-revalidate, immutable, no-transform"), ("ETag", "\"a\"")]).answer
                .flags == [.noCache, .mustRevalidate, .immutable, .dateAssumed]
        )
        #expect(policy([("Cache-Control", "proxy-revalidate, s-maxage=1")]).answer.flags == .dateAssumed)
        #expect(policy([("Cache-Control", "proxy-revalidate")], shared: true).answer.flags.contains(.mustRevalidate))
        #expect(policy([("Cache-Control", "s-maxage=1")], shared: true).answer.flags.contains(.mustRevalidate))
    }
}

@Suite struct AnswerPolicyTests {
    @Test func `bytes give the same policy back`() throws {
        var answer = policy([
            ("Cache-Control", "max-age=60, no-cache, stale-if-error=7"), ("Age", "3"), ("ETag", "\"a\""),
        ]).answer
        answer.status = 404
        answer.lastModified = 1
        answer.staleWhileRevalidate = 9
        #expect(AnswerPolicy(bytes: answer.bytes) == answer)
        for source in AnswerPolicy.LifetimeSource.allCases {
            answer.lifetimeSource = source
            #expect(AnswerPolicy(bytes: answer.bytes) == answer)
        }
    }

    @Test func `bytes of another form are refused`() {
        let bytes = policy([]).answer.bytes
        #expect(AnswerPolicy(bytes: []) == nil)
        #expect(AnswerPolicy(bytes: bytes.dropLast()) == nil)
        #expect(AnswerPolicy(bytes: bytes + [0]) == nil)
        #expect(AnswerPolicy(bytes: [bytes[0] + 1] + bytes.dropFirst()) == nil)
        var unknownSource = bytes
        unknownSource[81] = 200
        #expect(AnswerPolicy(bytes: unknownSource) == nil)
    }

    @Test func `a route's fresh replaces lifetime and no-cache, not must-revalidate`() {
        var route = Settings.Overrides()
        route.fresh = .seconds(300)
        let answer = policy([("Cache-Control", "no-cache, must-revalidate, max-age=1")]).answer.applying(route)
        #expect(answer.lifetime == 300)
        #expect(answer.lifetimeSource == .route)
        #expect(answer.flags.contains(.mustRevalidate))
        #expect(!answer.flags.contains(.noCache))
    }

    @Test func `force makes everything reusable for ever, or for as long as fresh says`() {
        var route = Settings.Overrides()
        route.cache = .force
        let answer = policy([("Cache-Control", "no-store, no-cache, must-revalidate")]).answer
        #expect(answer.applying(route).reuse(at: exampleDate + 1_000_000_000, for: .none).isServable)
        route.fresh = .seconds(10)
        #expect(!answer.applying(route).reuse(at: exampleDate + 10, for: .none).isServable)
        #expect(!answer.reuse(at: exampleDate, for: .none).isServable)
    }

    @Test(
        arguments: [
            (404, "", 30, .negative), (410, "", 30, .negative), (404, "max-age=5", 5, .maxAge),
            (404, "no-cache", 0, .none),
            (200, "", 0, .none), (403, "", 0, .none),
        ] as [(Int, String, Int64, AnswerPolicy.LifetimeSource)]
    )
    func `negative is for answers of absence that name no lifetime`(
        _ status: Int,
        _ control: String,
        _ lifetime: Int64,
        _ source: AnswerPolicy.LifetimeSource
    ) {
        var route = Settings.Overrides()
        route.negative = .seconds(30)
        let answer = policy([("Cache-Control", control)], status: status).answer.applying(route)
        #expect(answer.lifetime == lifetime)
        #expect(answer.lifetimeSource == source)
    }
}

@Suite struct ReuseTests {
    private func reuse(
        _ control: String,
        after seconds: Int64,
        _ asked: String = "",
        shared: Bool = false,
        route: Settings.Overrides = Settings.Overrides()
    )
        -> Reuse
    {
        policy([("Cache-Control", control)], shared: shared).answer.applying(route)
            .reuse(at: exampleDate + seconds, for: asking(asked))
    }

    @Test(
        arguments: [
            ("max-age=60", 0, "", .fresh(age: 0, timeToLive: 60)),
            ("max-age=60", 59, "", .fresh(age: 59, timeToLive: 1)),
            ("max-age=60", 60, "", .stale(age: 60, staleness: 0, allowed: [.onError, .whileDisconnected])),
            ("max-age=60", -10, "", .fresh(age: 0, timeToLive: 60)),
            ("max-age=60, no-cache", 0, "", .mustValidate(age: 0, reason: .noCache, otherwise: [])),
            ("max-age=60, must-revalidate", 10, "", .fresh(age: 10, timeToLive: 50)),
            ("max-age=60, must-revalidate", 70, "", .mustValidate(age: 70, reason: .mustRevalidate, otherwise: [])),
            (
                "max-age=60, must-revalidate", 70, "max-stale",
                .mustValidate(age: 70, reason: .mustRevalidate, otherwise: [])
            ),
            (
                "max-age=60, proxy-revalidate", 70, "",
                .stale(age: 70, staleness: 10, allowed: [.onError, .whileDisconnected])
            ),
            ("max-age=60", 10, "no-cache", .mustValidate(age: 10, reason: .requestNoCache, otherwise: [])),
            (
                "max-age=60", 10, "max-age=5",
                .mustValidate(age: 10, reason: .requestMaxAge, otherwise: [.onError, .whileDisconnected])
            ),
            ("max-age=60", 10, "max-age=10", .fresh(age: 10, timeToLive: 50)),
            (
                "max-age=60", 0, "max-age=0",
                .mustValidate(age: 0, reason: .requestMaxAge, otherwise: [.onError, .whileDisconnected])
            ),
            (
                "max-age=60", 1, "max-age=0",
                .mustValidate(age: 1, reason: .requestMaxAge, otherwise: [.onError, .whileDisconnected])
            ),
            ("max-age=60", 10, "min-fresh=50", .fresh(age: 10, timeToLive: 50)),
            (
                "max-age=60", 10, "min-fresh=51",
                .mustValidate(age: 10, reason: .requestMinFresh, otherwise: [.onError, .whileDisconnected])
            ),
            (
                "max-age=60", 70, "max-stale=10",
                .stale(age: 70, staleness: 10, allowed: [.byRequest, .onError, .whileDisconnected])
            ),
            (
                "max-age=60", 71, "max-stale=10",
                .stale(age: 71, staleness: 11, allowed: [.onError, .whileDisconnected])
            ),
            (
                "max-age=60", 1000, "max-stale",
                .stale(age: 1000, staleness: 940, allowed: [.byRequest, .onError, .whileDisconnected])
            ),
            (
                "max-age=60, stale-while-revalidate=10", 70, "",
                .stale(age: 70, staleness: 10, allowed: [.whileRevalidating, .onError, .whileDisconnected])
            ),
            (
                "max-age=60, stale-while-revalidate=10", 71, "",
                .stale(age: 71, staleness: 11, allowed: [.onError, .whileDisconnected])
            ),
            (
                "max-age=60, stale-while-revalidate=10, must-revalidate", 65, "",
                .mustValidate(age: 65, reason: .mustRevalidate, otherwise: [])
            ),
            (
                "max-age=60, stale-if-error=10", 70, "",
                .stale(age: 70, staleness: 10, allowed: [.onError, .whileDisconnected])
            ),
            ("max-age=60, stale-if-error=10", 71, "", .stale(age: 71, staleness: 11, allowed: .whileDisconnected)),
            (
                "max-age=60, stale-if-error=10", 71, "stale-if-error=20",
                .stale(age: 71, staleness: 11, allowed: [.onError, .whileDisconnected])
            ),
            (
                "max-age=60, stale-while-revalidate=100", 70, "max-age=100",
                .stale(age: 70, staleness: 10, allowed: [.onError, .whileDisconnected])
            ),
            ("max-age=60", 10, "only-if-cached", .fresh(age: 10, timeToLive: 50)),
            ("no-cache=\"x\", max-age=60", 10, "", .fresh(age: 10, timeToLive: 50)),
        ] as [(String, Int64, String, Reuse)]
    )
    func `a stored answer is reused as it and the request allow`(
        _ control: String,
        _ seconds: Int64,
        _ asked: String,
        _ expected: Reuse
    ) {
        #expect(reuse(control, after: seconds, asked) == expected)
    }

    @Test func `a shared cache serves nothing stale past s-maxage and proxy-revalidate`() {
        #expect(
            reuse("s-maxage=60", after: 70, shared: true)
                == .mustValidate(age: 70, reason: .mustRevalidate, otherwise: [])
        )
        #expect(
            reuse("max-age=60, proxy-revalidate", after: 70, shared: true)
                == .mustValidate(age: 70, reason: .mustRevalidate, otherwise: [])
        )
    }

    @Test func `a route's stale lets stale answers be served meanwhile and on errors`() {
        var route = Settings.Overrides()
        route.stale = .seconds(100)
        #expect(
            reuse("max-age=60, must-revalidate", after: 160, route: route)
                == .stale(age: 160, staleness: 100, allowed: [.whileRevalidating, .onError, .whileDisconnected])
        )
        #expect(
            reuse("max-age=60", after: 161, route: route)
                == .stale(age: 161, staleness: 101, allowed: .whileDisconnected)
        )
        #expect(reuse("no-cache", after: 1, route: route) == .mustValidate(age: 1, reason: .noCache, otherwise: []))
    }

    @Test func `a route's never reuses nothing`() {
        var route = Settings.Overrides()
        route.cache = .never
        #expect(
            reuse("max-age=60", after: 1, route: route) == .mustValidate(age: 1, reason: .notReusable, otherwise: [])
        )
    }

    @Test func `the age grows from the initial one`() {
        let answer = policy([("Cache-Control", "max-age=60"), ("Age", "50")]).answer
        #expect(answer.reuse(at: exampleDate + 9, for: .none) == .fresh(age: 59, timeToLive: 1))
        #expect(!answer.reuse(at: exampleDate + 10, for: .none).isServable)
    }
}
