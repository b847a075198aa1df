import DaemonTestSupport
import Testing

@testable import CachePolicy

/// The policy that is kept with a response: its bytes, and what a route makes of it.
@Suite struct StoredPolicyTests {
    @Test func `an encoded policy is decoded unchanged`() throws {
        var answer = policy([
            ("Cache-Control", "max-age=60, no-cache, stale-if-error=7"), ("Age", "3"), ("ETag", "\"a\""),
        ]).stored
        answer.status = 404
        answer.lastModified = 1
        answer.staleWhileRevalidate = 9
        #expect(StoredPolicy(bytes: answer.bytes) == answer)
        for source in StoredPolicy.LifetimeSource.allCases {
            answer.lifetimeSource = source
            #expect(StoredPolicy(bytes: answer.bytes) == answer)
        }
    }

    @Test(
        arguments: [
            ("max-age=60", "max-age=59", "max-age=59"), ("max-age=60", "max-age=60", "max-age=60"),
            ("max-age=60", "max-age=61", "max-age=60"), ("max-age=60", "max-age=0", "max-age=0"),
            ("max-age=60", "max-age=600, no-cache", "max-age=60, no-cache"), ("no-cache", "max-age=60", "no-cache"),
            ("max-age=0", "max-age=60", "max-age=0"),
            ("max-age=60", "max-age=600, must-revalidate", "max-age=60, must-revalidate"),
            ("max-age=60, must-revalidate", "max-age=30", "max-age=30, must-revalidate"),
            ("max-age=60", "max-age=60, stale-if-error=9", "max-age=60, stale-if-error=9"),
            ("max-age=60, stale-if-error=9", "max-age=60, stale-if-error=5", "max-age=60, stale-if-error=5"),
            ("max-age=60, stale-if-error=9", "max-age=60", "max-age=60, stale-if-error=9"),
            ("max-age=60, stale-while-revalidate=9", "max-age=60", "max-age=60"),
        ]
    )
    func `a policy restricted by a later one allows only what both allow`(
        _ old: String,
        _ later: String,
        _ expected: String
    ) {
        let (old, later) = (policy([("Cache-Control", old)]).stored, policy([("Cache-Control", later)]).stored)
        let expected = policy([("Cache-Control", expected)]).stored
        let (restricted, flags) = (old.restricted(by: later), StoredPolicy.Flags.restrictions)
        #expect(restricted.lifetime == expected.lifetime)
        #expect(restricted.flags.intersection(flags) == expected.flags.intersection(flags))
        #expect(restricted.staleIfError == expected.staleIfError)
        #expect(restricted.staleWhileRevalidate == expected.staleWhileRevalidate)
    }

    @Test func `bytes that encode no policy are refused`() {
        let bytes = policy([]).stored.bytes
        #expect(StoredPolicy(bytes: []) == nil)
        #expect(StoredPolicy(bytes: bytes.dropLast()) == nil)
        #expect(StoredPolicy(bytes: bytes + [0]) == nil)
        #expect(StoredPolicy(bytes: [bytes[0] + 1] + bytes.dropFirst()) == nil)
        var unknownSource = bytes
        unknownSource[81] = 200
        #expect(StoredPolicy(bytes: unknownSource) == nil)
    }

    @Test func `a route's fresh replaces the lifetime and no-cache, but not must-revalidate`() {
        var route = CacheOverrides()
        route.fresh = .seconds(300)
        let answer = policy([("Cache-Control", "no-cache, must-revalidate, max-age=1")]).stored.applying(route)
        #expect(answer.lifetime == 300)
        #expect(answer.lifetimeSource == .route)
        #expect(answer.flags.contains(.mustRevalidate))
        #expect(!answer.flags.contains(.noCache))
    }

    @Test func `force makes everything reusable for ever, or for as long as fresh says`() {
        var route = CacheOverrides()
        route.cache = .force
        let answer = policy([("Cache-Control", "no-store, no-cache, must-revalidate")]).stored
        #expect(answer.applying(route).reuse(at: exampleDate + 1_000_000_000, for: .none).isServable)
        route.fresh = .seconds(10)
        #expect(!answer.applying(route).reuse(at: exampleDate + 10, for: .none).isServable)
        #expect(!answer.reuse(at: exampleDate, for: .none).isServable)
    }

    @Test(
        arguments: [
            ([], 200, 60, .unsaid), ([("ETag", "\"a\"")], 203, 60, .unsaid), ([], 404, 0, .none), ([], 500, 0, .none),
            ([("Last-Modified", date(exampleDate - 1_000))], 200, 60, .unsaid),
            ([("Cache-Control", "")], 200, 0, .none),
            ([("Cache-Control", "no-cache")], 200, 0, .none), ([("Cache-Control", "max-age=5")], 200, 5, .maxAge),
            ([("Expires", "0")], 200, 0, .expires), ([("Pragma", "no-cache")], 200, 0, .none),
            ([("Larder-Cache-Control", "max-age=7")], 200, 7, .targeted),
        ] as [([(String, String)], Int, Int64, StoredPolicy.LifetimeSource)]
    )
    func `fresh_unsaid is the lifetime of a response that says nothing of caching`(
        _ fields: [(String, String)],
        _ status: Int,
        _ lifetime: Int64,
        _ source: StoredPolicy.LifetimeSource
    ) {
        let stored = policy(fields, status: status).stored
        let answer = stored.applying(CacheOverrides(), freshUnsaid: .seconds(60))
        #expect(answer.lifetime == lifetime)
        #expect(answer.lifetimeSource == source)
        var route = CacheOverrides()
        route.fresh = .seconds(9)
        #expect(policy([]).stored.applying(route, freshUnsaid: .seconds(60)).lifetime == 9)
        #expect(policy([]).stored.applying(CacheOverrides()).lifetime == 0)
    }

    @Test(
        arguments: [
            (404, "", 30, .negative), (410, "", 30, .negative), (404, "max-age=5", 5, .maxAge),
            (404, "no-cache", 0, .none),
            (200, "", 0, .none), (403, "", 0, .none),
        ] as [(Int, String, Int64, StoredPolicy.LifetimeSource)]
    )
    func `a route's negative is the lifetime of a 404 or similar response that names no lifetime`(
        _ status: Int,
        _ control: String,
        _ lifetime: Int64,
        _ source: StoredPolicy.LifetimeSource
    ) {
        var route = CacheOverrides()
        route.negative = .seconds(30)
        let answer = policy([("Cache-Control", control)], status: status).stored.applying(route)
        #expect(answer.lifetime == lifetime)
        #expect(answer.lifetimeSource == source)
    }
}
