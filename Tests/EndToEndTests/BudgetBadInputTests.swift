import Foundation
import TestSupport
import Testing

/// Limits that come to be known late, that end never or at impossible times, and that nothing in the background spends.
@Suite(.scripts) struct BudgetBadInputTests {
    /// What a response says of a limit.
    private static func limit(_ remaining: Int, reset: String?) -> FieldLines {
        let fields: FieldLines = ["X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "\(remaining)"]
        return fields + (reset.map { ["X-RateLimit-Reset": $0] } ?? [:])
    }

    // MARK: Bursts

    @Test func `a burst before the limit is known exceeds it by at most the requests under way`() throws {
        let github = try BudgetFixture.github()
        github.limit { $0.requests["core"] = 20 }
        github.delay(.milliseconds(30))
        let larder = try BudgetFixture.daemon(github.origin, "{ at_once: 10, reserve: 0% }")
        let statuses = try together(60) { try BudgetFixture.get(larder, $0).status }
        #expect(statuses.count { $0 == 200 } == 20, "\(statuses)")
        // The first response was one of ten.
        #expect(github.refusals <= 9)
        #expect(statuses.count { $0 == 429 } == 40 - github.refusals)
        let refusals = github.refusals
        // The others are stored.
        let refused = statuses.indices.filter { statuses[$0] != 200 }
        let again = try together(refused.count) { try BudgetFixture.get(larder, refused[$0]).status }
        #expect(again.allSatisfy { $0 == 429 }, "\(again)")
        #expect(github.refusals == refusals)
    }

    @Test func `a refusal also holds back the requests that wait for their turn`() throws {
        let github = try BudgetFixture.github()
        github.limit { $0.atOnce = 3 }
        github.delay(.milliseconds(30))
        let larder = try BudgetFixture.daemon(github.origin, "{ at_once: 10 }")
        let responses = try together(60) { try BudgetFixture.get(larder, $0) }
        #expect((1...10).contains(github.refusals), "\(github.refusals)")
        #expect(github.origin.count() <= 20)
        let held = responses.filter { $0.isProblem && $0.cacheStatus.contains("detail=retry-after") }
        #expect(held.count >= 40 && held.allSatisfy { (1...60).contains(Int($0["Retry-After"] ?? "") ?? 0) })
    }

    @Test func `a write that waits for the gap between writes is refused if the limit is used up meanwhile`() throws {
        let github = try BudgetFixture.github()
        github.limit { $0.requests["core"] = 3 }
        let larder = try BudgetFixture.daemon(github.origin, "{ write_gap: 500ms }")
        let statuses = try together(6) {
            try larder.request("PATCH", "/repos/o/r\($0)", BudgetFixture.token, body: "{}").status
        }
        #expect(statuses.sorted() == [200, 200, 200, 429, 429, 429])
        #expect(github.refusals == 0 && github.origin.count() == 3)
    }

    // MARK: Words

    @Test(arguments: [(429, nil), (403, nil), (403, "1100000000"), (429, "-5")] as [(Int, String?)])
    func `a refusal that names no end is passed on, and holds nothing back`(status: Int, reset: String?) throws {
        let page: FieldLines = ["Cache-Control": "max-age=0, stale-if-error=3600", "ETag": #""a""#]
        let origin = try Origin { _ in .json(#"{"id":1}"#, page) }
        let larder = try BudgetFixture.daemon(origin)
        _ = try BudgetFixture.get(larder, 1)
        #expect(try larder.waitForDocuments(1))
        let fields = status == 429 && reset == nil ? [:] : Self.limit(0, reset: reset)
        origin.always(.json(#"{"message":"no"}"#, fields, status: status))
        for _ in 1...2 {
            let stale = try BudgetFixture.get(larder, 1)
            #expect(stale.status == 200 && stale.text == #"{"id":1}"#)
            #expect(stale.cacheStatus.contains("fwd-status=\(status)"), "\(stale.cacheStatus)")
            let refusal = try BudgetFixture.get(larder, 2)
            #expect(refusal.status == status && refusal.text == #"{"message":"no"}"# && refusal["Retry-After"] == nil)
        }
        #expect(origin.count() == 5)
    }

    @Test(arguments: ["3800000000", "4503599627370496", "999999999"])
    func `a limit that is reset in 2090 holds back for an hour at most`(reset: String) throws {
        let origin = try Origin { _ in .json("{}", Self.limit(0, reset: reset)) }
        let larder = try BudgetFixture.daemon(origin)
        #expect(try BudgetFixture.get(larder, 1).status == 200)
        let refusal = try BudgetFixture.get(larder, 2)
        #expect(refusal.status == 429 && (3_000...3_600).contains(Int(refusal["Retry-After"] ?? "") ?? 0))
        let budgets = try larder.admin("GET", "/budget").object["budgets"] as? [[String: Any]]
        let end = try #require(budgets?.first?["reset"] as? String)
        let date = try Date(end, strategy: .iso8601)
        #expect(date.timeIntervalSinceNow <= 3_601)
        #expect(origin.count() == 1)
    }

    @Test(arguments: ["99999999999999", "Fri, 01 Sep 2090 00:00:00 GMT"])
    func `a refusal until 2090 holds back for an hour`(retryAfter: String) throws {
        let origin = try Origin { _ in .json("{}", ["Retry-After": retryAfter], status: 429) }
        let larder = try BudgetFixture.daemon(origin)
        _ = try BudgetFixture.get(larder, 1)
        let refusal = try BudgetFixture.get(larder, 2)
        #expect(refusal.status == 429 && (3_000...3_600).contains(Int(refusal["Retry-After"] ?? "") ?? 0))
        #expect(origin.count() == 1)
    }

    @Test func `if a limit's reset jumps, the newest response counts`() throws {
        let now = Int(Date().timeIntervalSince1970)
        let words = Monitor([
            Self.limit(9, reset: "\(now + 3_000)"), Self.limit(8, reset: "\(now + 900_000)"),
            Self.limit(7, reset: "\(now + 60)"), Self.limit(0, reset: "\(now - 900_000)"),
            Self.limit(5, reset: "0"), Self.limit(0, reset: "\(now + 3_000)"),
        ])
        let origin = try Origin { _ in .json("{}", words.withLock { $0.removeFirst() }) }
        let larder = try BudgetFixture.daemon(origin, "{ reserve: 0% }")
        for number in 1...6 { #expect(try BudgetFixture.get(larder, number).status == 200, "\(number)") }
        #expect(try BudgetFixture.get(larder, 7).status == 429)
        #expect(origin.count() == 6)
    }

    // MARK: What no client waits for

    @Test func `while its budget is below the reserve a live stream does not ask the upstream`() throws {
        let github = try BudgetFixture.github()
        github.limit { $0.requests["core"] = 20 }
        let larder = try BudgetFixture.daemon(github.origin, "{ reserve: 50% }", top: "live: { interval: 20ms }")
        let other: FieldLines = ["Authorization": "Bearer ghs_bela_0123456789abcdef"]
        let (path, tokens) = ("/repos/o/r0", [BudgetFixture.token, other])
        func asked(_ token: FieldLines) -> Int {
            github.requests.count { $0.path == path && $0["Authorization"] == token["Authorization"] }
        }
        let followers = try tokens.map { try Follower(larder, path, $0) }
        for follower in followers { #expect(follower.wait(for: 1)) }
        for token in tokens {
            let count = asked(token)
            #expect(eventually { asked(token) >= count + 2 })
        }
        for number in 1..<11 { #expect(try BudgetFixture.get(larder, number).status == 200) }
        // What was under way ends while the other stream, whose token has spent nothing, goes on.
        var count = asked(other)
        #expect(eventually { asked(other) >= count + 3 })
        let before = asked(BudgetFixture.token)
        count = asked(other)
        #expect(eventually { asked(other) >= count + 6 })
        #expect(asked(BudgetFixture.token) == before)
        github.renewLimits()
        #expect(try BudgetFixture.get(larder, 11).status == 200)
        #expect(eventually { asked(BudgetFixture.token) > before })
        #expect(github.refusals == 0 && followers.allSatisfy { !$0.state.current.isOver })
    }

    @Test func `while a budget is below its reserve the upstream is not asked about values in doubt`() throws {
        let github = try BudgetFixture.github(10)
        github.direct("private, max-age=3600")
        github.limit { $0.requests["core"] = 12 }
        func page(_ description: String) -> String {
            #"{"id":1,"name":"r1","full_name":"o/r1","description":"\#(description)"}"#
        }
        github.set("/repos/o/r1", .init(body: page("detail")))
        github.set("/user/repos", .init(body: "[\(page("list"))]"))
        let larder = try BudgetFixture.daemon(github.origin, "{ reserve: 50% }", #", lag: 1h"#)
        for number in 1..<8 { #expect(try BudgetFixture.get(larder, number).status == 200) }
        // The list may lag behind the detail, or be newer.
        func list() throws -> Response { try larder.get("/user/repos", BudgetFixture.token) }
        #expect(try list().text.contains("list"))
        #expect(try larder.waitForQuiet())
        for _ in 0..<5 {
            let hit = try list()
            #expect(hit.status == 200 && hit.cacheStatus.contains("detail="), "\(hit.cacheStatus)")
        }
        #expect(try BudgetFixture.get(larder, 8).status == 200)
        #expect(github.origin.count("/user/repos") == 1)
        github.renewLimits()
        #expect(try BudgetFixture.get(larder, 9).status == 200)
        #expect(
            try eventually {
                _ = try list()
                return github.origin.count("/user/repos") == 2
            }
        )
    }
}
