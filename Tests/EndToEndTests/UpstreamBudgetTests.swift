import Foundation
import TestSupport
import Testing

/// What an upstream's rate limits allow is spent on what needs it, and nothing is sent that would be refused.
@Suite(.scripts) struct UpstreamBudgetTests {
    @Test func `a used-up limit refuses nothing upstream: what is stored is served, and the rest gets 429 at once`()
        throws
    {
        let github = try BudgetFixture.github()
        github.limit { $0.requests["core"] = 10 }
        let larder = try BudgetFixture.daemon(github.origin, "{ reserve: 0% }")
        for number in 0..<10 { #expect(try BudgetFixture.get(larder, number).status == 200) }
        for number in 0..<10 {
            let stale = try BudgetFixture.get(larder, number)
            #expect(stale.status == 200 && stale.cacheStatus.contains("detail=budget"))
        }
        let refusal = try BudgetFixture.get(larder, 11)
        #expect(refusal.status == 429 && refusal.isProblem && refusal.cacheStatus.contains("detail=budget"))
        #expect((3_500...3_601).contains(Int(refusal["Retry-After"] ?? "") ?? 0))
        let write = try larder.request("POST", "/repos/o/r1/labels", BudgetFixture.token, body: "{}")
        #expect(write.status == 429 && write["Retry-After"] != nil)
        #expect(github.origin.count() == 10 && github.refusals == 0)
        // Another resource and another token have limits of their own.
        #expect(try larder.get("/search/issues?q=1", BudgetFixture.token).status == 404)
        #expect(try BudgetFixture.get(larder, 12, ["Authorization": "Bearer other"]).status == 200)
        #expect(github.refusals == 0)
    }

    @Test func `parallel requests spend no more than the limit has left`() throws {
        let github = try BudgetFixture.github(60)
        github.limit { $0.requests["core"] = 20 }
        let larder = try BudgetFixture.daemon(github.origin, "{ reserve: 0% }")
        try BudgetFixture.get(larder, 0)
        github.delay(.milliseconds(30))
        let statuses = try together(40) { try BudgetFixture.get(larder, $0 + 1).status }
        #expect(statuses.count { $0 == 200 } == 19 && statuses.count { $0 == 429 } == 21)
        #expect(github.refusals == 0 && github.origin.count() == 20)
    }

    @Test func `a 304 takes nothing from the rate limit`() throws {
        let github = try BudgetFixture.github()
        github.limit { $0.requests["core"] = 2 }
        let larder = try BudgetFixture.daemon(github.origin, "{ reserve: 0% }")
        for _ in 1...20 { #expect(try BudgetFixture.get(larder, 0).status == 200) }
        #expect(github.fulls == 1 && github.notModified == 19)
    }

    @Test(arguments: [1, 2, 3])
    func `whatever is requested, the upstream refuses nothing, and Larder refuses only what is not stored`(seed: UInt64)
        throws
    {
        var random = SeededGenerator(seed: seed)
        let tokens = (0..<3).map { "ghs_\($0)_0123456789abcdef" }
        let github = try BudgetFixture.github(12)
        github.limit { $0.requests["core"] = 25 }
        let larder = try BudgetFixture.daemon(github.origin, "{ reserve: \(random.pick([0, 10, 50]))% }")
        var seen: [String: Set<Int>] = [:]
        var refused = 0
        for step in 0..<400 {
            let (token, page) = (random.pick(tokens), random.below(12))
            if random.once(in: 5) { github.set("/repos/o/r\(page)", .repository(page, state: step)) }
            let response = try BudgetFixture.get(
                larder,
                page,
                ["Authorization": "Bearer \(token)", "Accept": "application/json"]
            )
            if seen[token]?.contains(page) == true || github.cost(token) < 25 {
                #expect(response.status == 200, "step \(step): \(token) \(page)")
            }
            if response.status == 200 { seen[token, default: []].insert(page) } else { refused += 1 }
        }
        #expect(github.refusals == 0 && tokens.allSatisfy { github.cost($0) <= 25 })
        #expect(tokens.contains { github.cost($0) == 25 } || refused == 0)
    }

    @Test func `below the reserve refreshes stop first, then validations of what may be stale, and the rest goes on`()
        throws
    {
        let github = try BudgetFixture.github()
        github.limit { $0.requests["core"] = 20 }
        github.direct("private, max-age=0, stale-while-revalidate=3600")
        let larder = try BudgetFixture.daemon(github.origin, "{ reserve: 50% }")
        try BudgetFixture.get(larder, 0)
        github.direct("private, max-age=0")
        try BudgetFixture.get(larder, 1)
        #expect(try larder.waitForDocuments(2))

        // More than half is left: both are asked for.
        try BudgetFixture.get(larder, 0)
        #expect(github.origin.waitForRequests(3))
        try BudgetFixture.get(larder, 1)
        #expect(github.origin.count() == 4 && github.notModified == 2)
        for number in 2..<10 { try BudgetFixture.get(larder, number) }

        // Half is left: no refresh, but what is stale is validated.
        github.direct("private, max-age=0, stale-while-revalidate=3600")
        try BudgetFixture.get(larder, 10)
        github.direct("private, max-age=0")
        #expect(try BudgetFixture.get(larder, 1).cacheStatus.contains("fwd-status=304"))
        github.origin.forget()
        for _ in 1...3 { #expect(try BudgetFixture.get(larder, 10).isHit) }
        for number in 11..<15 { try BudgetFixture.get(larder, number) }
        #expect(github.origin.requests.map(\.path) == (11..<15).map { "/repos/o/r\($0)" })

        // A quarter is left: what is stale is served, unless its client insists.
        let stale = try BudgetFixture.get(larder, 1)
        #expect(stale.isHit && stale.cacheStatus.contains("detail=budget"))
        let lines = BudgetFixture.token.lines.map { "\($0.name): \($0.value)" }
        let explained = try larder.command("explain", larder.url + "/repos/o/r1", "-H", lines[0], "-H", lines[1])
        #expect(explained.output.contains("nearly used up"))
        let insisted = try BudgetFixture.get(larder, 1, BudgetFixture.token + ["Cache-Control": "no-cache"])
        #expect(insisted.cacheStatus.contains("fwd-status=304"))
        // First requests and writes go on to the end.
        for number in 15..<19 { #expect(try BudgetFixture.get(larder, number).status == 200) }
        #expect(try larder.request("PATCH", "/repos/o/r3", BudgetFixture.token, body: "{}").status == 200)
        #expect(try BudgetFixture.get(larder, 20).status == 429)
        #expect(github.refusals == 0)
    }

    @Test func `once a response shows that the limit was reset, stale responses are no longer served to save requests`()
        throws
    {
        let github = try BudgetFixture.github()
        github.limit { $0.requests["core"] = 10 }
        let larder = try BudgetFixture.daemon(github.origin, "{ reserve: 100% }")
        for number in 0..<6 { try BudgetFixture.get(larder, number) }
        #expect(try larder.waitForDocuments(6))
        #expect(try BudgetFixture.get(larder, 0).cacheStatus.contains("detail=budget"))
        github.renewLimits()
        try BudgetFixture.get(larder, 7)
        #expect(try BudgetFixture.get(larder, 0).cacheStatus.contains("fwd-status=304"))
    }

    @Test func `a request waits for a limit that is about to be reset`() throws {
        let github = try BudgetFixture.github()
        github.limit { ($0.requests["core"], $0.period) = (2, 3) }
        let larder = try BudgetFixture.daemon(github.origin)
        for number in 0..<6 { #expect(try BudgetFixture.get(larder, number).status == 200) }
        #expect(try larder.request("PATCH", "/repos/o/r3", BudgetFixture.token, body: "{}").status == 200)
        #expect(github.refusals == 0 && github.origin.count() == 7)
        // What it will do is what explain says. The limit may be reset before that is asked.
        let fields = BudgetFixture.token.lines.map { "\($0.name): \($0.value)" }
        let isForetold = try eventually {
            _ = try BudgetFixture.get(larder, 7)
            let foretold = try ExplainTests.explain(larder, "/repos/o/r8", fields)["online"] as? [String: Any]
            try #require(foretold?["action"] as? String == "fetch" && foretold?["status"] == nil)
            return (foretold?["reason"] as? String)?.contains("waits for the upstream's limit") == true
        }
        #expect(isForetold)
        let hasty = try BudgetFixture.daemon(github.origin, "{ wait: 0s }")
        #expect(try (0..<6).map { try BudgetFixture.get(hasty, $0).status }.contains(429))
    }

    @Test func `a refusal by a secondary limit holds back requests, although the budget has no count of it`() throws {
        let github = try BudgetFixture.github()
        github.limit { $0.writeGap = 3_600 }
        let larder = try BudgetFixture.daemon(github.origin, "{ write_gap: 0s }")
        try BudgetFixture.get(larder, 0)
        for number in 1...2 { _ = try larder.request("PATCH", "/repos/o/r\(number)", BudgetFixture.token, body: "{}") }
        #expect(github.refusals == 1)
        #expect(try BudgetFixture.get(larder, 0).cacheStatus.contains("detail=retry-after"))
    }

    @Test func `a credential has a limit of requests under way, and a gap between its writes`() throws {
        let github = try BudgetFixture.github()
        github.limit { ($0.atOnce, $0.writeGap) = (3, 0.5) }
        let larder = try BudgetFixture.daemon(github.origin, "{ at_once: 3, write_gap: 1s }")
        github.delay(.milliseconds(30))
        let reads = try together(20) { try BudgetFixture.get(larder, $0).status }
        #expect(reads.allSatisfy { $0 == 200 } && github.mostAtOnce == 3)
        github.delay(.zero)
        let writes = try together(3) {
            try larder.request("PATCH", "/repos/o/r\($0)", BudgetFixture.token, body: "{}").status
        }
        #expect(writes == [200, 200, 200] && github.refusals == 0)
    }

    @Test func `the budget says what is left, who spent it in which minute, and when it ends at this pace`() throws {
        let github = try BudgetFixture.github()
        github.limit { $0.requests["core"] = 40 }
        let larder = try BudgetFixture.daemon(github.origin)
        #expect(try larder.command("budget").output.contains("no response has said anything"))
        for number in 0..<25 {
            try BudgetFixture.get(larder, number, BudgetFixture.token + ["User-Agent": "PyGithub/Python"])
        }
        for number in 25..<28 { try BudgetFixture.get(larder, number, BudgetFixture.token + ["User-Agent": "gh/2.0"]) }
        // A 304 is not counted.
        try BudgetFixture.get(larder, 27, BudgetFixture.token + ["User-Agent": "gh/2.0"])
        #expect(github.notModified == 1)

        let budget = try larder.admin("GET", "/budget").object
        let left = try #require((budget["budgets"] as? [[String: Any]])?.first)
        #expect(left["upstream"] as? String == "github" && left["resource"] as? String == "core")
        #expect(left["limit"] as? Int == 40 && left["remaining"] as? Int == 12)
        let (reset, usedUp) = (try #require(left["reset"] as? String), try #require(left["used_up"] as? String))
        #expect(usedUp < reset)
        let spent = try #require(budget["spent"] as? [[String: Any]])
        func requests(_ program: String) -> Int {
            spent.filter {
                $0["program"] as? String == program && $0["principal"] as? String == left["principal"] as? String
            }
            .compactMap { $0["requests"] as? Int }.reduce(0, +)
        }
        #expect(requests("PyGithub") == 25 && requests("gh") == 3)

        let text = try larder.command("budget").output
        #expect(text.contains("PyGithub") && text.contains("core") && !text.contains("ghs_ann"), "\(text)")
        let metrics = try larder.admin("GET", "/metrics").text
        let label = try #require(left["principal"] as? String)
        let labels = "upstream=\"github\",resource=\"core\",principal=\"\(label)\""
        #expect(metrics.contains("larder_budget_remaining{\(labels)} 12"))
        #expect(metrics.contains("larder_budget_spent_total{\(labels),program=\"PyGithub\"} 25"))
        #expect(try larder.admin("GET", "/budget?limit=0").status == 400)
        #expect(try larder.command("budget", "--limit", "0").end != .exited(0))
    }

    @Test func `hits have the newest rate-limit fields of their credential and resource`() throws {
        let github = try BudgetFixture.github()
        github.direct("private, max-age=3600")
        let larder = try BudgetFixture.daemon(github.origin)
        let other: FieldLines = ["Authorization": "Bearer other"]
        let first = try BudgetFixture.get(larder, 0)
        #expect(first["X-RateLimit-Remaining"] == "4999" && first["X-From-Cache"] == nil)
        for number in 1...3 { try BudgetFixture.get(larder, number) }
        try BudgetFixture.get(larder, 0, other)
        _ = try larder.get("/search/issues?q=1", BudgetFixture.token)
        for fields in [
            BudgetFixture.token, BudgetFixture.token + ["Range": "bytes=0-3"],
            BudgetFixture.token + ["If-None-Match": first["ETag"] ?? ""],
        ] {
            let hit = try BudgetFixture.get(larder, 0, fields)
            #expect(hit.isHit && hit["X-From-Cache"] == "1", "\(hit.status)")
            let lines = hit.fields.all("X-RateLimit-Remaining")
            #expect(lines == ["4996"] && hit.fields.all("X-RateLimit-Resource") == ["core"], "\(hit.status)")
            #expect(hit["X-RateLimit-Used"] == "4" && hit["ETag"] == first["ETag"])
        }
        #expect(try BudgetFixture.get(larder, 0, other)["X-RateLimit-Remaining"] == "4999")
        // After a restart nothing newer is known than what is stored.
        #expect(try larder.waitForDocuments(6))
        try larder.restart()
        let stored = try BudgetFixture.get(larder, 0)
        #expect(stored.isHit && stored["X-RateLimit-Remaining"] == "4999" && stored["X-From-Cache"] == "1")

        let plain = try BudgetFixture.daemon(github.origin, "{ fields: stored }")
        for number in 0...3 { try BudgetFixture.get(plain, number) }
        let hit = try BudgetFixture.get(plain, 1)
        #expect(hit.isHit && hit["X-RateLimit-Used"] == "6" && hit["X-From-Cache"] == nil)
    }
}
