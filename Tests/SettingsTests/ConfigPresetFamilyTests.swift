import Mapping
import Testing

@testable import Settings

/// The families of objects beside those that every program asks for: each by its path, and what tells its objects apart.
struct ConfigPresetFamilyTests {
    @Test(
        arguments: [
            ("github", "/events", "Event", true, nil),
            ("github", "/users/a/received_events/public", "Event", true, nil),
            ("github", "/repos/a/b/issues/7/timeline", "TimelineItem", true, nil),
            ("github", "/orgs/a/audit-log", "AuditEntry", true, nil),
            ("github", "/repos/a/b/hooks", "Hook", true, nil),
            ("github", "/app/hook/deliveries/9", "HookDelivery", false, nil),
            ("github", "/repos/a/b/keys/3", "DeployKey", false, nil),
            ("github", "/repos/a/b/environments", "Environment", true, "environments"),
            ("github", "/repos/a/b/actions/secrets", "RepositorySecret", true, "secrets"),
            ("github", "/repositories/1/codespaces/secrets/S", "NumberedRepositorySecret", false, nil),
            ("github", "/organizations/1/dependabot/secrets", "OrganizationSecret", true, "secrets"),
            ("github", "/repositories/1/environments/e/secrets", "NumberedEnvironmentSecret", true, "secrets"),
            ("github", "/repos/a/b/git/refs", "GitRef", true, nil),
            ("github", "/repos/a/b/git/refs/tags", "GitRef", true, nil),
            ("github", "/repos/a/b/git/refs/heads/feature/x", "GitRef", false, nil),
            ("github", "/repos/a/b/git/matching-refs/heads/f", "GitRef", true, nil),
            ("github", "/repos/a/b/git/trees/a1", "GitTree", false, nil),
            ("github", "/repos/a/b/branches/main/protection", "BranchProtection", false, nil),
            ("github", "/repos/a/b/readme", "File", false, nil),
            ("github", "/search/code", "FoundFile", true, "items"),
            ("github", "/repos/a/b/pages/builds/latest", "SiteBuild", false, nil),
            ("github", "/projects/columns/4/cards", "ProjectCard", true, nil),
            ("github", "/orgs/a/code-scanning/alerts", "CodeScanningAlert", true, nil),
            ("github", "/user/installations", "Installation", true, "installations"),
            ("github", "/marketplace_listing/accounts/4", "MarketplaceAccount", false, nil),
            ("github", "/orgs/a/teams/t/repos/a/b", "Repository", false, nil),
            ("github", "/notifications/threads/1/subscription", "ThreadSubscription", false, nil),
            ("github", "/gists/a1/commits", "GistCommit", true, nil),
            ("github", "/gists/a1/b2", "GistRevision", false, nil),
            ("gitlab", "/api/v4/todos", "Todo", true, nil),
            ("gitlab", "/api/v4/users/1/memberships", "Membership", true, nil),
            ("gitlab", "/api/v4/projects/1/members/all", "InheritedProjectMember", true, nil),
            ("gitlab", "/api/v4/groups/1/variables/K", "GroupVariable", false, nil),
            ("gitlab", "/api/v4/projects/1/environments/2", "Environment", false, nil),
            ("gitlab", "/api/v4/runners/all", "Runner", true, nil),
            ("gitlab", "/api/v4/projects/1/merge_requests/2/approval_rules", "MergeRequestRule", true, nil),
            ("gitlab", "/api/v4/projects/1/wikis/a%2Fb", "WikiPage", false, nil),
            ("gitlab", "/api/v4/geo_nodes/status", "GeoNodeStatus", true, nil),
            ("stripe", "/v1/accounts/acct_1/capabilities", "Capability", true, "data"),
            ("stripe", "/v1/billing/meters/mtr_1", "Meter", false, nil),
            ("stripe", "/v1/checkout/sessions/cs_1/line_items", "LineItem", true, "data"),
            ("stripe", "/v1/climate/orders", "ClimateOrder", true, "data"),
            ("stripe", "/v1/entitlements/active_entitlements", "ActiveEntitlement", true, "data"),
            ("stripe", "/v1/financial_connections/accounts", "BankConnection", true, "data"),
            ("stripe", "/v1/forwarding/requests/fwdreq_1", "ForwardedRequest", false, nil),
            ("stripe", "/v1/identity/verification_reports/vr_1", "VerificationReport", false, nil),
            ("stripe", "/v1/issuing/authorizations", "Authorization", true, "data"),
            ("stripe", "/v1/radar/value_list_items", "ValueListItem", true, "data"),
            ("stripe", "/v1/reporting/report_types/balance.summary.1", "ReportType", false, nil),
            ("stripe", "/v1/tax/transactions/tax_1/line_items", "TaxTransactionLine", true, "data"),
            ("stripe", "/v1/terminal/readers/tmr_1", "Reader", false, nil),
            ("stripe", "/v1/treasury/transaction_entries", "TreasuryEntry", true, "data"),
            ("stripe", "/v1/country_specs/US", "CountrySpec", false, nil),
            ("mastodon", "/api/v1/custom_emojis", "CustomEmoji", true, nil),
            ("mastodon", "/api/v1/instance/rules", "Rule", true, nil),
            ("mastodon", "/api/v1/trends/links", "Link", true, nil),
            ("mastodon", "/api/v1/statuses/5/source", "StatusSource", false, nil),
            ("mastodon", "/api/v1/push/subscription", "PushSubscription", false, nil),
        ] as [(String, String, String, Bool, String?)]
    )
    func `a response of each family of paths gets its model`(
        _ name: String,
        _ path: String,
        _ model: String,
        _ isList: Bool,
        _ root: String?
    ) throws {
        try expectRule(name, path, model, isList, root)
    }

    @Test(
        arguments: [
            ("github", "PUT", "/orgs/a/teams/t/memberships/ann", "/orgs/a/teams/t/members"),
            ("github", "DELETE", "/repos/a/b/branches/main/protection", "/repos/a/b/branches/main"),
            ("gitlab", "POST", "/api/v4/todos/3/mark_as_done", "/api/v4/todos"),
            ("gitlab", "DELETE", "/api/v4/groups/1/members/7", "/api/v4/groups/1/members/all"),
        ]
    )
    func `a write invalidates responses of related paths`(
        _ name: String,
        _ method: String,
        _ path: String,
        _ other: String
    )
        throws
    {
        let patterns = try preset(name).invalidated(method: method, path: path, query: nil, status: 200)
        #expect(patterns.contains { $0.matches(path: other) })
    }

    @Test func `a GitHub event does not change its actor or repository`() throws {
        let answer = try PresetResponse(
            preset("github"),
            "/events",
            #"[{"id":"17","type":"WatchEvent","actor":{"id":42,"login":"ann","avatar_url":"https://a.example/u/42?"},"repo":{"id":1,"name":"ann/b"},"payload":{"action":"started"},"public":true,"created_at":"2013-06-17T18:13:14Z"}]"#
        )
        #expect(try answer.objects() == ["Event:17"])
        #expect(
            answer.mapped()
                == #"[{"id":"17","type":"WatchEvent","isPublic":true,"actorLogin":"ann","repositoryName":"ann/b","createdAt":"2013-06-17T18:13:14Z"}]"#
        )
    }

    @Test func `GitHub's comments and events in a timeline are numbered separately`() throws {
        let answer = try PresetResponse(
            preset("github"),
            "/repos/a/b/issues/7/timeline",
            #"[{"event":"labeled","id":5,"actor":{"id":42,"login":"ann"}},{"event":"commented","id":5,"user":{"id":42,"login":"ann"},"body":"x"}]"#
        )
        let names = try answer.objects()
        #expect(Set(names).count == 3 && names.filter { $0 == "User:42" }.count == 2)
    }

    @Test func `a GitHub ref is one object in a list and alone, and another in another repository`() throws {
        let github = try preset("github")
        let reference = #"{"ref":"refs/heads/f/x","object":{"sha":"a1","type":"commit"}}"#
        let listed = try PresetResponse(github, "/repos/a/b/git/refs", "[\(reference)]").objects()
        #expect(try PresetResponse(github, "/repos/a/b/git/refs/heads/f/x", reference).objects() == listed)
        #expect(try PresetResponse(github, "/repos/a/c/git/refs", "[\(reference)]").objects() != listed)
    }

    @Test func `GitHub's secrets are separate for each service and place, and their names are not secret`() throws {
        let github = try preset("github")
        let list = #"{"total_count":1,"secrets":[{"name":"S","created_at":"2023-07-24T22:14:07Z"}]}"#
        let names = try [
            "/repos/a/b/actions/secrets", "/repos/a/b/dependabot/secrets", "/repositories/1/actions/secrets",
            "/repositories/1/environments/e/secrets", "/orgs/a/actions/secrets",
        ].flatMap { path in
            let answer = try PresetResponse(github, path, list)
            #expect(try !answer.showsSecret())
            return try answer.objects()
        }
        #expect(Set(names).count == 5)
    }

    @Test func `a token in an old GitHub hook is secret`() throws {
        func shows(_ config: String) throws -> Bool {
            try PresetResponse(preset("github"), "/repos/a/b/hooks/6", #"{"id":6,"name":"web","config":\#(config)}"#)
                .showsSecret()
        }
        #expect(try shows(#"{"token":"abc"}"#))
        #expect(try !shows(#"{"url":"https://a.example","content_type":"json"}"#))
    }

    @Test func `a GitHub alert is one object in its organization's list and in its repository`() throws {
        let github = try preset("github")
        let alert =
            #"{"number":1,"url":"https://api.github.com/repos/a/b/code-scanning/alerts/1","state":"open","dismissed_by":null}"#
        let listed = try PresetResponse(github, "/orgs/a/code-scanning/alerts", "[\(alert)]").objects()
        #expect(try PresetResponse(github, "/repos/a/b/code-scanning/alerts/1", alert).objects() == listed)
    }

    @Test func `a changed file belongs to its pull request, and a gist's revision is not the gist`() throws {
        let github = try preset("github")
        let files = #"[{"filename":"a.rb","sha":"a1","patch":"@@"}]"#
        let one = try PresetResponse(github, "/repos/a/b/pulls/1/files", files).objects()
        #expect(try PresetResponse(github, "/repos/a/b/pulls/2/files", files).objects() != one)
        let gist = #"{"id":"790381","description":"x","history":[{"version":"a1","user":{"id":42,"login":"ann"}}]}"#
        let names = try PresetResponse(github, "/gists/790381/a1", gist).objects()
        #expect(
            names.count == 3 && names.dropFirst() == ["GistCommit:a1", "User:42"] && names[0].hasPrefix("GistRevision")
        )
    }

    @Test func `the model of a GitLab to-do's target is chosen by the type beside it`() throws {
        func objects(_ type: String) throws -> [String] {
            try PresetResponse(
                preset("gitlab"),
                "/api/v4/todos",
                #"[{"id":1,"target_type":"\#(type)","target":{"id":9,"title":"t"},"author":{"id":7,"username":"ann"}}]"#
            ).objects()
        }
        #expect(try Set(objects("Issue")) == ["Todo:1", "User:7", "Issue:9"])
        #expect(try Set(objects("MergeRequest")) == ["Todo:1", "User:7", "MergeRequest:9"])
        #expect(try Set(objects("Commit")) == ["Todo:1", "User:7"])
    }

    @Test func `a GitLab member is no user, and a separate object in each project and group`() throws {
        let gitlab = try preset("gitlab")
        let body = #"[{"id":7,"username":"ann","access_level":30,"created_at":"2020-01-01T00:00:00Z"}]"#
        let names = try ["projects/1/members", "projects/2/members", "groups/1/members", "projects/1/members/all"]
            .flatMap { try PresetResponse(gitlab, "/api/v4/\($0)", body).objects() }
        #expect(Set(names).count == 4 && !names.contains("User:7"))
    }

    @Test func `GitLab's variables are secret`() throws {
        let answer = try PresetResponse(
            preset("gitlab"),
            "/api/v4/projects/1/variables",
            #"[{"key":"K","value":"v","environment_scope":"*"}]"#
        )
        #expect(try answer.showsSecret())
    }

    @Test func `Stripe's authorization contains the card and its holder, and a card's number is secret`() throws {
        func answer(_ more: String) throws -> PresetResponse {
            try PresetResponse(
                preset("stripe"),
                "/v1/issuing/authorizations",
                #"{"object":"list","data":[{"id":"iauth_1","card":{"id":"ic_1"\#(more),"cardholder":{"id":"ich_1","name":"A"}},"token":null,"balance_transactions":["txn_1"]}],"has_more":false}"#
            )
        }
        #expect(try answer("").objects() == ["Authorization:iauth_1", "IssuedCard:ic_1", "Cardholder:ich_1"])
        #expect(try !answer("").showsSecret())
        #expect(try answer(#","number":"4242424242424242""#).showsSecret())
    }

    @Test func `Stripe's capabilities are identified within their account, and tax lines within their kind`() throws {
        let stripe = try preset("stripe")
        func capability(_ account: String) throws -> [String] {
            let body = #"{"id":"card_payments","object":"capability","account":"\#(account)","status":"active"}"#
            return try PresetResponse(stripe, "/v1/accounts/\(account)/capabilities/card_payments", body).objects()
        }
        #expect(try capability("acct_1") != capability("acct_2"))
        let lines = #"{"object":"list","data":[{"id":"tax_li_1","amount":1}],"has_more":false}"#
        #expect(
            try PresetResponse(stripe, "/v1/tax/calculations/c/line_items", lines).objects() == [
                "TaxCalculationLine:tax_li_1"
            ]
        )
        #expect(
            try PresetResponse(stripe, "/v1/tax/transactions/t/line_items", lines).objects() == [
                "TaxTransactionLine:tax_li_1"
            ]
        )
    }

    @Test func `Mastodon's markers are identified by their timelines`() throws {
        let answer = try PresetResponse(
            preset("mastodon"),
            "/api/v1/markers",
            #"{"home":{"last_read_id":"3","version":1,"updated_at":"2024-04-29T12:50:18.048Z"},"notifications":{"last_read_id":"9","version":2}}"#
        )
        #expect(try answer.objects() == ["Marker:home", "Marker:notifications"])
    }

    @Test func `the source of a Mastodon status is not the status, and a link shows its author`() throws {
        let mastodon = try preset("mastodon")
        let source = try PresetResponse(
            mastodon,
            "/api/v1/statuses/5/source",
            #"{"id":"5","text":"x","spoiler_text":""}"#
        )
        #expect(try source.objects() == ["StatusSource:5"])
        let links = try PresetResponse(
            mastodon,
            "/api/v1/trends/links",
            #"[{"url":"https://a.example/","title":"t","authors":[{"name":"A","url":"","account":{"id":"1","acct":"ann"}}],"history":[]}]"#
        )
        #expect(try links.objects() == ["Link:https://a.example/", "Account:1"])
    }
}
