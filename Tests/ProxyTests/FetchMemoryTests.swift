import Mapping
import Store
import TestSupport
import Testing

@testable import HTTPSemantics
@testable import Proxy
@testable import Settings
@testable import Upstream

/// What fetches remember of documents and upstreams beyond their own lives.
@Suite struct FetchMemoryTests {
    private static let second: UInt64 = 1_000_000_000

    // MARK: Hit-for-miss

    @Test func `an unshareable response is remembered for one to two minutes`() throws {
        let request = ProxyFixture.request(of: try ProxyFixture.upstream())
        var memory = HitForMiss()
        memory.record(request.digest, of: request.key, now: 30 * Self.second)
        for seconds in [30, 59, 61, 89] as [UInt64] {
            let isKnown = memory.contains(request.digest, now: seconds * Self.second)
            #expect(isKnown, "\(seconds)")
        }
        let isKnownLater = memory.contains(request.digest, now: 150 * Self.second)
        #expect(!isKnownLater)

        memory.record(request.digest, of: request.key, now: 200 * Self.second)
        let isKnownAfterSilence = memory.contains(request.digest, now: 10_000 * Self.second)
        #expect(!isKnownAfterSilence)
    }

    @Test func `a storable response, a write to the path or a clean ends the memory of an unshareable one`() throws {
        let upstream = try ProxyFixture.upstream()
        let (one, two) = (
            ProxyFixture.request("GET", "/x?a=1", of: upstream), ProxyFixture.request("GET", "/y", of: upstream)
        )
        var memory = HitForMiss()
        func fill() {
            for request in [one, two] { memory.record(request.digest, of: request.key, now: 0) }
        }
        fill()
        memory.forget(one.digest)
        let afterAnswer = [memory.contains(one.digest, now: 1), memory.contains(two.digest, now: 1)]
        #expect(afterAnswer == [false, true])

        fill()
        memory.forget(Invalidation(of: upstream.storeKey, paths: ["/x"], at: 0))
        let afterWrite = [memory.contains(one.digest, now: 1), memory.contains(two.digest, now: 1)]
        #expect(afterWrite == [false, true])

        fill()
        let patterns = [InvalidationPattern(base: "", pattern: try RoutePattern("*"))]
        memory.forget(Invalidation(of: "another", paths: ["/x", "/y"], patterns: patterns, at: 0))
        #expect(memory.count == 2)
        memory.forget(Invalidation(of: upstream.storeKey, paths: ["/none"], patterns: patterns, at: 0))
        let afterPattern = memory.contains(one.digest, now: 1)
        #expect(!afterPattern)

        fill()
        memory.forget(Invalidation(of: nil, at: 0))
        #expect(memory.count == 0)
    }

    @Test func `the memory of unshareable responses has a bound`() throws {
        let upstream = try ProxyFixture.upstream()
        var memory = HitForMiss(limit: 100)
        for number in 0..<1_000 {
            let request = ProxyFixture.request("GET", "/\(number)", of: upstream)
            memory.record(request.digest, of: request.key, now: 0)
            #expect(memory.count <= 100)
        }
    }

    // MARK: Back-offs

    private func head(_ status: Int, _ fields: [(String, String)]) -> UpstreamHead {
        UpstreamHead(
            version: .http11,
            status: status,
            reason: [],
            fields: Fields(fields.map { Field($0.0, $0.1) }),
            decodedFrom: nil
        )
    }

    /// Which of these paths are held back after a refusal of the first one, in the order of the paths.
    private func held(
        _ paths: [String],
        after status: Int,
        _ fields: [(String, String)],
        learned: [(path: String, resource: String)] = [],
        backOff: Configuration.Upstream.BackOff = .resource
    ) throws -> [Bool] {
        let upstream = try ProxyFixture.upstream { $0.backOff = backOff }
        let requests = paths.map { ProxyFixture.request("GET", $0, of: upstream) }
        var backOffs = BackOffs()
        for (path, resource) in learned {
            let head = head(200, [("X-RateLimit-Resource", resource), ("X-RateLimit-Remaining", "9")])
            backOffs.record(head, for: ProxyFixture.request("GET", path, of: upstream), now: 0, wall: 1_000)
        }
        backOffs.record(head(status, [("Retry-After", "10")] + fields), for: requests[0], now: 0, wall: 1_000)
        let later = requests.map { backOffs.backOff(for: $0, now: 10 * Self.second) }
        #expect(later == requests.map { _ in nil })
        return requests.map { backOffs.backOff(for: $0, now: 1) != nil }
    }

    private static let search = [
        "/search/code?q=1", "/search/code?q=2", "/search/issues", "/repos/a/b", "/repos/c", "/x",
    ]

    @Test func `a rate limit without a name holds back requests below the path's first segment`() throws {
        for (status, fields) in [
            (429, []), (403, [("X-RateLimit-Remaining", "0")]), (403, [("X-RateLimit-Limit", "60")]),
            (403, [("RateLimit", "limit=10, remaining=0, reset=5")]), (403, [("RateLimit-Remaining", "0")]),
        ] as [(Int, [(String, String)])] {
            #expect(try held(Self.search, after: status, fields) == [true, true, true, false, false, false])
        }
    }

    @Test func `a rate limit of a named resource holds back requests known to belong to it`() throws {
        let learned = [
            ("/search/code", "code_search"), ("/search/issues", "search"), ("/repos/a", "core"), ("/repos/z", "core"),
        ]
        let named = [("X-RateLimit-Resource", "code_search")]
        #expect(
            try held(Self.search, after: 403, named + [("X-RateLimit-Remaining", "5")], learned: learned)
                == [true, true, false, false, false, false]
        )
        // Before anything was learned, the path that was refused is all that is known.
        #expect(try held(Self.search, after: 429, named) == [true, true, false, false, false, false])
        let core = ["/repos/a/b", "/repos/a", "/repos/new", "/search/code", "/search/other", "/x"]
        #expect(
            try held(core, after: 429, [("X-RateLimit-Resource", "core")], learned: learned)
                == [true, true, true, false, false, false]
        )
        // The policy that is used up is the one that counts.
        let policies = [("RateLimit", #""daily";r=100;t=9, "core";r=0;t=5"#)]
        #expect(try held(core, after: 403, policies, learned: learned) == [true, true, true, false, false, false])
    }

    @Test func `a refusal without a rate limit holds back its document only, like other failures`() throws {
        for status in [403, 500, 503, 504] {
            #expect(try held(Self.search, after: status, []) == [true, false, false, false, false, false])
        }
        for status in [200, 401, 404, 501] {
            #expect(try held(Self.search, after: status, []) == Self.search.map { _ in false })
        }
    }

    @Test func `back_off says how far a rate limit reaches`() throws {
        let named = [("X-RateLimit-Resource", "code_search")]
        #expect(try held(Self.search, after: 429, named, backOff: .credential) == Self.search.map { _ in true })
        #expect(
            try held(Self.search, after: 503, [], backOff: .credential) == [true, false, false, false, false, false]
        )
        for status in [429, 503] {
            #expect(try held(Self.search, after: status, named, backOff: .never) == Self.search.map { _ in false })
        }
    }

    @Test func `the memory of resources and back-offs has a bound`() throws {
        let upstream = try ProxyFixture.upstream()
        var backOffs = BackOffs()
        for number in 0..<10_000 {
            let request = ProxyFixture.request("GET", "/\(number)/x", of: upstream)
            let fields = [("Retry-After", "10"), ("X-RateLimit-Resource", "\(number)")]
            backOffs.record(head(429, fields), for: request, now: 0, wall: 0)
            let backOff = backOffs.backOff(for: request, now: 1)
            #expect(backOff?.scope == .resource("\(number)"))
            #expect(backOffs.count <= 4_096)
        }
    }

    @Test func `among too many back-offs, those that are over are forgotten first, then those that end first`() throws {
        let upstream = try ProxyFixture.upstream()
        var backOffs = BackOffs()
        func record(_ number: Int, seconds: Int, at now: UInt64) {
            let request = ProxyFixture.request("GET", "/\(number)", of: upstream)
            backOffs.record(head(503, [("Retry-After", "\(seconds)")]), for: request, now: now, wall: 0)
        }
        func isHeld(_ number: Int, at now: UInt64) -> Bool {
            backOffs.backOff(for: ProxyFixture.request("GET", "/\(number)", of: upstream), now: now) != nil
        }
        record(0, seconds: 3_600, at: 0)
        for number in 1..<BackOffs.maximumPlaces { record(number, seconds: number < 10 ? 5 : 600, at: 0) }
        record(10_000, seconds: 600, at: 6 * Self.second)
        let early = (0..<BackOffs.maximumPlaces).filter { isHeld($0, at: 6 * Self.second) }
        #expect(early == [0] + Array(10..<BackOffs.maximumPlaces))
        for number in 10_001..<10_100 { record(number, seconds: 1_000, at: 7 * Self.second) }
        let late = [0, 10_001, 10_099].map { isHeld($0, at: 8 * Self.second) }
        #expect(late == [true, true, true])
        let kept = (1..<BackOffs.maximumPlaces).count { isHeld($0, at: 8 * Self.second) }
        #expect(kept == BackOffs.maximumPlaces - 10 - 91)
    }

    @Test(
        arguments: [
            (503, "10", 10), (503, "Thu, 01 Jan 1970 00:17:10 GMT", 30), (503, "999999", 3_600), (429, "86400", 3_600),
            (503, "0", nil), (503, "-5", nil), (503, "soon", nil), (503, "Thu, 01 Jan 1970 00:00:10 GMT", nil),
            (200, "10", nil), (404, "10", nil), (301, "10", nil), (501, "10", nil),
        ] as [(Int, String, Int64?)]
    )
    func `Retry-After is seconds or a date, has a bound, and is obeyed after failures`(
        status: Int,
        value: String,
        seconds: Int64?
    ) throws {
        let request = ProxyFixture.request(of: try ProxyFixture.upstream())
        var backOffs = BackOffs()
        let noted = backOffs.record(head(status, [("Retry-After", value)]), for: request, now: 0, wall: 1_000)
        #expect(noted?.secondsLeft(at: 0) == seconds)
        let backOff = backOffs.backOff(for: request, now: 0)
        #expect(backOff?.secondsLeft(at: 0) == seconds)
    }

    @Test func `a write's rate limit holds back retrievals, and its other failures hold back nothing`() throws {
        let upstream = try ProxyFixture.upstream()
        let (get, post) = (ProxyFixture.request(of: upstream), ProxyFixture.request("POST", of: upstream))
        var backOffs = BackOffs()
        backOffs.record(head(503, [("Retry-After", "10")]), for: post, now: 0, wall: 0)
        let afterFailure = backOffs.backOff(for: get, now: 1)
        #expect(afterFailure == nil)
        backOffs.record(head(429, [("Retry-After", "10")]), for: post, now: 0, wall: 0)
        let afterLimit = backOffs.backOff(for: get, now: 1)
        #expect(afterLimit?.status == 429)
    }

    // MARK: Refreshes

    @Test func `a document is refreshed once at a time, and less and less often while that fails`() throws {
        let upstream = try ProxyFixture.upstream()
        let request = ProxyFixture.request(of: upstream)
        let subject = Refreshes.Subject(ProxyFixture.answer([], of: upstream, for: request))
        var refreshes = Refreshes()
        func isStarted(at now: UInt64) -> Bool {
            guard refreshes.mayStart(subject, now: now) else { return false }
            refreshes.began(subject)
            return true
        }
        var now: UInt64 = 0
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] as [UInt64] {
            let (first, second) = (isStarted(at: now), isStarted(at: now))
            #expect(first)
            #expect(!second)
            refreshes.ended(subject, hasSucceeded: false, now: now)
            let tooSoon = isStarted(at: now + wait * Self.second - 1)
            #expect(!tooSoon)
            now += wait * Self.second
        }
        _ = isStarted(at: now)
        refreshes.ended(subject, hasSucceeded: true, now: now)
        let again = isStarted(at: now)
        #expect(again)
    }
}
