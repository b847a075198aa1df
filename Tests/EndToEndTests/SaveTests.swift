import Foundation
import TestSupport
import Testing

/// `larder save` and `larder load`: the store as one file.
@Suite(.scripts) struct SaveTests {
    /// Users by number, each with who asked.
    private static func origin() throws -> Origin {
        try Origin { request in
            guard request.method == "GET" else { return .empty(204) }
            let number = request.path.split(separator: "/").last.map(String.init) ?? "0"
            let who = request["Authorization"] ?? "nobody"
            return .json(#"{"id":\#(number),"login":"user\#(number)","name":"\#(who)"}"#, Fresh.hour)
        }
    }

    private static func larder(_ origin: Origin, store: TemporaryFolder = TemporaryFolder()) throws -> Larder {
        try Larder(config: Configs.blog(origin), store: store)
    }

    /// What a store has, without its size.
    private func contents(_ larder: Larder) throws -> [String] {
        let count = try larder.count()
        return ["\(count["objects"] ?? "")", "\(count["documents"] ?? "")", "\(count["models"] ?? "")"]
    }

    private func load(_ larder: Larder, _ file: String, _ more: String...) throws -> (
        end: TestProcess.End?, output: String, errors: String
    ) {
        try Larder.run(
            ["load", file, "--admin", "127.0.0.1:\(larder.adminPort)", "--store", larder.folder.file("larder.db")]
                + more
        )
    }

    @Test func `after a save, a clean and a load the store has the same contents`() throws {
        let (origin, folder) = (try Self.origin(), TemporaryFolder())
        let larder = try Self.larder(origin)
        for number in 1...20 { _ = try larder.get("/users/\(number)") }
        _ = try larder.get("/users/1", ["Authorization": "Bearer bob"])
        #expect(try larder.waitForDocuments(21))
        let (before, copy) = (try contents(larder), folder.file("copy.db"))
        #expect(try larder.command("save", copy).output.hasPrefix("saved the store as \(copy), "))
        #expect(try FileManager.default.attributesOfItem(atPath: copy)[.posixPermissions] as? Int == 0o600)
        #expect(folder.names == ["copy.db"])
        #expect(!Data(folder.bytes("copy.db")).contains(Data(larder.folder.bytes("principal.key"))))

        let refusal = try load(larder, copy)
        #expect(refusal.end == .exited(1) && refusal.errors.contains("--replace"), "\(refusal.errors)")
        #expect(try larder.command("clean", "--all", "--yes").end == .exited(0))
        #expect(try larder.documents() == 0)
        #expect(try load(larder, copy).output == "loaded 21 objects, 21 documents\n")
        #expect(try contents(larder) == before)
        #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
        #expect(!larder.folder.names.contains { $0.hasPrefix("larder.db.") && $0 != "larder.db.lock" })

        // Each sees what is theirs, and by its keys an object is found.
        #expect(try larder.command("mode", "offline").end == .exited(0))
        #expect(try larder.get("/users/1", ["Authorization": "Bearer bob"]).text.contains("bob"))
        #expect(try larder.get("/users/1").text.contains("nobody"))
        #expect(try larder.get("/users/1", ["Authorization": "Bearer eve"]).status >= 500)
        #expect(try larder.command("objects", "User", "user7").output.contains("user7"))
        try larder.restart()
        #expect(try contents(larder) == before)
    }

    @Test func `a loaded response is validated before it is served`() throws {
        let (origin, folder) = (try Self.origin(), TemporaryFolder())
        let larder = try Self.larder(origin)
        _ = try larder.get("/users/1")
        #expect(try larder.waitForDocuments(1))
        #expect(try larder.command("save", folder.file("copy.db")).end == .exited(0))
        #expect(try larder.request("PATCH", "/users/1", body: "{}").status == 204)
        let asked = origin.count()
        #expect(try load(larder, folder.file("copy.db"), "--replace").end == .exited(0))
        #expect(try !larder.get("/users/1").isHit)
        #expect(origin.count() == asked + 1)
        #expect(try larder.get("/users/1").isHit)
    }

    @Test func `another Larder loads everything except the data of principals that need the first one's key`() throws {
        let (origin, folder) = (try Self.origin(), TemporaryFolder())
        let first = try Self.larder(origin)
        for number in 1...5 { _ = try first.get("/users/\(number)") }
        for number in 1...3 { _ = try first.get("/users/\(number)", ["Authorization": "Bearer bob"]) }
        #expect(try first.waitForDocuments(8))
        #expect(try first.command("save", folder.file("copy.db")).end == .exited(0))

        let second = try Self.larder(origin)
        for name in ["eve", "carl"] { _ = try second.get("/users/9", ["Authorization": "Bearer \(name)"]) }
        let loaded = try load(second, folder.file("copy.db"), "--replace")
        #expect(loaded.output.hasPrefix("loaded 5 objects, 5 documents\nleft out 3 objects, 3 documents"), "\(loaded)")
        #expect(try second.command("objects", "User", "user4").output.contains("user4"))
        #expect(!Data(second.storeBytes).contains(Data("bob".utf8)))

        // With the first one's key nothing is left out, and ids that stand for others here do not matter.
        let keyed = TemporaryFolder()
        _ = try keyed.write("", to: "principal.key")
        try Data(first.folder.bytes("principal.key")).write(to: URL(filePath: keyed.file("principal.key")))
        chmod(keyed.file("principal.key"), 0o600)
        let third = try Self.larder(origin, store: keyed)
        _ = try third.get("/users/1", ["Authorization": "Bearer eve"])
        #expect(try third.waitForDocuments(1))
        #expect(try load(third, folder.file("copy.db"), "--replace").output == "loaded 8 objects, 8 documents\n")
        #expect(try third.command("mode", "offline").end == .exited(0))
        #expect(try third.get("/users/2", ["Authorization": "Bearer bob"]).text.contains("bob"))
        #expect(try third.get("/users/2", ["Authorization": "Bearer eve"]).status >= 500)
        #expect(try third.get("/users/1", ["Authorization": "Bearer eve"]).status >= 500)
    }

    @Test func `a file that is no whole copy is refused, and nothing changes`() throws {
        let (origin, folder) = (try Self.origin(), TemporaryFolder())
        let larder = try Self.larder(origin)
        for number in 1...50 { _ = try larder.get("/users/\(number)") }
        #expect(try larder.waitForDocuments(50))
        #expect(try larder.command("save", folder.file("copy.db")).end == .exited(0))
        let (copy, before) = (folder.bytes("copy.db"), try contents(larder))
        var flipped = copy
        flipped[copy.count / 2] ^= 1
        try Data(flipped).write(to: URL(filePath: folder.file("flipped")))
        try Data(copy.dropLast(5000)).write(to: URL(filePath: folder.file("short")))
        try Data(copy.prefix(50)).write(to: URL(filePath: folder.file("stub")))
        _ = try folder.write("", to: "empty")
        _ = try folder.write(String(repeating: "no database\n", count: 100), to: "text")
        try TestProcess.run("sqlite3", [folder.file("other"), "CREATE TABLE t (x); INSERT INTO t VALUES (1)"])
        try Data(copy).write(to: URL(filePath: folder.file("edited")))
        try TestProcess.run("sqlite3", [folder.file("edited"), "UPDATE _documents SET status = 201"])
        let cases = [
            ("flipped", "damaged"), ("short", "cut short"), ("stub", "no SQLite database"), ("empty", "copy"),
            ("text", "no SQLite database"), ("other", "another program"), ("edited", "damaged"),
            ("missing", "No such file"), (".", "not a file of larder save"),
        ]
        for (name, words) in cases {
            let refusal = try load(larder, folder.file(name), "--replace")
            #expect(refusal.end == .exited(1) && refusal.errors.contains(words), "\(name): \(refusal.errors)")
            #expect(try contents(larder) == before, "\(name)")
        }
        let own = try load(larder, larder.folder.file("larder.db"), "--replace")
        #expect(own.end == .exited(1) && own.errors.contains("a store itself"), "\(own.errors)")
        try Data(larder.folder.bytes("larder.db")).write(to: URL(filePath: folder.file("store")))
        #expect(try load(larder, folder.file("store"), "--replace").end == .exited(1))
        #expect(try larder.admin("POST", "/load?replace=perhaps").status == 400)
        #expect(try larder.admin("POST", "/load?replace=true").status == 400)
        #expect(try contents(larder) == before)
        #expect(try larder.get("/users/1").isHit)
        #expect(!larder.folder.names.contains { $0.contains(".loading") })
    }

    /// Changes a copy by the `sqlite3` command, and gives its pages the checksums that this one does not know.
    private func forge(_ copy: String, as file: String, _ sql: String) throws {
        try TestProcess.run("cp", [copy, file])
        let said = try TestProcess.run("sqlite3", [file, sql])
        #expect(said.isEmpty, "\(said)")
        var bytes = try Data(contentsOf: URL(filePath: file)).map { $0 }
        let size = Int(bytes[16]) << 8 | Int(bytes[17])
        for page in stride(from: 0, to: bytes.count, by: size) {
            var sum = UInt64(page) ^ 0x9e37_79b9_7f4a_7c15
            for place in stride(from: page, to: page + size - 8, by: 8) {
                let word = (0..<8).reduce(UInt64(0)) { $0 | UInt64(bytes[place + $1]) << UInt64(8 * $1) }
                sum = (sum ^ word) &* 0x9fb2_1c65_1e98_df25
                sum ^= sum >> 32
            }
            if sum == 0 { sum = 1 }
            for byte in 0..<8 { bytes[page + size - 8 + byte] = UInt8(truncatingIfNeeded: sum >> UInt64(8 * byte)) }
        }
        try Data(bytes).write(to: URL(filePath: file))
    }

    @Test func `a maliciously changed copy is refused, and the daemon goes on`() throws {
        let (origin, folder) = (try Self.origin(), TemporaryFolder())
        let larder = try Self.larder(origin)
        for number in 1...5 { _ = try larder.get("/users/\(number)") }
        _ = try larder.get("/users/1", ["Authorization": "Bearer bob"])
        #expect(try larder.waitForDocuments(6))
        let copy = folder.file("copy.db")
        #expect(try larder.command("save", copy).end == .exited(0))
        let before = try contents(larder)
        let publish =
            "CREATE TRIGGER t AFTER INSERT ON _documents BEGIN UPDATE _documents SET scope = (SELECT id FROM _scopes "
            + "WHERE principal = 1) WHERE id = new.id; END"
        let endless =
            "CREATE TRIGGER t AFTER UPDATE ON _documents BEGIN INSERT INTO _names (text) WITH RECURSIVE n(i) AS "
            + "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n; END"
        let cases = [
            (publish, "a trigger"), (endless, "a trigger"), ("CREATE TABLE more (x)", "a table"),
            ("UPDATE _documents SET status = -5", "damaged"), ("UPDATE _documents SET head = x'00'", "damaged"),
            (
                "UPDATE _documents SET head = CAST('A: b' || char(13, 10) || 'Transfer-Encoding: x' || char(13, 10) AS BLOB)",
                "damaged"
            ),
            ("UPDATE _documents SET policy = x'00'", "damaged"),
            (
                "UPDATE _documents SET policy = substr(policy, 1, 57) || x'ffffffffffffff7f' || substr(policy, 66)",
                "damaged"
            ),
            ("UPDATE _documents SET id = 9223372036854775807 WHERE id = (SELECT max(id) FROM _documents)", "damaged"),
            ("UPDATE _principals SET id = 9223372036854775807 WHERE id > 1", "damaged"),
            (
                "UPDATE _observations SET id = 9223372036854775807 WHERE id = (SELECT max(id) FROM _observations)",
                "damaged"
            ),
        ]
        for (sql, reason) in cases {
            try forge(copy, as: folder.file("forged"), sql)
            let refusal = try load(larder, folder.file("forged"), "--replace")
            #expect(refusal.end == .exited(1) && refusal.errors.contains(reason), "\(sql): \(refusal.errors)")
            #expect(try contents(larder) == before)
        }
        #expect(try larder.get("/users/1").isHit)
        try forge(copy, as: folder.file("same"), "SELECT 1 WHERE 0")
        #expect(try load(larder, folder.file("same"), "--replace").end == .exited(0))
        #expect(try contents(larder) == before)
        try larder.restart()
        #expect(try contents(larder) == before)
    }

    @Test func `a copy is not saved as a folder or over a store, nor over a file without --force`() throws {
        let (origin, folder) = (try Self.origin(), TemporaryFolder())
        let larder = try Self.larder(origin)
        _ = try folder.write("mine", to: "mine")
        let there = try larder.command("save", folder.file("mine"))
        #expect(there.end == .exited(1) && there.errors.contains("--force"))
        #expect(folder.bytes("mine") == Array("mine".utf8))
        #expect(try larder.command("save", folder.path).errors.contains("this is a folder"))
        #expect(try larder.command("save", folder.file("no/copy.db")).errors.contains("No such file"))
        let own = try larder.command("save", larder.folder.file("larder.db"), "--force")
        #expect(own.end == .exited(1) && own.errors.contains("the file of a store"), "\(own.errors)")
        #expect(try larder.command("save", folder.file("mine"), "--force").end == .exited(0))
        #expect(try load(larder, folder.file("mine")).end == .exited(0))
    }

    @Test func `a copy made during reads and writes is whole`() throws {
        let body = String(repeating: "x", count: 20_000)
        let (origin, folder) = (try Origin { .json("[\"\($0.path)\(body)\"]", Fresh.hour) }, TemporaryFolder())
        let larder = try Larder(origin)
        for number in 0..<800 { _ = try larder.get("/\(number)") }
        #expect(try larder.waitForDocuments(800))
        let process = try TestProcess(
            Larder.binary,
            [
                "save", folder.file("copy.db"), "--admin", "127.0.0.1:\(larder.adminPort)", "--store",
                larder.folder.file("larder.db"),
            ],
            environment: Larder.environment
        )
        var number = 800
        while process.end == nil {
            #expect(try larder.get("/\(number)").status == 200)
            #expect(try larder.get("/\(number - 800)").isHit)
            if number % 10 == 0 { #expect(try larder.request("DELETE", "/gone\(number)").status == 200) }
            number += 1
        }
        #expect(process.waitForEnd() == .exited(0), "\(process.errors)")
        let other = try Larder(origin)
        #expect(try load(other, folder.file("copy.db")).end == .exited(0))
        #expect(try other.documents() >= 700)
        #expect(try other.sql("PRAGMA integrity_check") == ["ok"])
    }

    @Test func `a daemon killed while loading has the old contents or the new, and leaves no files`() throws {
        let body = String(repeating: "x", count: 20_000)
        let (origin, folder) = (try Origin { .json("[\"\($0.path)\(body)\"]", Fresh.hour) }, TemporaryFolder())
        let full = try Larder(origin)
        for number in 0..<1000 { _ = try full.get("/\(number)") }
        #expect(try full.waitForDocuments(1000))
        #expect(try full.command("save", folder.file("copy.db")).end == .exited(0))
        let larder = try Larder(origin)
        _ = try larder.get("/mine")
        #expect(try larder.waitForDocuments(1))
        for delay in [5, 40, 80, 150, 300] {
            let process = try TestProcess(
                Larder.binary,
                [
                    "load", folder.file("copy.db"), "--replace", "--admin", "127.0.0.1:\(larder.adminPort)", "--store",
                    larder.folder.file("larder.db"),
                ],
                environment: Larder.environment
            )
            _ = eventually { larder.folder.names.contains("larder.db.loading") || process.end != nil }
            usleep(UInt32(delay) * 1000)
            larder.kill()
            #expect(process.waitForEnd() != nil)
            try larder.start()
            let documents = try larder.documents()
            #expect(documents == 1 || documents == 1000)
            #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
            #expect(!larder.folder.names.contains { $0.contains(".loading") || $0.contains("corrupt") })
            if documents == 1000 { break }
        }
    }
}

/// What is too large is not received.
@Suite(.scripts) struct LargeCopyTests {
    /// A daemon with a small store, and a client that has sent the head of a copy to it.
    private func loading(_ framing: String) throws -> (larder: Larder, client: Client) {
        let config = Configs.plain(try Origin { _ in .json("{}") }, top: ["store: { maximum_size: 4MiB }"])
        let larder = try Larder(config: config)
        let client = try Client(port: larder.adminPort)
        let token = try #require(larder.token)
        try client.send(
            "POST /load HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(token)\r\n\(framing)\r\n"
                + "Content-Type: application/vnd.sqlite3\r\n\r\n"
        )
        return (larder, client)
    }

    @Test func `a copy that is too large is refused by its length, before it is sent`() throws {
        let (larder, client) = try loading("Content-Length: 9000000000")
        #expect(try client.head().status == 409)
        #expect(!larder.folder.names.contains { $0.hasSuffix(".loading") })
    }

    @Test func `a copy without a length is received up to the store's bound only`() throws {
        let (larder, client) = try loading("Transfer-Encoding: chunked")
        let chunk = "10000\r\n" + String(repeating: "x", count: 0x10000) + "\r\n"
        // It stops reading, or closes the connection.
        for _ in 0..<50 { try client.send(chunk) }
        #expect(try client.head().status == 409)
        #expect(!larder.folder.names.contains { $0.hasSuffix(".loading") })
    }
}

/// Copies on a disk that is really full.
@Suite(.scripts, .enabled(if: SmallDisk.isPossible, "file systems can be mounted by root only"))
struct SaveToFullDiskTests {
    private func origin() throws -> Origin {
        let body = String(repeating: "x", count: 20_000)
        return try Origin { .json("[\"\($0.path)\(body)\"]", Fresh.hour) }
    }

    @Test func `a daemon whose disk is full refuses to save, and still serves stored responses`() throws {
        let (origin, disk) = (try origin(), try SmallDisk(megabytes: 16))
        let config = Configs.plain(origin, top: ["store: { maximum_size: 16MiB }"])
        let larder = try Larder(
            arguments: ["--config", try disk.outside.write(config, to: "larder.yaml")],
            folder: disk.folder,
            startedBy: disk.entrance
        )
        func admin(_ method: String, _ target: String) throws -> Response {
            try larder.admin(method, target, disk.authorization)
        }
        for number in 0..<200 { _ = try larder.get("/\(number)") }
        #expect(try eventually { try admin("GET", "/count").object["documents"] as? Int == 200 })
        // A store that writes its log back gives room back, perhaps after the disk was filled.
        var refused: Response?
        #expect(
            try eventually {
                try disk.fill()
                refused = try admin("POST", "/save")
                return refused?.status == 507
            }
        )
        #expect(refused?.text.contains("disk") == true, "\(String(describing: refused))")
        // What the full disk could not take has displaced others.
        #expect(try larder.get("/7").status == 200)
        #expect(try admin("GET", "/count").object["documents"] as? Int ?? 0 > 100)
    }

    @Test func `a copy that does not fit on its disk is removed`() throws {
        let larder = try Larder(try origin())
        for number in 0..<50 { _ = try larder.get("/\(number)") }
        #expect(try larder.waitForDocuments(50))
        // No one else writes to this disk: a daemon's store there would give room back at times of its own.
        let disk = try SmallDisk(megabytes: 1)
        try disk.fill()
        let arguments =
            disk.entrance + [
                Larder.binary, "save", disk.folder.file("copy.db"), "--admin", "127.0.0.1:\(larder.adminPort)",
                "--store", larder.folder.file("larder.db"),
            ]
        let process = try TestProcess(arguments[0], Array(arguments.dropFirst()), environment: Larder.environment)
        #expect(process.waitForEnd() == .exited(1))
        #expect(process.errors.contains("No space left"), "\(process.errors)")
        let names = try TestProcess.run(disk.entrance[0], Array(disk.entrance.dropFirst()) + ["ls", disk.folder.path])
        #expect(!names.contains("copy.db"), "\(names)")
        #expect(try larder.get("/7").isHit)
    }
}
