import Foundation
import TestSupport
import Testing

/// The store's file, as people and other programs meet it.
@Suite(.scripts) struct StoreFileTests {
    @Test func `a view per model answers while the daemon runs`() throws {
        let (_, larder) = try AdminTests.blog()
        #expect(try larder.sql("SELECT id, login, name FROM User ORDER BY id") == ["1|ada|Ada", "2|bela|"])
        #expect(try larder.sql("SELECT title, author FROM Post") == ["Caches|1"])
        #expect(try larder.sql("SELECT DISTINCT upstream FROM User") == ["blog"])
        #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
    }

    @Test func `a second daemon is told whose the store is`() throws {
        let (origin, larder) = try AdminTests.blog()
        let second = try ChildProcess(
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

    @Test func `a file that is no store is set aside and reported`() throws {
        let folder = TemporaryFolder()
        try folder.write(String(repeating: "this is no database. ", count: 1000), to: "larder.db")
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin, store: folder)
        #expect(try larder.get("/x").text == "[]")
        #expect(folder.names.contains { $0 != "larder.db" && folder.bytes($0).contains("this is no database") })
        #expect(larder.log.contains("larder.db"))
    }

    @Test func `a store that a crash left half written opens`() throws {
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

    @Test func `a store from the future is left alone`() throws {
        let (origin, larder) = try AdminTests.blog()
        larder.terminate()
        _ = try ChildProcess.run(
            "sqlite3",
            [larder.folder.file("larder.db"), "INSERT INTO grdb_migrations VALUES ('9999 from the future')"]
        )
        let before = larder.folder.bytes("larder.db")
        let process = try ChildProcess(
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
