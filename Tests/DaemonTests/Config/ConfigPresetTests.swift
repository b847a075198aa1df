import Mapping
import Testing

@testable import Daemon

/// The upstream of `config/github.yaml`.
private func gitHub() throws -> CompiledUpstream {
    let root = #filePath.split(separator: "/").dropLast(4).reduce("") { "\($0)/\($1)" }
    let file = ConfigFile.read("\(root)/config/github.yaml", environment: [:])
    #expect(file.diagnostics.isEmpty)
    return try CompiledUpstream(try file.checked().settings.upstreams[0])
}

struct ConfigPresetTests {
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
    func `GitHub's answers are known by their path`(
        _ method: String,
        _ path: String,
        _ status: Int,
        _ model: String,
        _ isList: Bool,
        _ root: String?,
        _ bound: [String: String]
    ) throws {
        let match = try gitHub().body(RouteSubject(method: method, path: path, status: status))
        #expect(match?.rule == BodyRule(model: model, isList: isList, root: root))
        #expect(match?.bound == bound)
    }

    @Test(arguments: [
        "/events", "/repos/a/b/events", "/users/a/events", "/rate_limit", "/gists", "/repos/a/b/git/refs",
    ])
    func `what would mislead is left as it is`(_ path: String) throws {
        #expect(try gitHub().body(RouteSubject(method: "GET", path: path, status: 200)) == nil)
    }

    @Test func `an issue's list and a user's page speak of the same user`() throws {
        let github = try gitHub()
        let normaliser = Normaliser(models: github.models)
        let issues = Array(
            #"[{"id":1,"number":7,"title":"t","user":{"login":"ann","id":42,"permissions":{"push":true}},"labels":[{"name":"old"}]}]"#
                .utf8
        )
        let rule = try #require(github.body(RouteSubject(method: "GET", path: "/repos/a/b/issues", status: 200))?.rule)
        guard case .objects(let body) = normaliser.decompose(issues, as: rule) else {
            Issue.record("not decomposed")
            return
        }
        #expect(body.occurrences.map(\.name.description) == ["Issue:1", "User:42"])
        #expect(body.recomposes(to: issues))
        #expect(body.warnings.isEmpty)
    }
}

struct ConfigCompiledUpstreamTests {
    private func compiled() throws -> CompiledUpstream {
        let yaml = """
            upstreams: { a: { url: "https://a.example" } }
            models: { User: { identity: id }, Problem: { identity: [] } }
            routes:
              - { path: "users/{id:#}", model: User, object: { id: id }, fresh: 5m }
              - { path: "users/*", cache: never }
              - { path: "odd", status: 404, model: User }
            errors:
              - { path: "**", model: Problem }
            """
        return try CompiledUpstream(
            try ConfigFile.parse(yaml, file: "x", environment: [:]).checked().settings.upstreams[0]
        )
    }

    @Test func `an answer is looked up by method, path and status`() throws {
        let upstream = try compiled()
        let match = upstream.body(RouteSubject(method: "GET", path: "/users/7", status: 200))
        #expect(match?.bound == ["id": "7"])
        #expect(match.map { Array($0.captures.values) } == ["7"])
        #expect(upstream.body(RouteSubject(method: "GET", path: "/users/ann", status: 200)) == nil)
        #expect(upstream.body(RouteSubject(method: "GET", path: "/users/7", status: 500))?.rule.model == "Problem")
        #expect(upstream.body(RouteSubject(method: "GET", path: "/odd", status: 404))?.rule.model == "User")
        #expect(upstream.body(RouteSubject(method: "GET", path: "/elsewhere", status: 200)) == nil)
    }

    @Test func `a request is told what its route overrules`() throws {
        let upstream = try compiled()
        #expect(upstream.overrides(method: "GET", path: "/users/7").fresh == .seconds(300))
        #expect(upstream.overrides(method: "HEAD", path: "/users/ann").cache == .never)
        #expect(upstream.overrides(method: "GET", path: "/x") == Settings.Overrides())
    }
}
