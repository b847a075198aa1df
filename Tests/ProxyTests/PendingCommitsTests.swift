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
        commits.begin(answer, isHidden: true)
        #expect(commits.contains(digest))
        #expect(commits.conclude(answer) == .hidden)
        #expect(commits.contains(digest))
        commits.end(answer)
        #expect(!commits.contains(digest))
    }

    @Test func `a later one of the same variant takes its place for good`() throws {
        let commits = PendingCommits()
        let (first, second) = (try Self.answer(), try Self.answer())
        commits.begin(first, isHidden: true)
        commits.begin(second, isHidden: true)
        #expect(commits.conclude(first) == .superseded)
        #expect(commits.conclude(second) == .hidden)
    }

    @Test func `who waits goes on when it is committed`() async throws {
        let (commits, answer) = (PendingCommits(), try Self.answer())
        let digest = answer.entry.digest
        await commits.change(at: digest)
        commits.begin(answer, isHidden: true)
        let waiting = Task { await commits.change(at: digest) }
        // It may come before or after: either way it goes on.
        commits.end(answer)
        await waiting.value
    }
}
