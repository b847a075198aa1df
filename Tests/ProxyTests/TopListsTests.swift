import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import HTTPServer
@testable import Proxy

@Suite struct TopListsTests {
    private let top = TopLists()

    private func served(
        _ url: String,
        by program: String? = "curl",
        _ outcome: Outcome = .hit,
        upstream seconds: Double? = nil
    ) -> ServedRequest {
        let client = ClientAddress(peer: [127, 0, 0, 1], at: .tcp(host: "127.0.0.1", port: 1))
        var served = ServedRequest(client: client, method: "GET", url: url, upstream: "api")
        (served.program, served.principal, served.route) = (program, "ada", "users/{id}")
        (served.outcome, served.bytes, served.seconds, served.upstreamSeconds) = (outcome, 100, 0.5, seconds)
        return served
    }

    private func names(
        _ subject: TopLists.Subject,
        _ period: TopLists.Period = .minute,
        _ order: TopLists.Order = .requests,
        limit: Int = 10,
        at now: Int64
    ) -> [String] {
        top.list(by: subject, of: period, order: order, limit: limit, now: now).map {
            "\($0.name) \($0.counts.requests)"
        }
    }

    @Test func `requests are counted by program, principal, upstream, route and URL`() {
        top.count(served("/users/1"), now: 1_000)
        top.count(served("/users/1", by: "PyGithub", .miss, upstream: 0.25), weight: 3, now: 1_001)
        top.count(served("/users/2", by: nil), now: 1_002)
        #expect(names(.program, at: 1_003) == ["PyGithub 3", "curl 1"])
        #expect(names(.principal, at: 1_003) == ["ada 5"])
        #expect(names(.upstream, at: 1_003) == ["api 5"])
        #expect(names(.route, at: 1_003) == ["users/{id} 5"])
        #expect(names(.url, at: 1_003) == ["/users/1 4", "/users/2 1"])
        #expect(names(.url, limit: 1, at: 1_003) == ["/users/1 4"])
        let url = top.list(by: .url, of: .hour, order: .bytes, limit: 1, now: 1_003)[0].counts
        #expect(url == .init(requests: 4, hits: 1, upstreamRequests: 3, bytes: 400, seconds: 2))
    }

    @Test func `each order puts the most of its kind first`() {
        for _ in 1...3 { top.count(served("/often"), now: 10) }
        top.count(served("/asked", .miss, upstream: 0.1), now: 10)
        var large = served("/large")
        large.bytes = 10_000
        top.count(large, now: 10)
        var slow = served("/slow")
        slow.seconds = 60
        top.count(slow, now: 10)
        let first = TopLists.Order.allCases.map { names(.url, .day, $0, limit: 1, at: 10) }
        #expect(first == [["/often 3"], ["/asked 1"], ["/large 1"], ["/slow 1"]])
    }

    @Test func `a request leaves the minute, the hour and the day in turn`() {
        let start: Int64 = 1_800_000_000
        top.count(served("/a"), now: start)
        for (later, periods) in [
            (0, ["minute", "hour", "day"]), (59, ["minute", "hour", "day"]), (75, ["hour", "day"]),
            (3_540, ["hour", "day"]), (3_700, ["day"]), (86_000, ["day"]), (90_100, []),
        ] {
            let shown = TopLists.Period.allCases.filter { !names(.url, $0, at: start + Int64(later)).isEmpty }
            #expect(shown.map(\.rawValue) == periods, "\(later) s later")
        }
    }

    @Test func `names beyond the limit are counted together`() {
        for number in 0..<TopLists.nameLimit + 50 { top.count(served("/\(number)"), now: 20) }
        // The limit holds for what many intervals add up to, too.
        for number in 0..<TopLists.nameLimit + 50 { top.count(served("/later/\(number)"), now: 40) }
        let all = top.list(by: .url, of: .hour, order: .requests, limit: .max, now: 80)
        #expect(all.count <= TopLists.nameLimit + 1)
        #expect(all.first?.name == TopLists.othersName)
        #expect(all.map(\.counts.requests).reduce(0, +) == 2 * (TopLists.nameLimit + 50))
        #expect(names(.upstream, .hour, at: 80) == ["api \(2 * (TopLists.nameLimit + 50))"])
    }

    @Test(arguments: [
        ("curl/7.88.1", "curl"), ("PyGithub/Python", "PyGithub"), ("gh", "gh"), ("Mozilla/5.0 (X11; Linux)", "Mozilla"),
        ("octokit.js rest", "octokit.js"), ("(comment)", nil), ("", nil), ("\u{1B}[31mred", nil),
        (String(repeating: "a", count: 100), String(repeating: "a", count: 40)),
    ])
    func `a client's program is the first product in User-Agent`(userAgent: String, name: String?) {
        #expect(ClientProgram.name(of: userAgent.utf8) == name)
    }
}
