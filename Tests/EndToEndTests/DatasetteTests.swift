import Foundation
import TestSupport
import Testing

/// Datasette, from PyPI, serves a SQLite file as JSON in pages that it links by absolute URLs; httpx reads them.
@Suite(.scripts, .serialized) struct DatasetteTests {
    static let python = PythonEnvironment("datasette", packages: ["datasette"], imports: ["datasette", "httpx"])

    @Test(.enabled(if: python.isInstalled, "Datasette could not be installed from PyPI"))
    func `pages are followed through Larder, which still serves them when Datasette is gone`() throws {
        let folder = TemporaryFolder()
        let rows = (1...250).map { "(\($0), 'Tree \($0)', \($0 % 7))" }.joined(separator: ",")
        try TestProcess.run(
            "sqlite3",
            [
                folder.file("trees.db"),
                "CREATE TABLE trees (id INTEGER PRIMARY KEY, name TEXT, height REAL); INSERT INTO trees VALUES \(rows)",
            ]
        )
        let server = try ForeignServer("Datasette", path: "/-/versions.json", mark: "\"datasette\"") { port in
            try TestProcess(
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

    @Test(.enabled(if: python.isInstalled, "Datasette could not be installed from PyPI"))
    func `the store of a running daemon opens in Datasette: each view, a join, facets`() throws {
        let origin = try Origin { request in
            let users = (1...30).map {
                #"{"id":\#($0),"login":"user\#($0)","name":"<b>\#($0)</b>","company":"c\#($0 % 3)"}"#
            }
            guard request.path == "/posts" else { return .json("[\(users.joined(separator: ","))]", Fresh.hour) }
            let posts = (1...30).map {
                #"{"id":\#($0),"title":"t\#($0)","likes":\#($0 % 5),"author":\#(users[$0 - 1]),"tags":[{"name":"x"},{"name":"y"}]}"#
            }
            return .json("[\(posts.joined(separator: ","))]", Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        _ = try larder.get("/users", ["Authorization": "Bearer ada"])
        _ = try larder.get("/posts")
        #expect(try larder.waitForObjects(60, of: "User") && larder.waitForObjects(30, of: "Post"))
        let server = try ForeignServer("Datasette", path: "/-/versions.json", mark: "\"datasette\"") { port in
            try TestProcess(
                Self.python.program("datasette"),
                [
                    "serve", larder.folder.file("larder.db"), "--port", "\(port)", "--setting",
                    "sql_time_limit_ms", "60000", "--setting", "facet_time_limit_ms", "60000",
                ]
            )
        }
        defer { server.process.signal(SIGKILL) }
        let client = try Client(port: server.port)
        let views = try larder.sql("SELECT name FROM sqlite_schema WHERE type = 'view' AND name NOT GLOB '_*'")
        #expect(views.count == 8 && views.contains("Post_current"))
        for view in views {
            #expect(try client.get("/larder/\(view)").status == 200, "\(view)")
            #expect(try client.get("/larder/\(view).json?_size=5").status == 200, "\(view)")
        }
        let page = try client.get("/larder/User_current?_size=max").text
        #expect(page.contains("&lt;b&gt;30&lt;/b&gt;") && !page.contains("u0001"))

        let join = """
            select u.company, count(*) as n, sum(p.likes) as likes from Post_current p join User_current u \
            on u.identity = p.author join json_each(p.tags) t join Tag_current g on g.identity = t.value group by 1 order by 1
            """
        let query = try #require(join.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
        #expect(
            try client.get("/larder.json?_shape=arrays&sql=\(query)").object["rows"] as? [[AnyHashable]]
                == [["c0", 20, 40], ["c1", 20, 40], ["c2", 20, 40]]
        )
        let facets = try client.get("/larder/User.json?_size=1&_facet=company&_facet=principal").object["facet_results"]
        func counts(_ column: String) -> [Int]? {
            let facet = (facets as? [String: Any])?[column] as? [String: Any]
            return (facet?["results"] as? [[String: Any]])?.compactMap { $0["count"] as? Int }
        }
        #expect(counts("company") == [20, 20, 20])
        #expect(counts("principal") == [30, 30])
        // The daemon writes on while it is read.
        #expect(try larder.request("PATCH", "/users/1", body: "{}").status == 200)
    }
}
