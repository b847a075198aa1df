import Foundation
import Mapping
import TestSupport
import Testing

@testable import Settings

/// What the presets say of writes: what they concern besides their own path and those above and below, and what their
/// answers hold.
struct ConfigPresetWriteTests {
    private static func upstream(_ name: String) throws -> CompiledUpstream {
        let file = ConfigFile.read("\(Repository.root)/config/\(name).yaml", environment: [:])
        return try CompiledUpstream(try file.checked().settings.upstreams[0])
    }

    /// A write, some paths whose answers it makes worthless, and some that it does not touch.
    struct Concern: Sendable, CustomStringConvertible {
        let preset: String
        let method: String
        let path: String
        let reached: [String]
        let spared: [String]

        init(_ preset: String, _ method: String, _ path: String, reaches reached: [String], spares spared: [String]) {
            (self.preset, self.method, self.path) = (preset, method, path)
            (self.reached, self.spared) = (reached, spared)
        }

        var description: String { "\(preset) \(method) \(path)" }
    }

    private static let concerns: [Concern] = [
        Concern(
            "github",
            "PATCH",
            "/repos/a/b/issues/7",
            reaches: ["/repos/a/b/issues", "/search/issues", "/repos/a/b/pulls/7"],
            spares: ["/repos/a/c/issues", "/repos/a/b/issues/8"]
        ),
        Concern(
            "github",
            "PUT",
            "/repos/a/b/issues/7/labels",
            reaches: ["/repos/a/b/issues/7", "/repos/a/b/issues"],
            spares: ["/repos/a/b/labels"]
        ),
        Concern(
            "github",
            "DELETE",
            "/repos/a/b/issues/7/labels/bug",
            reaches: ["/repos/a/b/issues/7", "/search/issues"],
            spares: ["/repos/a/b/labels"]
        ),
        Concern(
            "github",
            "PUT",
            "/repos/a/b/issues/7/lock",
            reaches: ["/repos/a/b/issues/7", "/repos/a/b/pulls"],
            spares: ["/repos/a/b"]
        ),
        Concern(
            "github",
            "PUT",
            "/repos/a/b/pulls/7/merge",
            reaches: [
                "/repos/a/b/pulls", "/repos/a/b/issues/3", "/repos/a/b/commits/main", "/repos/a/b", "/search/issues",
            ],
            spares: ["/repos/a/c/pulls"]
        ),
        Concern(
            "github",
            "PUT",
            "/user/starred/a/b",
            reaches: ["/user/starred", "/repos/a/b", "/repos/a/b/stargazers", "/users/x/starred"],
            spares: ["/repos/a/c"]
        ),
        Concern(
            "github",
            "PUT",
            "/user/following/ann",
            reaches: ["/users/ann", "/users/ann/followers", "/users/x/following"],
            spares: ["/users/bob"]
        ),
        Concern(
            "github",
            "PUT",
            "/repos/a/b/contents/docs/x.md",
            reaches: ["/repos/a/b/contents/docs", "/repos/a/b/commits", "/repos/a/b/branches/main"],
            spares: ["/repos/a/b/issues"]
        ),
        Concern(
            "github",
            "DELETE",
            "/repos/a/b/labels/bug",
            reaches: ["/repos/a/b/issues/7", "/repos/a/b/issues"],
            spares: ["/repos/a/b/milestones"]
        ),
        Concern(
            "github",
            "POST",
            "/repos/a/b/actions/runs/5/rerun",
            reaches: ["/repos/a/b/actions/runs/5/jobs", "/repos/a/b/actions/runs"],
            spares: ["/repos/a/b/actions/runs/6/jobs"]
        ),
        Concern("github", "GET", "/repos/a/b/issues", reaches: [], spares: ["/search/issues"]),
        Concern(
            "gitlab",
            "PUT",
            "/api/v4/projects/1/issues/2",
            reaches: ["/api/v4/projects/a%2Fb/issues", "/api/v4/issues", "/api/v4/groups/g/issues"],
            spares: ["/api/v4/projects/1/issues/3"]
        ),
        Concern(
            "gitlab",
            "PUT",
            "/api/v4/projects/1/merge_requests/2/merge",
            reaches: [
                "/api/v4/projects/1/merge_requests", "/api/v4/projects/1/issues/3",
                "/api/v4/projects/1/repository/branches/main",
            ],
            spares: ["/api/v4/users/1"]
        ),
        Concern(
            "gitlab",
            "POST",
            "/api/v4/projects/1/merge_requests/2/notes",
            reaches: ["/api/v4/projects/1/merge_requests/2/discussions"],
            spares: ["/api/v4/projects/1/merge_requests/3/discussions"]
        ),
        Concern(
            "gitlab",
            "POST",
            "/api/v4/projects/1/repository/commits",
            reaches: ["/api/v4/projects/1/repository/branches/main"],
            spares: ["/api/v4/projects/1/issues"]
        ),
        Concern(
            "gitlab",
            "POST",
            "/api/v4/projects/1/jobs/5/retry",
            reaches: ["/api/v4/projects/1/pipelines/7/jobs", "/api/v4/projects/1/jobs"],
            spares: ["/api/v4/projects/1/issues"]
        ),
        Concern(
            "mastodon",
            "POST",
            "/api/v1/accounts/5/follow",
            reaches: ["/api/v1/accounts/5/followers", "/api/v1/timelines/home"],
            spares: ["/api/v1/accounts/6/followers"]
        ),
        Concern(
            "mastodon",
            "POST",
            "/api/v1/statuses/5/favourite",
            reaches: ["/api/v1/favourites", "/api/v1/timelines/tag/x", "/api/v1/statuses/5/favourited_by"],
            spares: ["/api/v1/bookmarks"]
        ),
        Concern(
            "mastodon",
            "POST",
            "/api/v1/statuses/5/unreblog",
            reaches: ["/api/v1/timelines/home", "/api/v1/statuses/5/reblogged_by"],
            spares: ["/api/v1/favourites"]
        ),
        Concern(
            "mastodon",
            "POST",
            "/api/v1/statuses",
            reaches: ["/api/v1/timelines/home", "/api/v1/accounts/1/statuses"],
            spares: ["/api/v1/favourites"]
        ),
        Concern(
            "mastodon",
            "POST",
            "/api/v1/follow_requests/5/authorize",
            reaches: ["/api/v1/follow_requests"],
            spares: ["/api/v1/blocks"]
        ),
        Concern(
            "stripe",
            "POST",
            "/v1/refunds",
            reaches: ["/v1/charges/ch_1", "/v1/payment_intents", "/v1/balance"],
            spares: ["/v1/customers/cus_1"]
        ),
        Concern(
            "stripe",
            "POST",
            "/v1/payment_intents/pi_1/confirm",
            reaches: ["/v1/charges", "/v1/payment_intents", "/v1/balance_transactions"],
            spares: ["/v1/products"]
        ),
        Concern(
            "stripe",
            "POST",
            "/v1/payment_intents/pi_1/capture",
            reaches: ["/v1/charges/ch_1", "/v1/payment_intents/search"],
            spares: ["/v1/invoices"]
        ),
        Concern(
            "stripe",
            "POST",
            "/v1/invoices/in_1/pay",
            reaches: ["/v1/invoices", "/v1/customers/cus_1", "/v1/subscriptions/sub_1"],
            spares: ["/v1/products"]
        ),
        Concern(
            "stripe",
            "DELETE",
            "/v1/subscriptions/sub_1",
            reaches: ["/v1/customers/cus_1/subscriptions", "/v1/invoices"],
            spares: ["/v1/products"]
        ),
    ]

    @Test(arguments: concerns) func `a write invalidates the related responses, and no others`(_ concern: Concern)
        throws
    {
        let patterns = try Self.upstream(concern.preset)
            .invalidated(method: concern.method, path: concern.path, query: nil, status: nil)
        for path in concern.reached { #expect(patterns.contains { $0.matches(path: path) }, "\(path)") }
        for path in concern.spared { #expect(!patterns.contains { $0.matches(path: path) }, "\(path)") }
    }

    @Test(arguments: [
        ("github", "DELETE /repos/a/b/issues/7/labels/bug", "[Label]"), ("github", "GET /user/5", "User"),
        ("github", "PUT /repos/a/b/pulls/7/reviews/9/dismissals", "Review"),
        ("gitlab", "POST /api/v4/projects/1/repository/commits", "Commit"),
        ("gitlab", "GET /api/v4/projects/1/repository/commits", "[Commit]"),
        ("gitlab", "POST /api/v4/projects/1/snippets", "Snippet"), ("mastodon", "DELETE /api/v1/statuses/5", "Status"),
        ("mastodon", "POST /api/v1/statuses", "nothing"), ("stripe", "POST /v1/invoices/create_preview", "nothing"),
        ("stripe", "POST /v1/topups/tu_1/cancel", "Topup"),
    ])
    func `a response to a write gets its model by path`(preset: String, request: String, body: String) throws {
        let words = request.split(separator: " ").map(String.init)
        let subject = RouteSubject(method: words[0], path: words[1], status: 200)
        let rule = try Self.upstream(preset).body(subject)?.rule
        #expect((rule.map { $0.isList ? "[\($0.model)]" : $0.model } ?? "nothing") == body)
    }

    @Test(arguments: [
        ("github", "/repos/a/b/issues/7/assignees", false), ("github", "/repos/a/b/pulls/7/requested_reviewers", false),
        ("stripe", "/v1/subscriptions/sub_1", false), ("stripe", "/v1/customers/cus_1", true),
        ("mastodon", "/api/v1/statuses/5", true), ("mastodon", "/api/v1/lists/5/accounts", false),
    ])
    func `a DELETE deletes the object that its path names, or only takes something from it`(
        name: String,
        path: String,
        deletes: Bool
    ) throws {
        #expect(try Self.upstream(name).deletes(path: path, query: nil, status: 200) == deletes)
    }
}
