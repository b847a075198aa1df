import Foundation
import TestSupport
import Testing

/// The store's file, as people and other programs meet it.
@Suite(.scripts) struct StoreFileForPeopleTests {
    @Test func `a view per model can be queried while the daemon runs`() throws {
        let (_, larder) = try AdminTests.blog()
        #expect(try larder.sql("SELECT id, login, name FROM User ORDER BY id") == ["1|ada|Ada", "2|bela|"])
        #expect(try larder.sql("SELECT title, author FROM Post") == ["Caches|1"])
        #expect(try larder.sql("SELECT DISTINCT upstream FROM User") == ["blog"])
        #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
    }

    @Test func `a second daemon gets an error that names the store's owner`() throws {
        let (origin, larder) = try AdminTests.blog()
        let second = try TestProcess(
            Larder.binary,
            [
                "serve", "--upstream", origin.url, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store",
                larder.folder.file("larder.db"),
            ],
            environment: Larder.environment
        )
        #expect(second.waitForEnd() == .exited(1))
        #expect(second.errors.contains("\(larder.process.pid)"), "\(second.errors)")
        #expect(try larder.get("/users").isHit)
    }

    private func refusal(_ origin: Origin, store: String, _ more: [String] = []) throws -> String {
        let second = try TestProcess(
            Larder.binary,
            ["serve", "--upstream", origin.url, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", store]
                + more,
            environment: Larder.environment
        )
        #expect(second.waitForEnd() == .exited(1))
        #expect(!second.errors.contains("listening"))
        return second.errors
    }

    @Test func `a second daemon is refused under any name of the store's file`() throws {
        let (origin, larder) = try AdminTests.blog()
        let other = TemporaryFolder()
        #expect(symlink(larder.folder.file("larder.db"), other.file("link.db")) == 0)
        #expect(link(larder.folder.file("larder.db"), other.file("hard.db")) == 0)
        let linked = try refusal(origin, store: other.file("link.db"))
        #expect(
            linked.contains("process \(larder.process.pid)") && linked.contains("127.0.0.1:\(larder.adminPort)"),
            "\(linked)"
        )
        let hard = try refusal(origin, store: other.file("hard.db"))
        #expect(hard.contains("process \(larder.process.pid)"), "\(hard)")
        #expect(try larder.get("/users").isHit)
        #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
    }

    @Test func `a path that cannot be a store or its key is refused with a sentence`() throws {
        let (origin, folder) = (try Origin { _ in .empty(204) }, TemporaryFolder())
        #expect(mkfifo(folder.file("pipe"), 0o600) == 0)
        #expect(try refusal(origin, store: folder.file("pipe")).contains("it is a named pipe"))
        #expect(try refusal(origin, store: folder.path).contains("it is a folder"))
        try folder.write("short", to: "principal.key")
        let key = try refusal(origin, store: folder.file("larder.db"))
        #expect(key.contains("has 5 bytes where 32 are wanted") && !key.contains("SecretFileError"), "\(key)")
    }

    @Test func `a store that was overwritten is set aside and reported`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin)
        let folder = larder.folder
        larder.terminate()
        try folder.write(String(repeating: "this is not a database. ", count: 1000), to: "larder.db")
        try larder.start()
        #expect(try larder.get("/x").text == "[]")
        #expect(folder.names.contains { $0 != "larder.db" && folder.bytes($0).contains("this is not a database") })
        #expect(larder.log.contains("larder.db"))
    }

    @Test func `a file that was never a store is refused and left as it is`() throws {
        let folder = TemporaryFolder()
        try folder.write("upstreams: { mine: { url: https://api.example } }", to: "mine.yaml")
        let mode = try FileManager.default.attributesOfItem(atPath: folder.file("mine.yaml"))[.posixPermissions] as? Int
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        #expect(try refusal(origin, store: folder.file("mine.yaml")).contains("was never a store; name another file"))
        let sql = try Larder.run(["sql", "--store", folder.file("mine.yaml"), "select 1"])
        #expect(sql.end == .exited(1) && sql.errors.contains("was never a store"), "\(sql.errors)")
        #expect(folder.names == ["mine.yaml"])
        #expect(folder.bytes("mine.yaml").contains("upstreams"))
        #expect(
            try FileManager.default.attributesOfItem(atPath: folder.file("mine.yaml"))[.posixPermissions] as? Int
                == mode
        )
    }

    @Test func `a store that a crash left half written can be opened`() throws {
        let (origin, larder) = try AdminTests.blog()
        larder.kill()
        let bytes = larder.folder.bytes("larder.db-wal")
        if !bytes.isEmpty {
            try Data(bytes.prefix(bytes.count * 2 / 3)).write(
                to: URL(fileURLWithPath: larder.folder.file("larder.db-wal"))
            )
        }
        try larder.start()
        #expect(try larder.get("/users").status == 200)
        #expect(origin.count() > 0)
        #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
    }

    @Test func `a store of a newer Larder is left alone`() throws {
        let (origin, larder) = try AdminTests.blog()
        // While the daemon runs, so that its own checkpoint gives the page a checksum.
        _ = try TestProcess.run(
            "sqlite3",
            [
                "-cmd", ".timeout 60000", larder.folder.file("larder.db"),
                "INSERT INTO grdb_migrations VALUES ('9999 from the future')",
            ]
        )
        larder.terminate()
        let before = larder.folder.bytes("larder.db")
        let process = try TestProcess(
            Larder.binary,
            [
                "serve", "--upstream", origin.url, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store",
                larder.folder.file("larder.db"),
            ],
            environment: Larder.environment
        )
        #expect(process.waitForEnd() == .exited(1))
        #expect(process.errors.contains("newer"), "\(process.errors)")
        #expect(larder.folder.bytes("larder.db") == before)
    }

    @Test func `the file stays within its bound`() throws {
        let origin = try Origin { request in
            .json(
                #"{"path":"\#(request.path)","filler":"\#(String(repeating: request.path, count: 1500))"}"#,
                Fresh.hour
            )
        }
        let larder = try Larder(config: Configs.plain(origin, top: ["store: { maximum_size: 4MiB }"]))
        for number in 1...800 { #expect(try larder.get("/filler/\(number)").status == 200) }
        let isBounded = eventually {
            larder.folder.bytes("larder.db").count <= 6 << 20
        }
        #expect(isBounded)
        #expect(try larder.get("/filler/800").isHit)
        #expect(try larder.documents() < 800)
    }
}
