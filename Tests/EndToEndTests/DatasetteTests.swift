import Foundation
import TestSupport
import Testing

/// Datasette, from PyPI, serves a SQLite file as JSON in pages that it links by absolute URLs; httpx reads them.
@Suite(.scripts, .serialized) struct DatasetteTests {
    static let python = PythonEnvironment("datasette", packages: ["datasette"], imports: ["datasette", "httpx"])

    @Test(.enabled(if: python.isInstalled, "Datasette could not be installed from PyPI"))
    func `pages are followed through Larder, which goes on when Datasette is gone`() throws {
        let folder = TemporaryFolder()
        let rows = (1...250).map { "(\($0), 'Tree \($0)', \($0 % 7))" }.joined(separator: ",")
        try ChildProcess.run(
            "sqlite3",
            [
                folder.file("trees.db"),
                "CREATE TABLE trees (id INTEGER PRIMARY KEY, name TEXT, height REAL); INSERT INTO trees VALUES \(rows)",
            ]
        )
        let server = try ForeignServer("Datasette", path: "/-/versions.json", mark: "\"datasette\"") { port in
            try ChildProcess(
                Self.python.program("datasette"),
                ["serve", folder.file("trees.db"), "--port", "\(port)", "--setting", "default_cache_ttl", "3600"]
            )
        }
        let (datasette, port) = (server.process, server.port)

        let config = """
            upstreams: { trees: { url: "http://127.0.0.1:\(port)" } }
            models: { Tree: { identity: id, share: all } }
            routes: [{ path: "trees/trees.json", model: [Tree] }]
            """
        let larder = try Larder(config: config)
        let script = """
            import sys, httpx
            url, outcomes, rows = sys.argv[1] + "/trees/trees.json?_shape=array", [], []
            with httpx.Client() as client:
                while url:
                    assert url.startswith(sys.argv[1]), url
                    answer = client.get(url).raise_for_status()
                    outcomes.append(answer.headers["Cache-Status"].split(";")[1].split("=")[0].strip())
                    rows += answer.json()
                    url = answer.links.get("next", {}).get("url")
            assert [row["id"] for row in rows] == list(range(1, 251))
            print(" ".join(outcomes))
            """
        #expect(try Self.python.run(script, larder.url) == "fwd fwd fwd\n")
        #expect(try larder.waitForObjects(250, of: "Tree"))
        #expect(try Self.python.run(script, larder.url) == "hit hit hit\n")
        let target = "/trees/trees.json?_shape=array"
        #expect(try larder.get(target).body == Client(port: port).get(target).body)
        datasette.signal(SIGKILL)
        datasette.waitForEnd()
        try larder.restart()
        #expect(try Self.python.run(script, larder.url) == "hit hit hit\n")
        #expect(try larder.sql("SELECT count(*) FROM Tree") == ["250"])
    }
}
