import DaemonTestSupport
import Testing

@testable import CachePolicy

/// RFC 9111 §4: whether a stored response is reused for a request, at a time.
@Suite struct ReuseTests {
    private func reuse(
        _ control: String,
        after seconds: Int64,
        _ asked: String = "",
        shared: Bool = false,
        route: CacheOverrides = CacheOverrides()
    )
        -> Reuse
    {
        policy([("Cache-Control", control)], shared: shared).stored.applying(route)
            .reuse(at: exampleDate + seconds, for: asking(asked))
    }

    @Test(
        arguments: [
            ("max-age=60", 0, "", .fresh(age: 0, timeToLive: 60)),
            ("max-age=60", 59, "", .fresh(age: 59, timeToLive: 1)),
            ("max-age=60", 60, "", .stale(age: 60, staleness: 0, allowed: [.onError])),
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
                .stale(age: 70, staleness: 10, allowed: [.onError])
            ),
            ("max-age=60", 10, "no-cache", .mustValidate(age: 10, reason: .requestNoCache, otherwise: [])),
            (
                "max-age=60", 10, "max-age=5",
                .mustValidate(age: 10, reason: .requestMaxAge, otherwise: [.onError])
            ),
            ("max-age=60", 10, "max-age=10", .fresh(age: 10, timeToLive: 50)),
            (
                "max-age=60", 0, "max-age=0",
                .mustValidate(age: 0, reason: .requestMaxAge, otherwise: [.onError])
            ),
            (
                "max-age=60", 1, "max-age=0",
                .mustValidate(age: 1, reason: .requestMaxAge, otherwise: [.onError])
            ),
            ("max-age=60", 10, "min-fresh=50", .fresh(age: 10, timeToLive: 50)),
            (
                "max-age=60", 10, "min-fresh=51",
                .mustValidate(age: 10, reason: .requestMinFresh, otherwise: [.onError])
            ),
            (
                "max-age=60", 70, "max-stale=10",
                .stale(age: 70, staleness: 10, allowed: [.byRequest, .onError])
            ),
            (
                "max-age=60", 71, "max-stale=10",
                .stale(age: 71, staleness: 11, allowed: [.onError])
            ),
            (
                "max-age=60", 1000, "max-stale",
                .stale(age: 1000, staleness: 940, allowed: [.byRequest, .onError])
            ),
            (
                "max-age=60, stale-while-revalidate=10", 70, "",
                .stale(age: 70, staleness: 10, allowed: [.whileRevalidating, .onError])
            ),
            (
                "max-age=60, stale-while-revalidate=10", 71, "",
                .stale(age: 71, staleness: 11, allowed: [.onError])
            ),
            (
                "max-age=60, stale-while-revalidate=10, must-revalidate", 65, "",
                .mustValidate(age: 65, reason: .mustRevalidate, otherwise: [])
            ),
            (
                "max-age=60, stale-if-error=10", 70, "",
                .stale(age: 70, staleness: 10, allowed: [.onError])
            ),
            ("max-age=60, stale-if-error=10", 71, "", .stale(age: 71, staleness: 11, allowed: [])),
            (
                "max-age=60, stale-if-error=10", 71, "stale-if-error=20",
                .stale(age: 71, staleness: 11, allowed: [.onError])
            ),
            (
                "max-age=60, stale-while-revalidate=100", 70, "max-age=100",
                .stale(age: 70, staleness: 10, allowed: [.onError])
            ),
            ("max-age=60", 10, "only-if-cached", .fresh(age: 10, timeToLive: 50)),
            ("no-cache=\"x\", max-age=60", 10, "", .fresh(age: 10, timeToLive: 50)),
        ] as [(String, Int64, String, Reuse)]
    )
    func `a stored response is reused as its own directives and the request's allow`(
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

    @Test func `a route's stale allows stale responses during refreshes and on errors`() {
        var route = CacheOverrides()
        route.stale = .seconds(100)
        #expect(
            reuse("max-age=60, must-revalidate", after: 160, route: route)
                == .stale(age: 160, staleness: 100, allowed: [.whileRevalidating, .onError])
        )
        #expect(
            reuse("max-age=60", after: 161, route: route)
                == .stale(age: 161, staleness: 101, allowed: [])
        )
        #expect(reuse("no-cache", after: 1, route: route) == .mustValidate(age: 1, reason: .noCache, otherwise: []))
    }

    @Test func `under a route with cache never, nothing is reused`() {
        var route = CacheOverrides()
        route.cache = .never
        #expect(
            reuse("max-age=60", after: 1, route: route) == .mustValidate(age: 1, reason: .notReusable, otherwise: [])
        )
    }

    @Test func `the age grows from its initial value`() {
        let answer = policy([("Cache-Control", "max-age=60"), ("Age", "50")]).stored
        #expect(answer.reuse(at: exampleDate + 9, for: .none) == .fresh(age: 59, timeToLive: 1))
        #expect(!answer.reuse(at: exampleDate + 10, for: .none).isServable)
    }
}
