import Foundation
import TestSupport
import Testing

/// Client libraries of other projects, with a token for each job, before an origin whose tags depend on the token.
///
/// They get what the origin would give them, and a further token costs 304s.
@Suite(.scripts, .serialized) struct RotatingClientsTests {
    static let gitlab = PythonEnvironment("gitlab", packages: ["python-gitlab"], imports: ["gitlab"])

    private static func token(_ name: String) -> String { "\(name)_0123456789abcdef" }

    private static func larder(_ origin: GitHubOrigin, _ preset: String, _ upstream: String = "") throws -> Larder {
        try Larder(
            origin.origin,
            config: """
                include: \(Repository.root)/config/\(preset).yaml
                upstreams: { \(preset): { url: "\(origin.origin.url)", rewrite_links: true\(upstream) } }
                store: { withhold: 20s }
                """
        )
    }

    /// The pages of a repository or a project: itself, and two pages of issues, which link to each other.
    private static func fill(_ origin: GitHubOrigin, _ path: String, _ itself: String, issue: (Int) -> String) {
        let root = origin.origin.url
        origin.set(path, .init(body: itself))
        for page in 1...2 {
            let issues = (3 * page - 2...3 * page).map(issue)
            var content = GitHubOrigin.Page(body: "[" + issues.joined(separator: ",") + "]")
            if page == 1 { content.fields = ["Link": #"<\#(root)\#(path)/issues?page=2>; rel="next""#] }
            origin.set(path + "/issues" + (page == 1 ? "" : "?page=2"), content)
        }
    }

    @Test(.enabled(if: PyGithubTests.python.isInstalled, "PyGithub could not be installed from PyPI"))
    func `PyGithub with rotating tokens gets correct responses, and each further token costs 304s`() throws {
        let github = try GitHubOrigin()
        let root = github.origin.url
        func fill(_ title: String) {
            Self.fill(
                github,
                "/repos/o/r1",
                #"{"id":1,"name":"r1","full_name":"o/r1","url":"\#(root)/repos/o/r1","owner":{"id":9,"login":"o"}}"#
            ) { number in
                #"{"id":\#(100 + number),"number":\#(number),"title":"\#(number == 5 ? title : "t")","#
                    + #""url":"\#(root)/repos/o/r1/issues/\#(number)","user":{"id":9,"login":"o"}}"#
            }
        }
        fill("old")
        var secret = GitHubOrigin.Page.repository(2)
        secret.readers = [Self.token("a")]
        github.set("/repos/o/r2", secret)
        let larder = try Self.larder(github, "github")
        let script = """
            import sys
            from github import Auth, Github, UnknownObjectException
            for token in sys.argv[2:]:
                client = Github(base_url=sys.argv[1], auth=Auth.Token(token), retry=None, timeout=20,
                                seconds_between_requests=0, seconds_between_writes=0)
                repository = client.get_repo("o/r1")
                titles = [issue.title for issue in repository.get_issues()]
                assert repository.url == sys.argv[1] + "/repos/o/r1", repository.url
                try:
                    client.get_repo("o/r2")
                    secret = "seen"
                except UnknownObjectException:
                    secret = "unknown"
                print(repository.full_name, repository.owner.login, ",".join(titles), secret)
            """
        func run(_ names: String...) throws -> [String] {
            let output = try PyGithubTests.python.run(script, [larder.url] + names.map(Self.token))
            return output.split(separator: "\n").map(String.init)
        }
        #expect(try run("a", "b") == ["o/r1 o t,t,t,t,old,t seen", "o/r1 o t,t,t,t,old,t unknown"])
        // The whole for the first token, the trial for the second one, and the refusal of what is not the second one's.
        #expect(github.fulls == 4 + 1 + 1 && github.notModified == 2)
        #expect(try run("c", "d") == Array(repeating: "o/r1 o t,t,t,t,old,t unknown", count: 2))
        #expect(github.fulls == 6 + 2 && github.notModified == 2 + 2 * 3)
        #expect(github.cost(Self.token("c")) == 1, "the 404")
        fill("new")
        #expect(try run("e", "f") == Array(repeating: "o/r1 o t,t,t,t,new,t unknown", count: 2))
        #expect(github.fulls == 8 + 2 + 1 && github.notModified == 8 + 2 + 3)
        #expect(github.refusals == 0)
    }

    @Test(.enabled(if: gitlab.isInstalled, "python-gitlab could not be installed from PyPI"))
    func `python-gitlab with rotating tokens gets correct responses, and each further token costs 304s`() throws {
        let lab = try GitHubOrigin(tagOf: ["Private-Token"])
        let root = lab.origin.url
        let path = "/api/v4/projects/1"
        func fill(_ title: String) {
            Self.fill(
                lab,
                path,
                #"{"id":1,"name":"p","path_with_namespace":"g/p","web_url":"\#(root)/g/p","_links":{"self":"\#(root)\#(path)"}}"#
            ) { number in
                #"{"id":\#(100 + number),"iid":\#(number),"project_id":1,"title":"\#(number == 5 ? title : "t")","#
                    + #""state":"opened","author":{"id":9,"username":"o","name":"O"}}"#
            }
        }
        fill("old")
        let larder = try Self.larder(
            lab,
            "gitlab",
            ", validate_across: computed, etag: { sha256: [Private-Token, body] }"
        )
        let script = """
            import sys, gitlab
            for token in sys.argv[2:]:
                client = gitlab.Gitlab(sys.argv[1], private_token=token, timeout=20)
                project = client.projects.get(1)
                issues = list(project.issues.list(iterator=True))
                assert project._links["self"] == sys.argv[1] + "/api/v4/projects/1", project._links
                print(project.path_with_namespace, issues[0].author["username"], ",".join(i.title for i in issues))
            """
        func run(_ names: String...) throws -> [String] {
            let output = try Self.gitlab.run(script, [larder.url] + names.map(Self.token))
            return output.split(separator: "\n").map(String.init)
        }
        #expect(try run("a", "b") == Array(repeating: "g/p o t,t,t,t,old,t", count: 2))
        #expect(lab.fulls == 3 + 1 && lab.notModified == 2)
        #expect(try run("c", "d") == Array(repeating: "g/p o t,t,t,t,old,t", count: 2))
        #expect(lab.fulls == 4 && lab.notModified == 2 + 2 * 3)
        fill("new")
        #expect(try run("e", "f") == Array(repeating: "g/p o t,t,t,t,new,t", count: 2))
        #expect(lab.fulls == 4 + 1 && lab.notModified == 8 + 2 + 3)
        #expect(lab.cost(Self.token("d")) == 0 && lab.refusals == 0)
    }
}
