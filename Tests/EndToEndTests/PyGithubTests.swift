import Foundation
import TestSupport
import Testing

/// A client library that nobody here wrote, before an origin that speaks as GitHub does.
///
/// PyGithub completes objects by following the absolute URLs in them, follows `Link` from page to page, and refuses any other
/// host and port than those of its base URL.
@Suite(.scripts, .serialized) struct PyGithubTests {
    static let python = PythonEnvironment("pygithub", packages: ["PyGithub"], imports: ["github"])

    /// A repository with seven issues, in pages of three.
    final class GitHub: Sendable {
        let origin: Origin

        init() throws {
            let titles = Monitor([Int: String]())
            origin = try Origin { request in
                let root = "http://\(request.fields["Host"] ?? "")"
                switch (request.method, request.path) {
                case ("GET", "/repos/ada/larch"):
                    return .json(Self.repository(root), Fresh.tagged("repository"))
                case ("GET", "/repos/ada/larch/issues"):
                    return Self.issues(titles.current, root, page: Self.page(of: request.target))
                case ("PATCH", "/repos/ada/larch/issues/2"):
                    let body = try? JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any]
                    titles.withLock { $0[2] = body?["title"] as? String }
                    return .json(Self.issue(2, titles.current, root))
                case ("GET", "/users/ada"):
                    return .json(Self.user(root, #","name":"Ada Tanaka","followers":12"#), Fresh.tagged("ada"))
                case ("GET", "/user"):
                    let name = request.fields["Authorization"] == "token of-bela" ? "bela" : "ada"
                    return .json(#"{"id":\#(name == "ada" ? 1 : 2),"login":"\#(name)"}"#, Fresh.hour)
                default:
                    return .json(#"{"message":"Not Found"}"#, status: 404)
                }
            }
        }

        private static func page(of target: String) -> Int {
            target.firstRange(of: "page=").flatMap { Int(target[$0.upperBound...].prefix { $0.isNumber }) } ?? 1
        }

        private static func user(_ root: String, _ more: String = "") -> String {
            #"{"login":"ada","id":1,"url":"\#(root)/users/ada","type":"User"\#(more)}"#
        }

        private static func repository(_ root: String) -> String {
            #"{"id":7,"name":"larch","full_name":"ada/larch","owner":\#(user(root)),"url":"\#(root)/repos/ada/larch"}"#
        }

        private static func issue(_ number: Int, _ titles: [Int: String], _ root: String) -> String {
            let time = titles[number] == nil ? "2024-05-01T10:00:00Z" : "2024-05-02T10:00:00Z"
            return #"{"url":"\#(root)/repos/ada/larch/issues/\#(number)","id":\#(100 + number),"number":\#(number),"#
                + #""title":"\#(titles[number] ?? "Issue \(number)")","user":\#(user(root)),"state":"open","#
                + #""labels":[],"created_at":"2024-05-01T10:00:00Z","updated_at":"\#(time)"}"#
        }

        private static func issues(_ titles: [Int: String], _ root: String, page: Int) -> OriginResponse {
            let numbers = (1...7).filter { ($0 - 1) / 3 == page - 1 }
            let list = "[" + numbers.map { issue($0, titles, root) }.joined(separator: ",") + "]"
            let next = "<\(root)/repos/ada/larch/issues?page=\(page + 1)>; rel=\"next\""
            return .json(list, Fresh.hour + (page < 3 ? ["Link": next] : [:]))
        }
    }

    /// The shipped configuration, with links led back to Larder.
    static func config(_ origin: Origin) throws -> String {
        try String(contentsOfFile: "\(Repository.root)/config/github.yaml", encoding: .utf8).replacing(
            "url: https://api.github.com\n",
            with: "url: \(origin.url)\n    rewrite_links: true\n"
        )
    }

    static let prelude = """
        import sys
        from github import Auth, Github
        def client(token):
            return Github(base_url=sys.argv[1], auth=Auth.Token(token), retry=None, timeout=10,
                          seconds_between_requests=0, seconds_between_writes=0)
        repository = client("of-ada").get_repo("ada/larch")
        assert repository.url == sys.argv[1] + "/repos/ada/larch", repository.url
        assert repository.owner.name == "Ada Tanaka", "an object is completed by its URL"
        issues = list(repository.get_issues())
        assert [issue.number for issue in issues] == [1, 2, 3, 4, 5, 6, 7], "pages are followed"
        assert {issue.user.login for issue in issues} == {"ada"}

        """

    @Test(.enabled(if: python.isInstalled, "PyGithub could not be installed from PyPI"))
    func `PyGithub stays with Larder from object to object and from page to page`() throws {
        let gitHub = try GitHub()
        let larder = try Larder(config: Self.config(gitHub.origin))
        #expect(try Self.python.run(Self.prelude + "print('fine')", larder.url) == "fine\n")
        #expect(gitHub.origin.count() == 5)
        #expect(try larder.waitForObjects(7, of: "Issue"))
        // All of it is known now.
        #expect(try Self.python.run(Self.prelude + "print('fine')", larder.url) == "fine\n")
        #expect(gitHub.origin.count() == 5)
        gitHub.origin.stop()
        try larder.restart()
        #expect(try Self.python.run(Self.prelude + "print('fine')", larder.url) == "fine\n")
        #expect(try larder.sql("SELECT login, name FROM User") == ["ada|Ada Tanaka"])
    }

    @Test(.enabled(if: python.isInstalled, "PyGithub could not be installed from PyPI"))
    func `PyGithub reads what it wrote, sends conditions, and gets each user's own responses`() throws {
        let gitHub = try GitHub()
        let larder = try Larder(config: Self.config(gitHub.origin))
        let script = """
            issues[1].edit(title="Changed")
            assert [issue.title for issue in repository.get_issues()][1] == "Changed"
            assert repository.update() is False, "the answer that it has is still good"
            for _ in range(2):
                for name in ("ada", "bela"):
                    assert client("of-" + name).get_user().login == name
            print("fine")
            """
        #expect(try Self.python.run(Self.prelude + script, larder.url) == "fine\n")
    }
}
