import Mapping
import Store
import TestSupport
import Testing

@testable import Daemon

/// What flights remember of documents and upstreams beyond their own lives.
@Suite struct FlightMemoryTests {
    private static let second: UInt64 = 1_000_000_000

    // MARK: Hit-for-miss

    @Test func `what cannot be shared is remembered for one to two minutes`() throws {
        let demand = ProxyFixture.demand(of: try ProxyFixture.upstream())
        var memory = HitForMiss(now: 0)
        memory.note(demand.digest, of: demand.key, now: 30 * Self.second)
        for seconds in [30, 59, 61, 89] as [UInt64] {
            let isKnown = memory.contains(demand.digest, now: seconds * Self.second)
            #expect(isKnown, "\(seconds)")
        }
        let isKnownLater = memory.contains(demand.digest, now: 150 * Self.second)
        #expect(!isKnownLater)

        memory.note(demand.digest, of: demand.key, now: 200 * Self.second)
        let isKnownAfterSilence = memory.contains(demand.digest, now: 10_000 * Self.second)
        #expect(!isKnownAfterSilence)
    }

    @Test func `an answer that may be stored, a write to the path and a cleaning end the memory`() throws {
        let upstream = try ProxyFixture.upstream()
        let (one, two) = (
            ProxyFixture.demand("GET", "/x?a=1", of: upstream), ProxyFixture.demand("GET", "/y", of: upstream)
        )
        var memory = HitForMiss(now: 0)
        func fill() {
            for demand in [one, two] { memory.note(demand.digest, of: demand.key, now: 0) }
        }
        fill()
        memory.forget(one.digest)
        let afterAnswer = [memory.contains(one.digest, now: 1), memory.contains(two.digest, now: 1)]
        #expect(afterAnswer == [false, true])

        fill()
        memory.forget(Invalidation(["/x"], of: upstream))
        let afterWrite = [memory.contains(one.digest, now: 1), memory.contains(two.digest, now: 1)]
        #expect(afterWrite == [false, true])

        fill()
        let patterns = [InvalidationPattern(upstream: "api", base: "", pattern: try RoutePattern("*"))]
        let another = try ProxyFixture.upstream { $0.name = "another" }
        memory.forget(Invalidation(["/x", "/y"], matching: patterns, of: another))
        #expect(memory.count == 2)
        memory.forget(Invalidation(["/none"], matching: patterns, of: upstream))
        let afterPattern = memory.contains(one.digest, now: 1)
        #expect(!afterPattern)

        fill()
        memory.forgetAll()
        #expect(memory.count == 0)
    }

    @Test func `the memory has a bound`() throws {
        let upstream = try ProxyFixture.upstream()
        var memory = HitForMiss(now: 0, limit: 100)
        for number in 0..<1_000 {
            let demand = ProxyFixture.demand("GET", "/\(number)", of: upstream)
            memory.note(demand.digest, of: demand.key, now: 0)
            #expect(memory.count <= 100)
        }
    }

    // MARK: Pauses

    private func head(_ status: Int, _ fields: [(String, String)]) -> UpstreamHead {
        UpstreamHead(
            version: .http11,
            status: status,
            reason: [],
            fields: Fields(fields.map { Field($0.0, $0.1) }),
            decodedFrom: nil
        )
    }

    @Test func `a rate limit holds back all retrievals of the principal, another failure those of its document`() throws
    {
        let upstream = try ProxyFixture.upstream()
        let (x, y) = (ProxyFixture.demand("GET", "/x", of: upstream), ProxyFixture.demand("GET", "/y", of: upstream))
        for status in [429, 403] {
            var pauses = UpstreamPauses()
            pauses.note(head(status, [("Retry-After", "10")]), for: x, now: 0, wall: 1_000)
            let held = [x, y].map { pauses.pause(for: $0, now: 1)?.status }
            #expect(held == [status, status])
            let later = [x, y].map { pauses.pause(for: $0, now: 10 * Self.second)?.status }
            #expect(later == [nil, nil])
        }
        for status in [500, 503, 504] {
            var pauses = UpstreamPauses()
            pauses.note(head(status, [("Retry-After", "10")]), for: x, now: 0, wall: 1_000)
            let held = [x, y].map { pauses.pause(for: $0, now: 1)?.status }
            #expect(held == [status, nil])
        }
    }

    @Test(
        arguments: [
            (503, "10", 10), (503, "Thu, 01 Jan 1970 00:17:10 GMT", 30), (503, "999999", 3_600), (429, "86400", 3_600),
            (503, "0", nil), (503, "-5", nil), (503, "soon", nil), (503, "Thu, 01 Jan 1970 00:00:10 GMT", nil),
            (200, "10", nil), (404, "10", nil), (301, "10", nil), (501, "10", nil),
        ] as [(Int, String, Int64?)]
    )
    func `Retry-After is seconds or a date, is bounded, and counts on failures`(
        status: Int,
        value: String,
        seconds: Int64?
    ) throws {
        let demand = ProxyFixture.demand(of: try ProxyFixture.upstream())
        var pauses = UpstreamPauses()
        let noted = pauses.note(head(status, [("Retry-After", value)]), for: demand, now: 0, wall: 1_000)
        #expect(noted == seconds)
        let pause = pauses.pause(for: demand, now: 0)
        #expect(pause?.secondsLeft(at: 0) == seconds)
    }

    @Test func `a write's rate limit holds back retrievals, its other failures nothing`() throws {
        let upstream = try ProxyFixture.upstream()
        let (get, post) = (ProxyFixture.demand(of: upstream), ProxyFixture.demand("POST", of: upstream))
        var pauses = UpstreamPauses()
        pauses.note(head(503, [("Retry-After", "10")]), for: post, now: 0, wall: 0)
        let afterFailure = pauses.pause(for: get, now: 1)
        #expect(afterFailure == nil)
        pauses.note(head(429, [("Retry-After", "10")]), for: post, now: 0, wall: 0)
        let afterLimit = pauses.pause(for: get, now: 1)
        #expect(afterLimit?.status == 429)
    }

    // MARK: Refreshes

    @Test func `a document is refreshed once at a time, and less and less often while that fails`() throws {
        let upstream = try ProxyFixture.upstream()
        let demand = ProxyFixture.demand(of: upstream)
        let subject = Refreshes.Subject(ProxyFixture.answer([], of: upstream, for: demand))
        var refreshes = Refreshes()
        var now: UInt64 = 0
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] as [UInt64] {
            let (first, second) = (refreshes.begin(subject, now: now), refreshes.begin(subject, now: now))
            #expect(first)
            #expect(!second)
            refreshes.ended(subject, hasSucceeded: false, now: now)
            let tooSoon = refreshes.begin(subject, now: now + wait * Self.second - 1)
            #expect(!tooSoon)
            now += wait * Self.second
        }
        _ = refreshes.begin(subject, now: now)
        refreshes.ended(subject, hasSucceeded: true, now: now)
        let again = refreshes.begin(subject, now: now)
        #expect(again)
    }
}
