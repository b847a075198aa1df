import Store
import Testing

@testable import Proxy

/// What is known of responses between their arrival and their commit.
@Suite struct PendingCommitsTests {
    private static func answer(_ fields: [(String, String)] = []) throws -> ReadyResponse {
        let upstream = try ProxyFixture.upstream()
        return ProxyFixture.answer(fields, of: upstream, for: ProxyFixture.request(of: upstream))
    }

    @Test func `it is pending from its beginning to its end`() throws {
        let (commits, answer) = (PendingCommits(), try Self.answer())
        let digest = answer.entry.digest
        #expect(!commits.contains(digest))
        commits.begin(answer, sent: 0, containsObjects: true, isHidden: true)
        #expect(commits.contains(digest))
        #expect(commits.conclude(answer) == .hidden)
        #expect(commits.contains(digest))
        commits.end(answer)
        #expect(!commits.contains(digest))
    }

    @Test func `a hidden one is shown once, and not once its commit is done`() throws {
        let commits = PendingCommits()
        var shown = 0
        let early = try Self.answer()
        commits.begin(early, sent: 0, containsObjects: true, isHidden: true)
        for _ in 0..<2 { commits.show(early) { shown += 1 } }
        #expect(shown == 1)
        #expect(commits.conclude(early) == .shown)
        commits.end(early)

        let late = try Self.answer()
        commits.begin(late, sent: 0, containsObjects: true, isHidden: true)
        #expect(commits.conclude(late) == .hidden)
        commits.show(late) { shown += 1 }
        commits.end(late)
        commits.show(late) { shown += 1 }
        #expect(shown == 1)
    }

    @Test func `a later one of the same variant takes its place for good`() throws {
        let commits = PendingCommits()
        let (first, second) = (try Self.answer(), try Self.answer())
        commits.begin(first, sent: 0, containsObjects: true, isHidden: true)
        commits.begin(second, sent: 0, containsObjects: true, isHidden: true)
        var shown = 0
        commits.show(first) { shown += 1 }
        #expect(shown == 0)
        #expect(commits.conclude(first) == .superseded)
        #expect(commits.conclude(second) == .hidden)
    }

    @Test func `who waits goes on when it is shown, and when it is committed`() async throws {
        let (commits, answer) = (PendingCommits(), try Self.answer())
        let digest = answer.entry.digest
        await commits.change(at: digest)
        commits.begin(answer, sent: 0, containsObjects: true, isHidden: true)
        let waiting = Task { await commits.change(at: digest) }
        // It may come before or after: either way it goes on.
        commits.show(answer) {}
        commits.end(answer)
        await waiting.value
    }

    @Test func `one in doubt is not shown before its commit, and those shown are named, once`() throws {
        let commits = PendingCommits()
        let (hidden, shown) = (try Self.answer(), try Self.answer())
        commits.begin(shown, sent: 10, containsObjects: true, isHidden: true)
        commits.show(shown) {}
        commits.begin(hidden, sent: 20, containsObjects: true, isHidden: true)
        #expect(commits.markOutdated(of: "another", sentUntil: .max).isEmpty)
        #expect(commits.markOutdated(of: shown.upstream.storeKey, sentUntil: 15).map { $0 === shown } == [true])
        #expect(commits.markOutdated(of: shown.upstream.storeKey, sentUntil: .max).isEmpty)
        commits.show(hidden) { Issue.record("it was shown") }
        #expect(commits.conclude(hidden) == .hidden)
    }
}
