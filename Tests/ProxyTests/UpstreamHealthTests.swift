import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import HTTPServer
@testable import Proxy
@testable import Settings
@testable import Upstream

@Suite struct UpstreamHealthTests {
    private let second: Int64 = 1_000_000

    @Test func `the first request without a response is logged, the next ones are counted until the recovery`() {
        var health = UpstreamHealth()
        #expect(health.state(at: 0) == .unused)
        #expect(health.responded(at: second) == [])
        #expect(health.state(at: second) == .reachable)
        #expect(health.gotNoResponse("refused", at: 10 * second) == .unreachable)
        for moment in 11..<27 { #expect(health.gotNoResponse("refused", at: Int64(moment) * second) == nil) }
        for _ in 0..<5 { health.heldBack() }
        #expect(health.state(at: 30 * second) == .unreachable)
        #expect(health.unreachableSince == 10 * second)
        let recovery = UpstreamHealth.News.reachable(after: .seconds(180), failures: 17, held: 5)
        #expect(health.responded(at: 190 * second) == [recovery])
        #expect(health.state(at: 190 * second) == .reachable)
        #expect(health.lastError?.message == "refused")
        #expect(health.requests == 19)
        #expect(health.failures == 17)
    }

    @Test func `an upstream that gives no response every other time is reported once in ten seconds`() {
        var health = UpstreamHealth()
        var warnings = 0
        for moment in 0..<200 {
            let time = Int64(moment) * second / 4
            if moment.isMultiple(of: 2) {
                if health.gotNoResponse("reset", at: time) != nil { warnings += 1 }
            } else {
                _ = health.responded(at: time)
            }
        }
        #expect(warnings == 5)
    }

    @Test func `a lasting failure is logged, even right after another`() {
        var health = UpstreamHealth()
        #expect(health.gotNoResponse("reset", at: 0) == .unreachable)
        _ = health.responded(at: second)
        #expect(health.gotNoResponse("reset", at: 2 * second) == nil)
        #expect(health.gotNoResponse("reset", at: 11 * second) == .unreachable)
        #expect(health.responded(at: 12 * second) == [.reachable(after: .seconds(10), failures: 2, held: 0)])
    }

    @Test func `an upstream fails once five of its latest responses, and half of them, are errors`() {
        var health = UpstreamHealth()
        for moment in 0..<4 { #expect(health.responded("500", at: Int64(moment) * second) == []) }
        #expect(health.state(at: 4 * second) == .reachable)
        let news = health.responded("500", at: 4 * second)
        #expect(news == [.fails(errors: 5, of: 5)])
        #expect(health.state(at: 4 * second) == .failing)
        #expect(health.failingSince == 0)
        for moment in 5..<30 { #expect(health.responded("500", at: Int64(moment) * second) == []) }
        // While most of the latest responses are errors, one success changes nothing.
        #expect(health.responded(at: 30 * second) == [])
        #expect(health.state(at: 30 * second) == .failing)
        var end: [UpstreamHealth.News] = []
        for moment in 31..<50 where end.isEmpty { end = health.responded(at: Int64(moment) * second) }
        #expect(end == [.works(after: .seconds(45), failures: 30)])
        #expect(health.state(at: 50 * second) == .reachable)
        #expect(health.failures == 30)
    }

    @Test func `an upstream with a few errors is not failing, and one that is recovers with a success after a pause`() {
        var health = UpstreamHealth()
        for moment in 0..<400 {
            let error = moment.isMultiple(of: 3) ? "500" : nil
            #expect(health.responded(error, at: Int64(moment) * second / 10) == [])
        }
        for _ in 0..<20 { _ = health.responded("500", at: 100 * second) }
        #expect(health.state(at: 100 * second) == .failing)
        #expect(health.responded(at: 200 * second) == [.works(after: .seconds(100), failures: 20)])
    }

    @Test func `an upstream with as many errors as successes is reported once`() {
        var health = UpstreamHealth()
        var news = 0
        for moment in 0..<1_000 {
            news += health.responded(moment.isMultiple(of: 2) ? "500" : nil, at: Int64(moment) * second / 10).count
        }
        #expect(news == 1)
    }

    @Test func `a client that leaves does not count as the upstream's failure`() {
        var health = UpstreamHealth()
        health.gaveUp()
        #expect(health.failures == 0)
        #expect(health.state(at: 0) == .reachable)
    }

    @Test func `the tightest rate limit is shown, and an expired one only if there is no other`() {
        var health = UpstreamHealth()
        #expect(health.tightestLimit(at: 0) == nil)
        health.recordLimit(RateLimit(limit: 5000, remaining: 4000, reset: 100, resource: "core"))
        health.recordLimit(RateLimit(limit: 30, remaining: 3, reset: 60, resource: "search"))
        #expect(health.tightestLimit(at: 50 * second)?.resource == "search")
        #expect(health.tightestLimit(at: 70 * second)?.resource == "core")
        #expect(health.tightestLimit(at: 200 * second)?.resource == "search")
    }

    @Test func `however many resources an upstream names, a bounded number of rate limits is kept`() {
        var health = UpstreamHealth()
        for number in 0..<1_000 { health.recordLimit(RateLimit(remaining: 1, resource: "r\(number)")) }
        #expect(health.allLimits.count == 32)
    }

    @Test func `a failure that the user can mend says what to change`() throws {
        var upstream = Configuration.Upstream()
        upstream.name = "github"
        let expected: [(UpstreamError, String)] = [
            (.tls("SSL certificate problem: self-signed certificate"), "upstreams.github.ca_file"),
            (.tls("SSL certificate problem: certificate has expired"), "clock"),
            (.tls("SSL: no alternative certificate subject name matches target host name 'x'"), "upstreams.github.url"),
            (.tls("error:0A00010B:SSL routines::wrong version number"), "http://"),
            (.tls("error setting certificate file: /nowhere"), "upstreams.github.ca_file"),
            (.couldNotResolve("Could not resolve host: x"), "upstreams.github.proxy"),
            (.refused("Connection refused"), "upstreams.github.url"),
            (.connectTimeout, "timeouts.connect"), (.proxy("Received HTTP code 407"), "upstreams.github.proxy"),
            (.firstByteTimeout, "timeouts.first_byte"), (.stalled, "timeouts.stall"),
            (.headTooLarge, "limits.upstream_head"), (.badResponse("HTTP/0.9"), "upstreams.github.http2"),
        ]
        for (error, word) in expected { #expect(error.cure(for: upstream)?.contains(word) == true, "\(error)") }
        #expect(UpstreamError.reset(afterBytes: 0).cure(for: upstream) == nil)
        upstream.caFile = "/etc/ssl/own.pem"
        let cure = UpstreamError.tls("unable to get local issuer certificate").cure(for: upstream)
        #expect(cure?.contains("replaces the system's authorities") == true)
    }
}

@Suite struct RequestLogTests {
    private func served(_ url: String) -> ServedRequest {
        ServedRequest(
            client: ClientAddress(peer: [127, 0, 0, 1], at: .tcp(host: "127.0.0.1", port: 1)),
            method: "GET",
            url: url,
            upstream: "api"
        )
    }

    @Test func `the last thousand requests are kept, in order`() {
        let log = RequestLog()
        for number in 1...2_500 { log.record(served("/\(number)")) }
        let all = log.requests(after: 0, limit: 1_000)
        #expect(all.last == 2_500)
        #expect(all.requests.map(\.id) == Array(1_501...2_500))
        #expect(all.requests.allSatisfy { $0.url == "/\($0.id)" })
        #expect(log.requests(after: 2_498, limit: 100).requests.map(\.id) == [2_499, 2_500])
        #expect(log.requests(after: 0, limit: 2).requests.map(\.id) == [2_499, 2_500])
        #expect(log.requests(after: 2_500, limit: 2).requests.isEmpty)
    }

    @Test func `fewer than a thousand requests are all listed`() {
        let log = RequestLog()
        #expect(log.requests(after: 0, limit: 5).requests.isEmpty)
        for number in 1...3 { log.record(served("/\(number)")) }
        #expect(log.requests(after: 0, limit: 1_000).requests.map(\.id) == [1, 2, 3])
    }

    @Test func `hits are recorded while a client follows the requests`() {
        let log = RequestLog()
        let now = RequestClock.nanoseconds
        #expect(!log.recordsHits(at: now))
        _ = log.requests(after: 0, limit: 1)
        #expect(log.recordsHits(at: now + 59_000_000_000))
        #expect(!log.recordsHits(at: now + 70_000_000_000))
        let listener = log.listen { _ in }
        #expect(log.recordsHits(at: now + 3_600_000_000_000))
        log.stopListening(listener)
        #expect(!log.recordsHits(at: now + 70_000_000_000))
        log.listen { _ in }
        #expect(log.recordsHits(at: .max - 1))
    }

    @Test func `clients are named by their address or their user`() {
        let tcp = { (peer: [UInt8]) in ClientAddress(peer: peer, at: .tcp(host: "::", port: 1)).text }
        #expect(tcp([192, 0, 2, 7]) == "192.0.2.7")
        #expect(tcp(Array(repeating: 0, count: 15) + [1]) == "::1")
        #expect(tcp([]) == "-")
        #expect(ClientAddress(peer: [0xE8, 3, 0, 0], at: .unix(path: "/x")).text == "uid:1000")
    }
}
