import DaemonTestSupport
import Testing

@testable import CachePolicy

/// RFC 9111 §4.2: how long a response is fresh, how old it is on arrival, and what else is read from its fields.
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
        ] as [([(String, String)], Int64, StoredPolicy.LifetimeSource)]
    )
    func `a private cache uses the first source of a lifetime that is present`(
        _ lines: [(String, String)],
        _ seconds: Int64,
        _ source: StoredPolicy.LifetimeSource
    ) {
        let answer = policy(lines).stored
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
        ] as [([(String, String)], Int64, StoredPolicy.LifetimeSource)]
    )
    func `a shared cache takes s-maxage first`(
        _ lines: [(String, String)],
        _ seconds: Int64,
        _ source: StoredPolicy.LifetimeSource
    ) {
        let answer = policy(lines, shared: true).stored
        #expect(answer.lifetime == seconds)
        #expect(answer.lifetimeSource == source)
    }

    @Test(arguments: [(200, 100), (404, 100), (301, 100), (302, 0), (403, 0), (500, 0)] as [(Int, Int64)])
    func `the heuristic lifetime applies only to statuses that allow it`(_ status: Int, _ seconds: Int64) {
        let lines = [Self.now, ("Last-Modified", "Sun, 06 Nov 1994 08:32:57 GMT")]
        #expect(policy(lines, status: status).stored.lifetime == seconds)
        #expect(policy(lines + [("Cache-Control", "public")], status: status).stored.lifetime == 100)
    }

    @Test func `a targeted field replaces Cache-Control and Expires`() {
        let lines = [("Cache-Control", "no-store"), ("Expires", "Sun, 06 Nov 1994 09:49:37 GMT")]
        let short = policy(lines + [("Larder-Cache-Control", "max-age=60")])
        #expect(short.storability == .yes)
        #expect(short.stored.lifetime == 60)
        #expect(short.stored.lifetimeSource == .targeted)
        let silent = policy(lines + [("Larder-Cache-Control", "no-transform")])
        #expect(silent.stored.lifetime == 0)
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
        ).stored
        #expect(answer.initialAge == expected)
        #expect(!answer.flags.contains(.dateAssumed))
    }

    @Test func `a missing or broken Date is the time of arrival`() {
        for lines in [[], [("Date", "x")]] as [[(String, String)]] {
            let answer = policy(lines).stored
            #expect(answer.date == exampleDate)
            #expect(answer.flags.contains(.dateAssumed))
        }
    }

    @Test func `the flags of a policy come from directives`() {
        #expect(
            policy([("Cache-Control", "no-cache, must-revalidate, immutable, no-transform"), ("ETag", "\"a\"")]).stored
                .flags == [.noCache, .mustRevalidate, .immutable, .dateAssumed, .isReleasedByValidation]
        )
        #expect(policy([("Cache-Control", "proxy-revalidate, s-maxage=1")]).stored.flags == .dateAssumed)
        #expect(policy([("Cache-Control", "proxy-revalidate")], shared: true).stored.flags.contains(.mustRevalidate))
        #expect(policy([("Cache-Control", "s-maxage=1")], shared: true).stored.flags.contains(.mustRevalidate))
    }
}
