import Mapping
import TestSupport
import Testing

@testable import Settings

/// The presets of the source tree, each read once: that takes longer than any test of theirs.
private enum Presets {
    static let files = Dictionary(
        uniqueKeysWithValues: ["github", "gitlab", "mastodon", "stripe"].map { name in
            (name, ConfigFile.read("\(Repository.root)/config/\(name).yaml", environment: [:]))
        }
    )
    static let upstreams = files.mapValues { file in
        Result { try CompiledUpstream(try file.checked().settings.upstreams[0]) }
    }
}

/// The upstream of a preset, as the source tree has it.
func preset(_ name: String) throws -> CompiledUpstream {
    try #require(Presets.upstreams[name]).get()
}

/// What a preset says of the answers to a GET: the model, whether the body is a list of them, and where they are in it.
func expectRule(_ name: String, _ path: String, _ model: String, _ isList: Bool, _ root: String?) throws {
    let upstream = try preset(name)
    let rule = upstream.body(RouteSubject(method: "GET", path: path, status: 200))?.rule
    #expect(rule?.model == model)
    #expect(rule?.isList == isList)
    #expect(rule?.root == root)
    #expect(upstream.body(RouteSubject(method: "GET", path: path, status: 404))?.rule.model == "Problem")
}

/// What a preset makes of the answer to a GET.
struct PresetResponse {
    let models: Models
    let match: CompiledUpstream.BodyMatch
    let body: [UInt8]

    init(_ upstream: CompiledUpstream, _ path: String, _ body: String, status: Int = 200) throws {
        models = upstream.models
        let subject = RouteSubject(method: "GET", path: path, status: status)
        match = try #require(upstream.body(subject))
        self.body = Array(body.utf8)
    }

    /// The names of its objects; the body must be without mistakes, and the same when put together again.
    func objects() throws -> [String] {
        let body = try decomposed()
        #expect(body.recomposes(to: self.body))
        #expect(body.warnings.isEmpty)
        return body.occurrences.map(\.name.description)
    }

    /// Whether it shows what must not reach a disk.
    func showsSecret() throws -> Bool { try decomposed().showsSecret }

    private func decomposed() throws -> DecomposedBody {
        let context = MappingContext(captures: match.captures)
        let decomposition = Decomposer(models: models).decompose(body, as: match.rule, in: context)
        guard case .objects(let decomposed) = decomposition else { throw NothingFound() }
        return decomposed
    }

    /// The body holds no object at all.
    private struct NothingFound: Error {}

    /// Its mapped view.
    func mapped() -> String {
        let view = DocumentMapper(models: models).map(
            body,
            as: match.rule,
            in: MappingContext(captures: match.captures)
        )
        #expect(view.warnings.isEmpty)
        return String(decoding: view.body, as: UTF8.self)
    }
}

struct ConfigPresetTests {
    @Test(arguments: Presets.files.keys.sorted())
    func `a preset has neither mistakes nor warnings`(_ name: String) throws {
        let file = try #require(Presets.files[name])
        #expect(file.diagnostics.isEmpty)
        _ = try preset(name)
    }

    @Test(
        arguments: [
            ("GET", "/users/octocat", 200, "User", false, nil, ["login": "octocat"]),
            ("GET", "/repos/a/b", 200, "Repository", false, nil, [:]),
            ("GET", "/repos/a/b/issues", 200, "Issue", true, nil, [:]),
            ("POST", "/repos/a/b/issues", 201, "Issue", false, nil, [:]),
            ("GET", "/repos/a/b/issues/7", 200, "Issue", false, nil, [:]),
            ("PATCH", "/repos/a/b/issues/7", 200, "Issue", false, nil, [:]),
            ("GET", "/repos/a/b/issues/comments", 200, "IssueComment", true, nil, [:]),
            ("GET", "/repos/a/b/issues/comments/9", 200, "IssueComment", false, nil, ["id": "9"]),
            ("GET", "/repos/a/b/pulls/7", 200, "PullRequest", false, nil, [:]),
            ("GET", "/search/issues", 200, "Issue", true, "items", [:]),
            ("GET", "/repos/a/b/releases/latest", 200, "Release", false, nil, [:]),
            ("GET", "/repos/a/b/commits/main", 200, "Commit", false, nil, [:]),
            ("GET", "/users/octocat", 404, "Problem", false, nil, [:]),
        ] as [(String, String, Int, String, Bool, String?, [String: String])]
    )
    func `GitHub's responses get their models by path`(
        _ method: String,
        _ path: String,
        _ status: Int,
        _ model: String,
        _ isList: Bool,
        _ root: String?,
        _ bound: [String: String]
    ) throws {
        let match = try preset("github").body(RouteSubject(method: method, path: path, status: status))
        #expect(match?.rule.model == model)
        #expect(match?.rule.isList == isList)
        #expect(match?.rule.root == root)
        #expect(match?.bound == bound)
    }

    @Test(arguments: [
        "/rate_limit", "/meta", "/repos/a/b/actions/runs/1/attempts/2", "/repos/a/b/contents/secrets/x",
        "/repos/a/b/contents/c.swift", "/repos/a/b/actions/secrets/public-key",
        "/repositories/1/dependabot/secrets/public-key",
        "/orgs/a/codespaces/secrets/public-key", "/repos/a/b/environments/e/secrets/public-key", "/gists/a1/star",
        "/repos/a/b/check-runs/1/annotations", "/repos/a/b/languages", "/marketplace_listing/stubbed/plans",
    ])
    func `some GitHub responses have no model on purpose`(_ path: String) throws {
        #expect(try preset("github").body(RouteSubject(method: "GET", path: path, status: 200)) == nil)
    }

    @Test func `a GitHub issue list is split into its issues and their users`() throws {
        let github = try preset("github")
        let decomposer = Decomposer(models: github.models)
        let issues = Array(
            #"[{"id":1,"number":7,"title":"t","user":{"login":"ann","id":42,"permissions":{"push":true}},"labels":[{"name":"old"}]}]"#
                .utf8
        )
        let rule = try #require(github.body(RouteSubject(method: "GET", path: "/repos/a/b/issues", status: 200))?.rule)
        guard case .objects(let body) = decomposer.decompose(issues, as: rule) else {
            Issue.record("not decomposed")
            return
        }
        #expect(body.occurrences.map(\.name.description) == ["Issue:1", "User:42"])
        #expect(body.recomposes(to: issues))
        #expect(body.warnings.isEmpty)
    }

    @Test func `a list of GitHub contributors with anonymous ones has no model`() throws {
        let github = try preset("github")
        func model(_ query: String?) -> String? {
            github.body(RouteSubject(method: "GET", path: "/repos/a/b/contributors", query: query, status: 200))?.rule
                .model
        }
        #expect(model(nil) == "User")
        #expect(model("anon=1") == nil)
    }

    @Test(
        arguments: [
            ("gitlab", "/api/v4/users/7", "User", false, nil),
            ("gitlab", "/api/v4/projects/a%2Fb", "Project", false, nil),
            ("gitlab", "/api/v4/projects/1/issues", "Issue", true, nil),
            ("gitlab", "/api/v4/projects/1/merge_requests/2", "MergeRequest", false, nil),
            ("gitlab", "/api/v4/projects/1/merge_requests/2/notes", "Note", true, nil),
            ("gitlab", "/api/v4/projects/1/repository/branches/main", "Branch", false, nil),
            ("gitlab", "/api/v4/projects/1/repository/compare", "Commit", true, "commits"),
            ("gitlab", "/api/v4/projects/1/pipelines/latest", "Pipeline", false, nil),
            ("stripe", "/v1/customers", "Customer", true, "data"),
            ("stripe", "/v1/customers/search", "Customer", true, "data"),
            ("stripe", "/v1/customers/cus_1", "Customer", false, nil),
            ("stripe", "/v1/customers/cus_1/sources", "PaymentSource", true, "data"),
            ("stripe", "/v1/payment_intents/pi_1", "PaymentIntent", false, nil),
            ("stripe", "/v1/invoices/in_1/lines", "InvoiceLine", true, "data"),
            ("stripe", "/v1/checkout/sessions/cs_1", "CheckoutSession", false, nil),
            ("mastodon", "/api/v1/accounts/verify_credentials", "Account", false, nil),
            ("mastodon", "/api/v1/accounts/relationships", "Relationship", true, nil),
            ("mastodon", "/api/v1/timelines/home", "Status", true, nil),
            ("mastodon", "/api/v1/statuses/5", "Status", false, nil),
            ("mastodon", "/api/v1/statuses/5/context", "Status", true, "ancestors"),
            ("mastodon", "/api/v1/statuses/5/history", "StatusEdit", true, nil),
            ("mastodon", "/api/v2/search", "Account", true, "accounts"),
        ] as [(String, String, String, Bool, String?)]
    )
    func `responses of each API get their models by path`(
        _ name: String,
        _ path: String,
        _ model: String,
        _ isList: Bool,
        _ root: String?
    ) throws {
        try expectRule(name, path, model, isList, root)
    }

    @Test(arguments: [
        ("gitlab", "/api/v4/projects/1/pipelines/2/test_report"), ("gitlab", "/api/v4/version"),
        ("gitlab", "/api/v4/projects/1/repository/tree"), ("stripe", "/v1/invoices/upcoming"),
        ("stripe", "/v1/balance"),
        ("stripe", "/v1/cards/card_1"), ("mastodon", "/api/v1/domain_blocks"), ("mastodon", "/api/v1/preferences"),
        ("mastodon", "/api/v2/notifications/policy"),
    ])
    func `some responses of other APIs have no model on purpose`(_ name: String, _ path: String) throws {
        #expect(try preset(name).body(RouteSubject(method: "GET", path: path, status: 200)) == nil)
    }
}

/// Small bodies in the forms that the APIs send.
struct ConfigPresetBodyTests {
    @Test func `GitHub's searches show the total beside the found objects`() throws {
        let answer = try PresetResponse(
            preset("github"),
            "/search/issues",
            #"{"total_count":1,"incomplete_results":false,"items":[{"id":1,"number":7,"score":1.0,"state":"open"}]}"#
        )
        #expect(try answer.objects() == ["Issue:1"])
        #expect(
            answer.mapped()
                == #"{"totalCount":1,"isIncomplete":false,"items":[{"id":1,"number":7,"state":"open"}]}"#
        )
    }

    @Test func `a GitLab merge request keeps its labels and the reader's permissions local`() throws {
        let answer = try PresetResponse(
            preset("gitlab"),
            "/api/v4/projects/1/merge_requests/2",
            #"{"id":9,"iid":2,"state":"opened","labels":["x"],"merge_status":"checking","user":{"can_merge":true},"author":{"id":7,"username":"ann"},"head_pipeline":{"id":3,"status":"running"},"milestone":null}"#
        )
        #expect(try answer.objects() == ["MergeRequest:9", "User:7", "Pipeline:3"])
        #expect(
            answer.mapped()
                == #"{"id":9,"number":2,"state":"opened","author":{"id":7,"username":"ann"},"milestone":null,"headPipeline":{"id":3,"status":"running"}}"#
        )
    }

    @Test func `a GitLab branch is a separate object in each project`() throws {
        let gitlab = try preset("gitlab")
        let body = #"[{"name":"main","protected":true,"can_push":true,"commit":{"id":"a1","title":"t"}}]"#
        let here = try PresetResponse(gitlab, "/api/v4/projects/1/repository/branches", body).objects()
        let there = try PresetResponse(gitlab, "/api/v4/projects/2/repository/branches", body).objects()
        #expect(here.count == 2 && there.count == 2)
        #expect(here.last == "Commit:a1" && there.last == "Commit:a1")
        #expect(here.first != there.first)
    }

    @Test func `Stripe's list contains objects, ids of objects and payment sources`() throws {
        let answer = try PresetResponse(
            preset("stripe"),
            "/v1/charges",
            #"{"object":"list","data":[{"id":"ch_1","object":"charge","amount":5,"created":1700000000,"customer":"cus_1","source":{"id":"card_1","object":"card","last4":"4242"},"metadata":{"k":"v"}}],"has_more":false}"#
        )
        #expect(try answer.objects() == ["Charge:ch_1", "PaymentSource:card_1"])
        #expect(
            answer.mapped()
                == #"{"hasMore":false,"data":[{"id":"ch_1","amount":5,"metadata":{"k":"v"},"createdAt":"2023-11-14T22:13:20Z","customer":"cus_1","source":{"id":"card_1","last4":"4242"}}]}"#
        )
    }

    @Test func `Stripe's subscription contains a list, and an expanded customer`() throws {
        let answer = try PresetResponse(
            preset("stripe"),
            "/v1/subscriptions/sub_1",
            #"{"id":"sub_1","object":"subscription","customer":{"id":"cus_1","object":"customer","email":"a@b.example"},"items":{"object":"list","data":[{"id":"si_1","object":"subscription_item","price":{"id":"price_1","object":"price","product":"prod_1"}}],"has_more":false}}"#
        )
        #expect(
            try answer.objects() == ["Subscription:sub_1", "Customer:cus_1", "SubscriptionItem:si_1", "Price:price_1"]
        )
        #expect(
            answer.mapped()
                == #"{"id":"sub_1","customer":{"id":"cus_1","email":"a@b.example"},"hasMoreItems":false,"items":[{"id":"si_1","price":{"id":"price_1","product":"prod_1"}}]}"#
        )
    }

    @Test func `Stripe's error is mapped from the object inside the response`() throws {
        let answer = try PresetResponse(
            preset("stripe"),
            "/v1/charges/ch_1",
            #"{"error":{"type":"invalid_request_error","message":"No such charge"}}"#,
            status: 404
        )
        #expect(answer.mapped() == #"{"type":"invalid_request_error","message":"No such charge"}"#)
    }

    @Test func `Mastodon's boost contains another status, without the reader's own state`() throws {
        let answer = try PresetResponse(
            preset("mastodon"),
            "/api/v1/timelines/home",
            #"[{"id":"5","content":"","favourited":true,"account":{"id":"1","acct":"ann"},"reblog":{"id":"4","content":"x","favourited":false,"account":{"id":"2","acct":"bob@n.example"}},"mentions":[{"id":"1","acct":"ann"}]}]"#
        )
        #expect(try answer.objects() == ["Status:5", "Account:1", "Status:4", "Account:2", "Account:1"])
        #expect(
            answer.mapped()
                == #"[{"id":"5","content":"","account":{"id":"1","acct":"ann"},"reblog":{"id":"4","content":"x","account":{"id":"2","acct":"bob@n.example"}},"mentions":[{"id":"1","acct":"ann"}]}]"#
        )
    }

    @Test func `Mastodon's grouped notifications refer to the objects beside them`() throws {
        let answer = try PresetResponse(
            preset("mastodon"),
            "/api/v2/notifications",
            #"{"accounts":[{"id":"1","acct":"ann"}],"statuses":[{"id":"5","content":"x"}],"notification_groups":[{"group_key":"g","sample_account_ids":["1"],"status_id":"5"}]}"#
        )
        #expect(try Set(answer.objects()).isSuperset(of: ["Account:1", "Status:5"]))
    }
}
