import Foundation
import TestSupport
import Testing

/// Client libraries that nobody here wrote, recorded once and then run without any origin.
@Suite(.scripts, .serialized) struct RecordedClientsTests {
    static let stripe = PythonEnvironment("stripe", packages: ["stripe"], imports: ["stripe"])
    static let gitLab = PythonEnvironment("gitlab", packages: ["python-gitlab"], imports: ["gitlab"])
    static let mastodon = PythonEnvironment("mastodon", packages: ["Mastodon.py"], imports: ["mastodon"])

    /// Runs a script while recording, and again in a replay; both have to print the same.
    private func compare(_ origin: Origin, config: String? = nil, _ run: (String) throws -> String) throws {
        let recording = RecordedFolder()
        var recorded = ""
        try recording.record(origin, config: config) { recorded = try run($0.url) }
        let asked = origin.count()
        origin.stop()
        for _ in 0..<2 {
            let larder = try Larder.replaying(recording.path, "--strict")
            let port = larder.port
            // Programs print the address that they were given.
            #expect(
                try run(larder.url).replacing(":\(port)", with: ":PORT")
                    == recorded.replacing(/:[0-9]{4,5}/, with: ":PORT")
            )
            larder.terminate()
        }
        #expect(origin.count() == asked)
    }

    @Test(.enabled(if: PyGithubTests.python.isInstalled, "PyGithub could not be installed from PyPI"))
    func `PyGithub has the same session with a recording as with the origin`() throws {
        let gitHub = try PyGithubTests.GitHub()
        let script =
            PyGithubTests.prelude + """
                issues[1].edit(title="Changed")
                print([issue.title for issue in repository.get_issues()], repository.update())
                print(client("of-bela").get_user().login, client("of-ada").get_user().login)
                """
        try compare(gitHub.origin, config: try PyGithubTests.config(gitHub.origin)) {
            try PyGithubTests.python.run(script, $0)
        }
    }

    @Test(.enabled(if: stripe.isInstalled, "stripe could not be installed from PyPI"))
    func `stripe-python has the same session with a recording as with the origin`() throws {
        let names = Monitor(["ada", "bob", "cy"])
        let origin = try Origin { request in
            func customer(_ number: Int) -> String {
                #"{"id":"cus_\#(number)","object":"customer","name":"\#(names.current[number])"}"#
            }
            if request.method == "POST" {
                names.withLock { $0.append("dora") }
                return .json(customer(3))
            }
            if request.path == "/v1/customers" {
                let isFirst = !request.target.contains("starting_after")
                let list = (isFirst ? [0, 1] : Array(2..<names.current.count)).map(customer).joined(separator: ",")
                return .json(#"{"object":"list","url":"/v1/customers","has_more":\#(isFirst),"data":[\#(list)]}"#)
            }
            return .json(#"{"error":{"type":"invalid_request_error","message":"No such customer"}}"#, status: 404)
        }
        let script = """
            import sys, stripe
            stripe.api_key = "sk_test_secretsecretsecret"
            stripe.api_base = sys.argv[1]
            stripe.max_network_retries = 0
            print([c.name for c in stripe.Customer.list(limit=2).auto_paging_iter()])
            print(stripe.Customer.create(name="dora", email="dora@example.com").id)
            print([c.name for c in stripe.Customer.list(limit=2).auto_paging_iter()])
            try:
                stripe.Customer.retrieve("cus_9")
            except stripe.InvalidRequestError as error:
                print(error.http_status, error.user_message)
            """
        try compare(origin) { try Self.stripe.run(script, $0) }
    }

    @Test(.enabled(if: gitLab.isInstalled, "python-gitlab could not be installed from PyPI"))
    func `python-gitlab has the same session with a recording as with the origin`() throws {
        let issues = Monitor([String]())
        let origin = try Origin { request in
            func issue(_ index: Int) -> String { #"{"iid":\#(index + 1),"title":"\#(issues.current[index])"}"# }
            switch (request.method, request.path) {
            case (_, "/api/v4/user"): return .json(#"{"id":1,"username":"ada"}"#)
            case (_, "/api/v4/projects") where request.target.hasSuffix("page=2&per_page=2"):
                return .json(#"[{"id":3,"path":"three"}]"#)
            case (_, "/api/v4/projects"):
                let next = "<http://\(request["Host"] ?? "")/api/v4/projects?page=2&per_page=2>; rel=\"next\""
                return .json(#"[{"id":1,"path":"one"},{"id":2,"path":"two"}]"#, ["Link": next])
            case (_, "/api/v4/projects/1"): return .json(#"{"id":1,"path":"one"}"#)
            case ("POST", "/api/v4/projects/1/issues"):
                issues.withLock { $0.append("made") }
                return .json(issue(0), status: 201)
            case ("PUT", "/api/v4/projects/1/issues/1"):
                issues.withLock { $0[0] = "changed" }
                return .json(issue(0))
            case (_, "/api/v4/projects/1/issues"):
                return .json("[\(issues.current.indices.map(issue).joined(separator: ","))]")
            default: return .json(#"{"message":"404 Not Found"}"#, status: 404)
            }
        }
        let script = """
            import sys, gitlab
            client = gitlab.Gitlab(sys.argv[1], private_token="glpat-secretsecretsecret")
            client.auth()
            print(client.user.username)
            print([project.path for project in client.projects.list(iterator=True, per_page=2)])
            project = client.projects.get(1)
            print([issue.title for issue in project.issues.list(get_all=True)])
            issue = project.issues.create({"title": "made"})
            issue.title = "changed"
            issue.save()
            print(issue.iid, [issue.title for issue in project.issues.list(get_all=True)])
            try:
                client.projects.get(99)
            except gitlab.GitlabGetError as error:
                print(error.response_code, error.error_message)
            """
        try compare(origin) { try Self.gitLab.run(script, $0) }
    }

    @Test(.enabled(if: mastodon.isInstalled, "Mastodon.py could not be installed from PyPI"))
    func `Mastodon-py has the same session with a recording as with the origin`() throws {
        let origin = try Origin { request in
            func status(_ number: Int) -> String {
                #"{"id":"\#(number)","content":"<p>\#(number)</p>","created_at":"2026-01-01T00:00:00.000Z"}"#
            }
            switch (request.method, request.path) {
            case (_, "/api/v1/accounts/verify_credentials"): return .json(#"{"id":"1","username":"ada"}"#)
            case (_, "/api/v1/timelines/home") where request.target.contains("max_id"):
                return .json("[\(status(2)),\(status(1))]")
            case (_, "/api/v1/timelines/home"):
                let next = "<http://\(request["Host"] ?? "")/api/v1/timelines/home?limit=2&max_id=3>; rel=\"next\""
                return .json("[\(status(4)),\(status(3))]", ["Link": next])
            case ("POST", "/api/v1/statuses"): return .json(status(9))
            case ("POST", "/api/v1/statuses/9/favourite"): return .json(#"{"id":"9","favourited":true}"#)
            default: return .json(#"{"error":"Record not found"}"#, status: 404)
            }
        }
        let script = """
            import sys
            from mastodon import Mastodon, MastodonNotFoundError
            client = Mastodon(access_token="mastodon-secret-token", api_base_url=sys.argv[1], version_check_mode="none")
            print(client.account_verify_credentials().username)
            page = client.timeline_home(limit=2)
            while page:
                print([status.content for status in page])
                page = client.fetch_next(page)
            status = client.status_post("hello", visibility="private")
            print(status.content, client.status_favourite(status.id).favourited)
            try:
                client.status(77)
            except MastodonNotFoundError as error:
                print(error.args[1], error.args[3])
            """
        try compare(origin) { try Self.mastodon.run(script, $0) }
    }

    @Test func `a shell script with curl has the same session with a recording as with the origin`() throws {
        let count = Monitor(0)
        let origin = try Origin { request in
            switch request.method {
            case "POST": .json("{\"made\":\(count.withLock { $0 += 1; return $0 })}", status: 201)
            case "DELETE": .empty(204)
            case "HEAD": .text("0123456789")
            default:
                .json("[\(count.current)]", ["Link": "<\("http://\(request["Host"] ?? "")")/things?page=2>; rel=next"])
            }
        }
        let script = """
            set -e
            curl -s $0/things; curl -s -X POST -d a=1 $0/things; curl -s -X POST -d a=1 $0/things
            curl -s -D - -o /dev/null $0/things | grep -i '^link'
            curl -sI $0/things | grep -i '^content-length'
            curl -s -o /dev/null -w '%{http_code}' -X DELETE -H 'Authorization: Bearer abcdefgh' $0/things/1
            curl -s -F file=@/dev/null -F name=x $0/things; curl -s $0/things
            """
        try compare(origin) { try TestProcess.run("sh", ["-c", script, $0]) }
    }

    @Test func `recorded bodies of public APIs replay byte for byte`() throws {
        let bodies: [String: [UInt8]] = [
            "/spelling": Array(
                "{ \"a\" : 1.0e+10,\n\t\"a\":12345678901234567890, \"s\":\"\\/\\u003c\\u003C\u{e9}\\ud83d\\ude00\" }\n"
                    .utf8
            ),
            "/latin": [0x22, 0xE9, 0x22], "/bytes": (0...255).map { UInt8($0) },
            "/bom": [0xEF, 0xBB, 0xBF, 0x7B, 0x7D],
            "/empty": [], "/crlf": Array("{\r\n}\r\n".utf8),
            "/large": [UInt8](repeating: 0x61, count: 3_000_000),
        ]
        let origin = try Origin { request in
            .body(bodies[request.path] ?? [], ["Content-Type": "application/json"])
        }
        let recording = RecordedFolder()
        try recording.record(origin) { larder in for path in bodies.keys { _ = try larder.get(path) } }
        let larder = try Larder.replaying(recording.path)
        for (path, body) in bodies { #expect(try larder.get(path).body == body, "\(path)") }
    }
}
