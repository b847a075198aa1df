import Foundation
import Mapping
import Testing

@testable import Admin
@testable import HTTPSemantics
@testable import Proxy
@testable import Store

/// What only the dashboard asks for: logins, traffic, lists in an order, documents, remedies.
@Suite struct DashboardServiceTests: AdminServiceFixtures {
    let daemon: AdminFixture

    init() throws { daemon = try AdminFixture() }

    // MARK: Logins

    private func session(_ body: String) async throws -> String {
        try #require(try json(await ask("POST", "/login", body: body, token: nil))["session"] as? String)
    }

    @Test func `a session permits what the token permits, until it ends`() async throws {
        let session = try await session(#"{"token":"correct-horse-battery"}"#)
        #expect(session != daemon.token)
        #expect(try await ask("GET", "/count", token: session).status == 200)
        #expect(try await ask("DELETE", "/login", token: session).status == 200)
        #expect(try await ask("GET", "/count", token: session).status == 401)
        #expect(try await ask("GET", "/count").status == 200)
    }

    @Test(
        arguments: [
            (#"{"token":"wrong"}"#, 403), (#"{"code":"wrong"}"#, 403), ("{}", 400), (#"{"code":"a","token":"b"}"#, 400),
            (#"{"password":"a"}"#, 400), ("[", 400),
        ]
    )
    func `a login with anything but a valid token or code is refused`(body: String, status: Int) async throws {
        let response = try await ask("POST", "/login", body: body, token: nil)
        #expect(response.status == status)
        #expect(response.fields.text("content-type") == ProblemDocument.mediaType)
    }

    @Test func `a login code works once, and its second use ends the session`() async throws {
        #expect(try await ask("POST", "/login/codes", token: nil).status == 401)
        let made = try json(await ask("POST", "/login/codes"))
        let code = try #require(made["code"] as? String)
        let session = try await session(#"{"code":"\#(code)"}"#)
        #expect(try await ask("GET", "/count", token: session).status == 200)
        let again = try await ask("POST", "/login", body: #"{"code":"\#(code)"}"#, token: nil)
        #expect(again.status == 410)
        #expect(String(decoding: again.body, as: UTF8.self).contains("larder dashboard"))
        #expect(try await ask("GET", "/count", token: session).status == 401)
    }

    @Test func `codes and sessions expire, and their number is limited`() throws {
        let logins = daemon.core.logins
        let now = ContinuousClock.now
        let late = logins.makeCode(now: now)
        #expect(throws: ProblemDocument.self) { try logins.redeem(late, now: now + .seconds(121)) }
        let session = Array("Bearer \(try logins.redeem(logins.makeCode(now: now), now: now))".utf8)
        let use = now + .seconds(6 * 24 * 3600)
        #expect(logins.authorizes(session, now: use))
        #expect(logins.authorizes(session, now: use + .seconds(6 * 24 * 3600)), "it is idle time that counts")
        #expect(!logins.authorizes(session, now: use + .seconds(14 * 24 * 3600)))
        let first = Array("bearer \(try logins.open(with: daemon.token, now: now))".utf8)
        for _ in 0..<DashboardLogins.maximumLogins { _ = try logins.open(with: daemon.token, now: now + .seconds(1)) }
        #expect(!logins.authorizes(first, now: now + .seconds(2)))
    }

    // MARK: What has gone through

    @Test func `traffic is counted in intervals, and an hour of them is kept`() {
        let (metrics, worker) = (daemon.core.metrics, daemon.core.metrics.worker(0))
        let history = TrafficHistory(metrics)
        for outcome in [Outcome.hit, .composed, .miss, .error] { worker.count(outcome) }
        #expect(history.current.intervals == [.init(requests: 4, hits: 2, errors: 1, failed: 1)])
        history.turn()
        worker.count(.stale)
        #expect(history.current.intervals.map(\.requests) == [4, 1])
        metrics.upstream("github").count(.sample(route: nil, .miss, status: 502), isTimed: true)
        #expect(history.current.intervals.map(\.failed) == [1, 1])
        #expect(history.current.total == .init(requests: 5, hits: 3, stale: 1, errors: 1, failed: 2))
        for _ in 0..<500 { history.turn() }
        #expect(history.current.intervals.count == TrafficHistory.maximumIntervals + 1)
    }

    // MARK: Lists and documents

    private func list(_ target: String) async throws -> (ids: [String], next: String?) {
        let page = try json(await ask("GET", target))
        return ((page["objects"] as? [[String: Any]] ?? []).compactMap { $0["id"] as? String }, page["next"] as? String)
    }

    @Test func `objects are sorted and searched, page by page`() async throws {
        try await daemon.fill()
        #expect(try await list("/objects/User?sort=id").ids == ["2", "583231"])
        #expect(try await list("/objects/User?sort=-id").ids == ["583231", "2"])
        #expect(try await list("/objects/User?sort=-stored").ids == ["2", "583231"])
        #expect(try await list("/objects/User?search=OCTO").ids == ["583231"])
        let first = try await list("/objects/User?sort=id&limit=1")
        #expect(first.ids == ["2"])
        let after = try #require(first.next)
        #expect(try await list("/objects/User?sort=id&limit=1&after=\(after)").ids == ["583231"])
    }

    @Test(
        arguments: [
            ("/objects/User?sort=name", 400), ("/objects/User?sort=id&after=x", 400), ("/objects/Nothing?sort=id", 404),
            ("/objects/User?sort=id&limit=0", 400), ("/documents?sort=id", 400), ("/documents?search=a&url=/b", 400),
            ("/documents?search=a&upstream=nobody", 400), ("/documents/x", 400), ("/documents/0", 400),
            ("/documents/999", 404), ("/documents/1?view=both", 400), ("/documents/1?limit=-1", 400),
        ]
    )
    func `a query that is invalid, or finds nothing, is refused with an explanation`(target: String, status: Int)
        async throws
    {
        try await daemon.fill()
        let response = try await ask("GET", target)
        #expect(response.status == status)
        #expect(String(decoding: response.body, as: UTF8.self).contains("\"detail\""))
    }

    @Test func `documents are found, and a document's body is shown up to a limit`() async throws {
        try await daemon.fill()
        let found = try json(await ask("GET", "/documents?search=HUBOT"))
        let row = try #require((found["documents"] as? [[String: Any]])?.first)
        let id = try #require(row["id"] as? Int)
        let whole = try json(await ask("GET", "/documents/\(id)"))
        #expect(whole["url"] as? String == "/github/users/hubot")
        #expect(whole["text"] as? String == #"{"id": 2, "login": "hubot"}"#)
        #expect(whole["shown"] as? Int == 27 && whole["bytes"] as? Int == 27)
        #expect((whole["objects"] as? [[String: String]]) == [["model": "User", "id": "2"]])
        let part = try json(await ask("GET", "/documents/\(id)?limit=5"))
        #expect(part["text"] as? String == #"{"id""# && part["shown"] as? Int == 5)
    }

    @Test func `a text is never cut within a character, and invalid bytes are not shown`() async throws {
        try await daemon.receive(#""aé€😀""#, at: "/text", as: nil)
        let found = try json(await ask("GET", "/documents?search=text"))
        let id = try #require((found["documents"] as? [[String: Any]])?.first?["id"] as? Int)
        let expected = [2: "\"a", 3: "\"a", 4: "\"aé", 6: "\"aé", 7: "\"aé€", 10: "\"aé€", 11: "\"aé€😀"]
        for (limit, text) in expected {
            #expect(try json(await ask("GET", "/documents/\(id)?limit=\(limit)"))["text"] as? String == text)
        }
        try await daemon.receive("\0\u{1}", at: "/bytes", as: nil)
        let bytes = try json(await ask("GET", "/documents?search=bytes"))
        let other = try #require((bytes["documents"] as? [[String: Any]])?.first?["id"] as? Int)
        let shown = try json(await ask("GET", "/documents/\(other)"))
        #expect(shown["text"] == nil && shown["bytes"] as? Int == 2)
    }

    // MARK: Remedies

    @Test(arguments: MappingWarning.Kind.allCases)
    func `a warning's remedy names the model and shows lines for the config`(kind: MappingWarning.Kind) {
        guard let remedy = WarningRemedy(kind: kind.rawValue, subject: "User.name", local: { _ in ["score"] }) else {
            return
        }
        #expect(remedy.sentence.hasSuffix("."))
        guard let lines = remedy.lines else { return }
        #expect(lines.hasPrefix("models:\n") || lines.hasPrefix("routes:\n") || lines.hasPrefix("limits:\n"))
        #expect(lines.contains("User") || kind == .tooManyObjects || lines.contains("…"))
    }

    @Test func `the remedy for a member that differs between routes adds it to local`() {
        let remedy = WarningRemedy(kind: "flip-flop", subject: "User.repo.name", local: { _ in ["score"] })
        #expect(remedy?.lines == "models:\n  User:\n    local: [score, repo.name]")
        #expect(WarningRemedy(kind: "of another version", subject: "", local: { _ in [] }) == nil)
    }
}
