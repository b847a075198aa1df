import Foundation
import TestSupport
import Testing

/// `larder sql`: queries on the store's file, beside the daemon and without it.
@Suite(.scripts) struct SQLCommandTests {
    private static func filled(_ name: String = "Ada") throws -> (Origin, Larder) {
        let origin = try Origin { request in
            request.path == "/posts/1"
                ? .json(
                    #"{"id":1,"title":"Caches","likes":3,"author":{"id":2,"login":"bela","name":null},"tags":[]}"#,
                    Fresh.hour
                )
                : .json(#"[{"id":1,"login":"ada","name":"\#(name)"},{"id":2,"login":"bela","name":null}]"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        _ = try larder.get("/posts/1")
        #expect(try larder.waitForObjects(2, of: "User") && larder.waitForObjects(1, of: "Post"))
        return (origin, larder)
    }

    private func sql(_ larder: Larder, _ arguments: String...) throws -> (
        end: TestProcess.End?, output: String, errors: String
    ) {
        try Larder.run(["sql", "--store", larder.folder.file("larder.db")] + arguments)
    }

    @Test func `rows are printed as a table, typed JSON or CSV, with a daemon and without`() throws {
        let (origin, larder) = try Self.filled()
        let query = "select id, login, name, 1.5 as half from User_current order by id"
        for _ in 1...2 {
            #expect(
                try sql(larder, query).output
                    == "id  login  name  half\n 1  ada    Ada    1.5\n 2  bela   NULL   1.5\n"
            )
            #expect(
                try sql(larder, "--json", query).output == """
                    [{"id":1,"login":"ada","name":"Ada","half":1.5},
                     {"id":2,"login":"bela","name":null,"half":1.5}]

                    """
            )
            #expect(
                try sql(larder, "--csv", "select 'a,\"b\"' as x, null as y, '' as z, 7 as n").output
                    == "x,y,z,n\n\"a,\"\"b\"\"\",,\"\",7\n"
            )
            #expect(
                try sql(larder, "select title, login from Post_current p join User_current u on u.identity = p.author")
                    .output == "title   login\nCaches  bela\n"
            )
            #expect(try sql(larder, "select 1 where 0").output == "no rows\n")
            #expect(try sql(larder, "--json", "select 1 where 0").output == "[]\n")
            if larder.isRunning { #expect(larder.terminate() == .exited(0)) }
        }
        _ = origin
    }

    private func asked(_ larder: Larder, _ arguments: String...) throws -> (
        end: TestProcess.End?, output: String, errors: String
    ) {
        let admin = ["--admin", "127.0.0.1:\(larder.adminPort)", "--store", larder.folder.file("larder.db")]
        return try Larder.run(["sql"] + admin + arguments)
    }

    @Test func `sql reads the store of the running daemon, even if the config names another one by now`() throws {
        let (origin, larder) = try Self.filled()
        let edited = try larder.folder.write(
            Configs.blog(origin, top: ["store: { path: other.db }"]),
            to: "edited.yaml"
        )
        let environment = [
            "LARDER_ADMIN": "127.0.0.1:\(larder.adminPort)", "LARDER_ADMIN_TOKEN": larder.token ?? "",
        ]
        func sql() throws -> TestProcess {
            let process = try TestProcess(
                Larder.binary,
                ["sql", "--config", edited, "select login from User_current where id = 1"],
                environment: Larder.environment.merging(environment) { $1 }
            )
            #expect(process.waitForEnd() != nil)
            return process
        }
        #expect(try sql().output == "login\nada\n")
        larder.terminate()
        #expect(try sql().errors.contains("no store was found"))
    }

    @Test func `with --admin the daemon runs the query, with the same results and limits`() throws {
        let (origin, larder) = try Self.filled()
        let query = "select id, login, name, 1.5 as half from User_current order by id"
        for form in [[], ["--json"], ["--csv"]] {
            for sql in [[query], ["select 1 where 0"], []] {
                let command = ["--store", larder.folder.file("larder.db")] + form + sql
                let direct = try Larder.run(["sql"] + command)
                let asked = try Larder.run(["sql", "--admin", "127.0.0.1:\(larder.adminPort)"] + command)
                #expect(asked.output == direct.output && asked.end == direct.end, "\(asked)")
                #expect(!asked.output.isEmpty)
            }
        }
        for (sql, words) in [
            ("delete from _documents", "only reads"), ("select 1; select 2", "one statement"),
            ("select * from Usr", "did you mean"), ("attach 'x' as y", "only reads"),
        ] {
            let refusal = try asked(larder, sql)
            #expect(refusal.end == .exited(1) && refusal.errors.contains(words), "\(refusal)")
        }
        let rows = try asked(
            larder,
            "--csv",
            "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n limit 300000"
        )
        #expect(rows.output.split(separator: "\n").count == 300_001)
        #expect(try larder.admin("POST", "/sql", body: #"{"query":"select 7 as n"}"#).text == #"[{"n":7}]"# + "\n")
        #expect(try larder.admin("POST", "/sql", body: #"{"query":"select 7","timeout":"1h"}"#).status == 400)
        #expect(try larder.admin("POST", "/sql", body: #"{"query":"select 7","file":"x"}"#).status == 400)
        #expect(try larder.admin("POST", "/sql?form=xml", body: #"{"query":"select 7"}"#).status == 400)
        _ = origin
    }

    /// A search that takes minutes within one function, and a recursion without an end.
    private static let slow = [
        "select instr(replace(hex(zeroblob(30000000)), '00', 'a'), replace(hex(zeroblob(5000000)), '00', 'a') || 'b')",
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
    ]

    @Test(arguments: slow) func `a query ends at its time limit, also within one SQL function`(query: String) throws {
        let (origin, larder) = try Self.filled()
        for ending in [try sql(larder, "--timeout", "300ms", query), try asked(larder, "--timeout", "300ms", query)] {
            #expect(ending.end == .exited(1) && ending.errors.contains("took longer than"), "\(ending)")
        }
        #expect(try larder.get("/users").isHit)
        _ = origin
    }

    @Test func `a value larger than the limit is an error`() throws {
        let (origin, larder) = try Self.filled()
        for query in ["select length(hex(zeroblob(200000000)))", "select length(randomblob(1000000000))"] {
            let ending = try sql(larder, query)
            #expect(ending.end == .exited(1) && ending.errors.contains("too big"), "\(ending)")
        }
        _ = origin
    }

    @Test func `without a query the views are listed with their columns`() throws {
        let (origin, larder) = try Self.filled()
        let list = try sql(larder)
        #expect(list.end == .exited(0))
        #expect(list.output.contains("User\n  upstream, principal, context, identity, id, login, name, company\n"))
        #expect(list.output.contains("Post_current and so on") && list.output.contains("Without rows: Note, Tag\n"))
        let views =
            try JSONSerialization.jsonObject(with: Data(sql(larder, "--json").output.utf8)) as? [[String: String]]
        #expect(views?.contains(["view": "Note_current", "column": "identity"]) == true)
        _ = origin
    }

    @Test(arguments: [
        (["delete from _objects"], "larder: larder sql only reads: write a SELECT; larder clean removes objects\n"),
        (["update User set name = 1"], "cannot modify User because it is a view"),
        (["create table t (x)"], "only reads"), (["attach '/tmp/x.db' as x"], "only reads"),
        (["vacuum into '/tmp/larder-test-copy.db'"], "only reads"), (["begin"], "only reads"),
        (["pragma journal_mode = delete"], "only reads"), (["pragma wal_checkpoint"], "only reads"),
        (["select 1; select 2"], "one statement at a time"),
        (["select 1; delete from _objects"], "one statement at a time"),
        ([" -- nothing"], "there is no statement in it"), (["selekt 1"], "near \"selekt\": syntax error"),
        (["select * from Usr"], "no such table: Usr; did you mean User?"),
        (["select logn from User"], "no such column: logn; did you mean login?"),
        (["select x'00' = '\u{1B}[31m' from \"\u{1B}[31m\""], "no such table: \\x1b[31m"),
        (
            [
                "--timeout", "50ms",
                "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
            ],
            "the query took longer than 50ms; narrow it (WHERE, LIMIT), or allow more with --timeout"
        ),
    ])
    func `a query that writes or fails gives one line that says why`(_ arguments: [String], _ message: String)
        throws
    {
        let (origin, larder) = try Self.filled()
        let end = try Larder.run(["sql", "--store", larder.folder.file("larder.db")] + arguments)
        #expect(end.end == .exited(1))
        #expect(end.output.isEmpty && end.errors.hasPrefix("larder: ") && end.errors.contains(message), "\(end.errors)")
        #expect(!end.errors.utf8.contains(0x1B))
        #expect(try larder.sql("SELECT count(*) FROM User") == ["2"])
        #expect(larder.isRunning)
        _ = origin
    }

    @Test func `hostile text is shown with escapes in a table, and kept in JSON and CSV`() throws {
        let (origin, larder) = try Self.filled(#"\u001b[31mred\n\u202Eevil\u0007"#)
        let query = "select name from User_current where id = 1"
        #expect(try sql(larder, query).output == "name\n\\x1b[31mred\\n\\u{202e}evil\\x07\n")
        let json = try JSONSerialization.jsonObject(with: Data(sql(larder, "--json", query).output.utf8))
        #expect(json as? [[String: String]] == [["name": "\u{1B}[31mred\n\u{202E}evil\u{7}"]])
        #expect(try sql(larder, "--csv", query).output == "name\n\"\u{1B}[31mred\n\u{202E}evil\u{7}\"\n")
        _ = origin
    }

    @Test func `rows for programs are printed as they are read`() throws {
        let (origin, larder) = try Self.filled()
        let endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n"
        let command = "\(Larder.binary) sql --store \(larder.folder.file("larder.db")) --timeout 60s"
        #expect(try TestProcess.run("sh", ["-c", "\(command) --csv '\(endless)' | head -3"]) == "i\n1\n2\n")
        let json = try TestProcess.run("sh", ["-c", "\(command) --json '\(endless)' | head -2"])
        #expect(json == "[{\"i\":1},\n {\"i\":2},\n")
        // What has been found is there, in whole lines, and the exit code says that it is not all.
        let cut = try sql(larder, "--csv", "--timeout", "1s", endless)
        #expect(cut.end == .exited(1) && cut.output.hasPrefix("i\n1\n2\n") && cut.output.hasSuffix("\n"))
        #expect(cut.errors.contains("took longer than 1s"))
        _ = origin
    }

    @Test func `larder sql opens the config's store, and a missing one is an error that says what to do`() throws {
        let (origin, larder) = try Self.filled()
        let folder = TemporaryFolder()
        let config = Configs.blog(origin, top: ["store: { path: \(larder.folder.file("larder.db")) }"])
        try config.write(toFile: folder.file("larder.yaml"), atomically: true, encoding: .utf8)
        let query = "select count(*) as n from User"
        #expect(try Larder.run(["sql", "--config", folder.file("larder.yaml"), query]).output == "n\n2\n")
        let shell = ["-c", "echo '\(query)' | \(Larder.binary) sql --config \(folder.file("larder.yaml")) -"]
        #expect(try TestProcess.run("sh", shell) == "n\n2\n")
        let missing = try Larder.run(["sql", "--store", folder.file("none.db"), query])
        #expect(missing.end == .exited(1))
        #expect(
            missing.errors
                == "larder: there is no store \(folder.file("none.db"))\n"
        )
        #expect(!folder.names.contains("none.db"))
        for (name, content) in [
            (
                "text",
                "no database, but a text that is longer than the header of one: \(String(repeating: "x", count: 100))"
            ), ("empty", ""),
        ] {
            try content.write(toFile: folder.file(name), atomically: true, encoding: .utf8)
            let other = try Larder.run(["sql", "--store", folder.file(name), query])
            #expect(other.end == .exited(1) && other.errors.hasPrefix("larder: the store "), "\(other.errors)")
        }
        for usage in [["sql", ""], ["sql", "--json", "--csv", "select 1"], ["sql", "--timeout", "5", "select 1"]] {
            #expect(try Larder.run(usage).end == .exited(64))
        }
    }
}
