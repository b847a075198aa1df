import Foundation
import TestSupport
import Testing

/// A day of 200 jobs in 24 hours, each with a token of its own, before an origin that behaves as GitHub does.
@Suite(.scripts) struct QuotaDayTests {
    /// What one job reads, and what changes before it reads.
    private struct Job {
        let number: Int
        var team: Int { number % 3 }
        var token: String { "ghs_\(number)_0123456789abcdef" }
        var agent: String { ["gh/2.40", "curl/8.0", "PyGithub/Python", "octokit.js/3"][number % 4] }
        var changes: [Int] = []
        var reads: [Int] = []
    }

    private static let pages = 30

    private static func path(_ page: Int) -> String { "/repos/o/r\(page)" }

    /// The team whose members alone may read a page; nil for everybody.
    private static func team(of page: Int) -> Int? { page < 21 ? nil : page % 3 }

    /// - Parameter isCareful: whether jobs read only what they may.
    private static func day(seed: UInt64, isCareful: Bool) -> [Job] {
        var random = SeededGenerator(seed: seed)
        return (0..<200).map { number in
            var job = Job(number: number)
            if random.once(in: 2) { job.changes = [random.below(pages)] }
            job.reads = (0..<20).map { _ in random.below(pages) }
                .filter { !isCareful || team(of: $0).map { $0 == job.team } ?? true }
            return job
        }
    }

    private static func origin(_ jobs: [Job], readers: (Int) -> Set<String>) throws -> GitHubOrigin {
        let github = try GitHubOrigin(lifetime: 0)
        for page in 0..<pages {
            github.set(path(page), .repository(page, readers: team(of: page).map(readers)))
        }
        return github
    }

    private static func change(_ github: GitHubOrigin, _ page: Int, at state: Int) {
        let readers = github[path(page)]?.readers
        github.set(path(page), .repository(page, state: state, readers: readers))
    }

    private static func daemon(_ github: GitHubOrigin) throws -> Larder {
        try Larder(
            github.origin,
            config: """
                include: \(Repository.root)/config/github.yaml
                upstreams: { github: { url: "\(github.origin.url)" } }
                store: { withhold: 20s }
                """
        )
    }

    private static func get(_ larder: Larder, _ page: Int, _ token: String, _ agent: String) throws -> Response {
        try larder.get(
            path(page),
            ["Authorization": "Bearer \(token)", "Accept": "application/vnd.github+json", "User-Agent": agent]
        )
    }

    private static func withoutSpace(_ text: String) -> String { text.filter { $0 != " " && $0 != "\n" } }

    @Test func `a day of rotating tokens costs at most 1 % more whole responses than a permanent token`() throws {
        let jobs = Self.day(seed: 1, isCareful: true)
        func fulls(token: (Job) -> String) throws -> Int {
            let github = try Self.origin(jobs) { team in
                Set(jobs.filter { $0.team == team }.map(token))
            }
            let larder = try Self.daemon(github)
            for job in jobs {
                for page in job.changes { Self.change(github, page, at: job.number + 1) }
                for page in job.reads {
                    let response = try Self.get(larder, page, token(job), job.agent)
                    let truth = try #require(github.truth(Self.path(page), for: token(job)))
                    let isTrue = Self.withoutSpace(response.text) == Self.withoutSpace(truth)
                    #expect(isTrue, "job \(job.number), page \(page)")
                }
            }
            #expect(github.refusals == 0)
            return github.fulls
        }
        let everlasting = try fulls { _ in "ghs_one_0123456789abcdef" }
        let rotating = try fulls(token: \.token)
        #expect(everlasting > 100)
        #expect(Double(rotating) <= Double(everlasting) * 1.01, "\(rotating) instead of \(everlasting)")
    }

    @Test(arguments: [2, 3])
    func `jobs get the origin's responses, earlier or current, and 429 only when their limit is used up`(seed: UInt64)
        throws
    {
        let jobs = Self.day(seed: seed, isCareful: false)
        let github = try Self.origin(jobs) { team in Set(jobs.filter { $0.team == team }.map(\.token)) }
        // Less than a job reads.
        let limit = 12
        github.limit { $0.requests["core"] = limit }
        let larder = try Self.daemon(github)
        var (refused, served) = (0, 0)
        for job in jobs {
            for page in job.changes { Self.change(github, page, at: job.number + 1) }
            var given: [Int: Set<String>] = [:]
            for page in job.reads {
                let cost = github.cost(job.token)
                let response = try Self.get(larder, page, job.token, job.agent)
                let step: Comment = "job \(job.number), page \(page): \(response)"
                switch response.status {
                case 429:
                    refused += 1
                    #expect(cost == limit && given[page] == nil, step)
                case 404:
                    #expect(github.truth(Self.path(page), for: job.token) == nil, step)
                default:
                    served += 1
                    let text = Self.withoutSpace(response.text)
                    let now = github.truth(Self.path(page), for: job.token).map(Self.withoutSpace)
                    #expect(text == now || given[page]?.contains(text) == true, step)
                    #expect(response["X-OAuth-Scopes"] == GitHubOrigin.scopes(of: job.token), step)
                    given[page, default: []].insert(text)
                }
            }
        }
        #expect(github.refusals == 0 && jobs.allSatisfy { github.cost($0.token) <= limit })
        #expect(served > 2_000, "\(served) served, \(refused) refused")
    }
}
