import Foundation
import TestSupport
import Testing

/// A REST server that nobody here wrote, with a client library that nobody here wrote.
///
/// Kinto has ETags, conditional writes and answers that differ by user. It is installed from PyPI into a folder that is kept
/// between runs; without a network, and nothing kept, the test says so and is skipped.
@Suite(.scripts, .serialized) struct KintoTests {
    /// Kinto on its in-memory backend.
    final class Kinto: Sendable {
        private let server: ForeignServer
        private let folder: TemporaryFolder

        var process: TestProcess { server.process }
        var port: UInt16 { server.port }

        init() throws {
            let folder = TemporaryFolder()
            self.folder = folder
            server = try ForeignServer("Kinto", path: "/v1/", mark: "\"project_name\"") { port in
                try folder.write(Self.configuration(port: port), to: "kinto.ini")
                return try TestProcess(
                    KintoTests.python.program("kinto"),
                    ["start", "--ini", folder.file("kinto.ini")]
                )
            }
        }

        private static func configuration(port: UInt16) -> String {
            """
            [server:main]
            use = egg:waitress#main
            host = 127.0.0.1
            port = \(port)
            threads = 8
            [app:main]
            use = egg:kinto
            kinto.storage_backend = kinto.core.storage.memory
            kinto.cache_backend = kinto.core.cache.memory
            kinto.permission_backend = kinto.core.permission.memory
            kinto.userid_hmac_secret = for-tests-only
            kinto.includes = kinto.plugins.default_bucket kinto.plugins.accounts
            kinto.account_create_principals = system.Everyone
            multiauth.policies = account basicauth
            multiauth.policy.account.use = kinto.plugins.accounts.authentication.AccountsAuthenticationPolicy
            multiauth.policy.basicauth.use = kinto.core.authentication.BasicAuthAuthenticationPolicy
            """
        }
    }

    static let python = PythonEnvironment(
        "kinto",
        packages: ["kinto", "kinto-http", "waitress", "setuptools<81"],
        imports: ["kinto", "kinto_http", "waitress"]
    )

    /// Kinto forbids all caching to authenticated users; `routes` may overrule that.
    static func config(_ kinto: Kinto, _ routes: String = "") -> String {
        """
        upstreams:
          kinto:
            url: http://127.0.0.1:\(kinto.port)
        models:
          Task:
            identity: id
            modified: last_modified
            properties: { title: title, done: done, lastModified: last_modified }
        routes:
          - { path: "v1/buckets/*/collections/tasks/records", model: [Task], root: data\(routes) }
          - { path: "v1/buckets/*/collections/tasks/records/*", model: Task, root: data\(routes) }
        """
    }

    @Test(.enabled(if: python.isInstalled, "Kinto could not be installed from PyPI"))
    func `a client library works through Larder as it does without`() throws {
        let kinto = try Kinto()
        let larder = try Larder(config: Self.config(kinto))
        let script = """
            import sys, kinto_http
            from kinto_http.exceptions import KintoException
            client = kinto_http.Client(server_url=sys.argv[1] + "/v1", auth=("ada", "secret"), bucket="todo", collection="tasks")
            client.create_bucket(if_not_exists=True)
            client.create_collection(if_not_exists=True)
            made = [client.create_record(data={"id": f"task-{n}", "title": f"Title {n}", "done": False}) for n in range(25)]
            assert len(client.get_records()) == 25
            assert len(client.get_records(_limit=10, pages=float("inf"))) == 25, "paging follows Next-Page"
            # What was written is read, every time.
            for n in range(25):
                client.patch_record(id=f"task-{n}", data={"done": True})
                assert client.get_record(id=f"task-{n}")["data"]["done"] is True
            assert all(record["done"] for record in client.get_records())
            # A conditional write that comes too late is refused.
            record = client.get_record(id="task-1")["data"]
            client.update_record(id="task-1", data={**record, "title": "mine"})
            try:
                client.update_record(id="task-1", data={**record, "title": "theirs"}, if_match=record["last_modified"])
                raise AssertionError("a late conditional write was accepted")
            except KintoException as problem:
                assert problem.response.status_code == 412, problem
            assert client.get_record(id="task-1")["data"]["title"] == "mine"
            client.delete_record(id="task-2")
            try:
                client.get_record(id="task-2")
                raise AssertionError("a deleted record was found")
            except KintoException as problem:
                assert problem.response.status_code == 404, problem
            assert len(client.get_records()) == 24
            with client.batch() as batch:
                for n in range(3):
                    batch.create_record(data={"id": f"many-{n}", "title": "Batched"})
                batch.delete_record(id="task-3")
            assert len(client.get_records()) == 26
            # The same by hand: validators and conditions reach the one that they are meant for.
            import requests
            url = sys.argv[1] + "/v1/buckets/todo/collections/tasks/records/task-4"
            session = requests.Session()
            session.auth = ("ada", "secret")
            tag = session.get(url).headers["ETag"]
            assert session.get(url, headers={"If-None-Match": tag}).status_code == 304
            body = {"data": {"title": "By hand"}}
            assert session.put(url, json=body, headers={"If-None-Match": "*"}).status_code == 412
            assert session.put(url, json=body, headers={"If-Match": tag}).status_code == 200
            assert session.put(url, json=body, headers={"If-Match": tag}).status_code == 412
            assert session.get(url).json()["data"]["title"] == "By hand"
            assert session.get(url, headers={"If-None-Match": tag}).status_code == 200
            print("fine")
            """
        #expect(try Self.python.run(script, larder.url) == "fine\n")
        #expect(
            try Self.python.run(
                script.replacingOccurrences(of: #""ada""#, with: #""bela""#)
                    .replacingOccurrences(of: "todo", with: "other"),
                larder.url
            ) == "fine\n"
        )
    }

    @Test(.enabled(if: python.isInstalled, "Kinto could not be installed from PyPI"))
    func `responses that differ by user are stored separately`() throws {
        let kinto = try Kinto()
        let larder = try Larder(config: Self.config(kinto, ", cache: force, fresh: 1h"))
        let script = """
            import sys, kinto_http
            for user in ("ada", "bela"):
                client = kinto_http.Client(server_url=sys.argv[1] + "/v1", auth=(user, "secret"), bucket="default", collection="tasks")
                client.create_record(data={"id": "same-id", "title": "of " + user})
            for _ in range(3):
                for user in ("ada", "bela"):
                    client = kinto_http.Client(server_url=sys.argv[1] + "/v1", auth=(user, "secret"), bucket="default", collection="tasks")
                    assert [record["title"] for record in client.get_records()] == ["of " + user]
                    assert client.get_record(id="same-id")["data"]["title"] == "of " + user
            print("fine")
            """
        #expect(try Self.python.run(script, larder.url) == "fine\n")
        kinto.process.signal(SIGKILL)
        kinto.process.waitForEnd()
        #expect(try larder.sql("SELECT title FROM Task ORDER BY title") == ["of ada", "of bela"])
    }

    @Test(.enabled(if: python.isInstalled, "Kinto could not be installed from PyPI"))
    func `a list shows a changed record, also while Kinto is away`() throws {
        let kinto = try Kinto()
        let larder = try Larder(config: Self.config(kinto, ", cache: force, fresh: 1h"))
        let basic: FieldLines = ["Authorization": "Basic \(Data("ada:secret".utf8).base64EncodedString())"]
        let records = "/v1/buckets/default/collections/tasks/records"
        for number in 1...3 {
            let body = #"{"data":{"title":"Task \#(number)","done":false}}"#
            let made = try larder.request(
                "PUT",
                "\(records)/t\(number)",
                basic + ["Content-Type": "application/json"],
                body: body
            )
            #expect(made.status == 201, "\(made.text)")
        }
        let list = try larder.get(records, basic)
        #expect(list.status == 200)
        #expect(try larder.waitForObjects(3, of: "Task"))
        #expect(try larder.get(records, basic).isHit)
        let patch = try larder.request(
            "PATCH",
            "\(records)/t1",
            basic + ["Content-Type": "application/json"],
            body: #"{"data":{"title":"Changed"}}"#
        )
        #expect(patch.status == 200)
        #expect(try larder.get(records, basic).text.contains("Changed"))
        kinto.process.signal(SIGKILL)
        kinto.process.waitForEnd()
        #expect(try larder.get(records, basic).text.contains("Changed"))
        try larder.restart()
        #expect(try larder.get(records, basic).text.contains("Changed"))
    }

    @Test(.enabled(if: python.isInstalled, "Kinto could not be installed from PyPI"))
    func `after any requests Larder responds as Kinto does`() throws {
        let kinto = try Kinto()
        let larder = try Larder(config: Self.config(kinto, ", cache: force, fresh: 1h"))
        let seed = SoakOptions.current?.seed ?? 1
        var load = KintoLoad(larder: larder, kinto: kinto.port, seed: seed)
        try load.run(steps: SoakOptions.current == nil ? 150 : 5000)
        #expect(load.hits > 20, "seed \(seed)")
    }
}
