import Foundation
import Synchronization
import TestSupport
import Testing

/// `larder load --merge`: a copy added to what the store contains.
@Suite(.scripts) struct MergeTests {
    /// Users by number, all of one name, which may change.
    private static func origin(_ name: @escaping @Sendable () -> String = { "ada" }) throws -> Origin {
        try Origin { request in
            guard request.method == "GET" else { return .empty(204) }
            let number = request.path.split(separator: "/").last.map(String.init) ?? "0"
            return .json(#"{"id":\#(number),"login":"user\#(number)","name":"\#(name())"}"#, Fresh.hour)
        }
    }

    private func merge(_ larder: Larder, _ file: String, _ more: String...) throws -> (
        end: ChildProcess.End?, output: String, errors: String
    ) {
        try Larder.run(Self.arguments(larder, file) + more)
    }

    private static func arguments(_ larder: Larder, _ file: String) -> [String] {
        [
            "load", file, "--merge", "--admin", "127.0.0.1:\(larder.adminPort)", "--store",
            larder.folder.file("larder.db"),
        ]
    }

    private func contents(_ larder: Larder) throws -> [String] {
        let count = try larder.count()
        return ["\(count["objects"] ?? "")", "\(count["documents"] ?? "")", "\(count["models"] ?? "")"]
    }

    @Test func `after a save, a clean and a merge there is what was there before, as often as it is merged`() throws {
        let (origin, folder) = (try Self.origin(), TemporaryFolder())
        let larder = try Larder(config: Configs.blog(origin))
        for number in 1...20 { _ = try larder.get("/users/\(number)") }
        _ = try larder.get("/users/1", ["Authorization": "Bearer bob"])
        #expect(try larder.waitForDocuments(21))
        let (before, copy) = (try contents(larder), folder.file("copy.db"))
        #expect(try larder.command("save", copy).end == .exited(0))
        // Into itself: nothing is new, and all stays fresh.
        let itself = try merge(larder, copy)
        #expect(itself.output == "added 0 objects, 0 documents; the store has 21 objects, 21 documents\n", "\(itself)")
        #expect(try larder.get("/users/1").isHit)
        #expect(try larder.command("clean", "--all", "--yes").end == .exited(0))
        let merged = try merge(larder, copy)
        #expect(
            merged.output == "added 21 objects, 21 documents; the store has 21 objects, 21 documents\n",
            "\(merged)"
        )
        #expect(try contents(larder) == before)
        let again = try merge(larder, copy, "--json")
        #expect(again.output.contains(#""added_documents":0"#), "\(again)")
        #expect(try contents(larder) == before)
        #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
        #expect(!larder.folder.names.contains { $0.contains(".loading") })
        #expect(try larder.admin("GET", "/load").object["merging"] as? Bool == false)
        // What was merged is asked about before it is served; offline it is served as it is.
        let asked = origin.count()
        #expect(try !larder.get("/users/2").isHit)
        #expect(origin.count() == asked + 1)
        #expect(try larder.get("/users/2").isHit)
        #expect(try larder.command("mode", "offline").end == .exited(0))
        #expect(try larder.get("/users/1", ["Authorization": "Bearer bob"]).status == 200)
        #expect(try larder.get("/users/1", ["Authorization": "Bearer eve"]).status >= 500)
        let why = try larder.command("why", "User", "7").output
        #expect(why.contains("GET /users/7") && !why.contains("199"), "\(why)")
        try larder.restart()
        #expect(try contents(larder) == before)
    }

    @Test func `what is known stays, what is not is added, and all is served meanwhile`() throws {
        let (folder, name) = (TemporaryFolder(), SharedName("theirs"))
        let origin = try Self.origin { name.text }
        let there = try Larder(config: Configs.blog(origin))
        for number in 1...300 { _ = try there.get("/users/\(number)") }
        #expect(try there.waitForDocuments(300))
        #expect(try there.command("save", folder.file("copy.db")).end == .exited(0))
        name.text = "mine"
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users/1")
        #expect(try larder.waitForDocuments(1))
        let process = try ChildProcess(
            Larder.binary,
            Self.arguments(larder, folder.file("copy.db")),
            environment: Larder.environment
        )
        var number = 1000
        while process.end == nil {
            #expect(try larder.get("/users/\(number)").status == 200)
            #expect(try larder.get("/users/1").isHit)
            number += 1
        }
        #expect(process.waitForEnd() == .exited(0), "\(process.errors)")
        #expect(process.output.hasPrefix("added 299 objects, 299 documents"), "\(process.output)")
        #expect(try larder.get("/users/1").text.contains("mine"))
        #expect(try larder.command("mode", "offline").end == .exited(0))
        #expect(try larder.get("/users/2").text.contains("theirs"))
        #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
    }

    @Test func `what a copy adds to a known object says so, and has no date`() throws {
        let folder = TemporaryFolder()
        let origin = try Origin { request in
            request.path == "/users"
                ? .json(#"[{"id":1,"login":"ada"}]"#, Fresh.hour)
                : .json(#"{"id":1,"login":"ada","name":"Ada"}"#, Fresh.hour)
        }
        let there = try Larder(config: Configs.blog(origin))
        _ = try there.get("/users/1")
        #expect(try there.waitForDocuments(1))
        #expect(try there.command("save", folder.file("copy.db")).end == .exited(0))
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        #expect(try larder.waitForDocuments(1))
        #expect(try merge(larder, folder.file("copy.db")).end == .exited(0))
        let why = try larder.command("why", "User", "1").output
        let name = try #require(why.split(separator: "\n").first { $0.hasPrefix("name") })
        #expect(name.contains("GET /users/1, in a loaded copy") && !name.contains(" d"), "\(why)")
        let login = try #require(why.split(separator: "\n").first { $0.hasPrefix("login") })
        #expect(!login.contains("copy") && login.contains(" s"), "\(why)")
        let json = try larder.command("why", "User", "1", "--json").output
        #expect(json.contains(#""copied":true"#) && !json.contains("2017"), "\(json)")
    }

    @Test func `replace and merge exclude each other, and a file that is no whole copy changes nothing`() throws {
        let (origin, folder) = (try Self.origin(), TemporaryFolder())
        let larder = try Larder(config: Configs.blog(origin))
        for number in 1...50 { _ = try larder.get("/users/\(number)") }
        #expect(try larder.waitForDocuments(50))
        #expect(try larder.command("save", folder.file("copy.db")).end == .exited(0))
        let (copy, before) = (folder.bytes("copy.db"), try contents(larder))
        #expect(try merge(larder, folder.file("copy.db"), "--replace").end == .exited(64))
        #expect(try larder.admin("POST", "/load?replace=true&merge=true").status == 400)
        #expect(try larder.admin("POST", "/load?merge=true").status == 400)
        var flipped = copy
        flipped[copy.count / 2] ^= 1
        try Data(flipped).write(to: URL(filePath: folder.file("flipped")))
        try Data(copy.dropLast(5000)).write(to: URL(filePath: folder.file("short")))
        _ = try folder.write("", to: "empty")
        for (name, words) in [
            ("flipped", "damaged"), ("short", "cut short"), ("empty", "copy"), ("missing", "No such file"),
        ] {
            let refusal = try merge(larder, folder.file(name))
            #expect(refusal.end == .exited(1) && refusal.errors.contains(words), "\(name): \(refusal.errors)")
            #expect(try contents(larder) == before, "\(name)")
        }
        // The copy of an empty store.
        #expect(try Larder(origin).command("save", folder.file("nothing")).end == .exited(0))
        let nothing = try merge(larder, folder.file("nothing"))
        #expect(nothing.output.hasPrefix("added 0 objects, 0 documents;"), "\(nothing)")
        #expect(try larder.get("/users/1").isHit)
        #expect(!larder.folder.names.contains { $0.contains(".loading") })
    }

    @Test func `a daemon that is killed while it merges has a whole store, and merging again adds the rest`() throws {
        let body = String(repeating: "x", count: 20_000)
        let (origin, folder) = (try Origin { .json("[\"\($0.path)\(body)\"]", Fresh.hour) }, TemporaryFolder())
        let full = try Larder(origin)
        for number in 0..<1000 { _ = try full.get("/\(number)") }
        #expect(try full.waitForDocuments(1000))
        #expect(try full.command("save", folder.file("copy.db")).end == .exited(0))
        let larder = try Larder(origin)
        _ = try larder.get("/mine")
        #expect(try larder.waitForDocuments(1))
        for delay in [1, 20, 60, 120] {
            let process = try ChildProcess(
                Larder.binary,
                Self.arguments(larder, folder.file("copy.db")),
                environment: Larder.environment
            )
            _ = try eventually {
                try process.end != nil || larder.admin("GET", "/load").object["merging"] as? Bool == true
            }
            usleep(UInt32(delay) * 1000)
            larder.kill()
            #expect(process.waitForEnd() != nil)
            try larder.start()
            #expect((1...1001).contains(try larder.documents()))
            #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
            #expect(!larder.folder.names.contains { $0.contains(".loading") || $0.contains("corrupt") })
        }
        #expect(try merge(larder, folder.file("copy.db")).end == .exited(0))
        #expect(try larder.documents() == 1001)
    }

    @Test func `of two merges at once one is refused, or comes after the other`() throws {
        let body = String(repeating: "x", count: 20_000)
        let (origin, folder) = (try Origin { .json("[\"\($0.path)\(body)\"]", Fresh.hour) }, TemporaryFolder())
        let full = try Larder(origin)
        for number in 0..<500 { _ = try full.get("/\(number)") }
        #expect(try full.waitForDocuments(500))
        #expect(try full.command("save", folder.file("copy.db")).end == .exited(0))
        let larder = try Larder(origin)
        let processes = try (0..<2).map { _ in
            try ChildProcess(
                Larder.binary,
                Self.arguments(larder, folder.file("copy.db")),
                environment: Larder.environment
            )
        }
        let ends = processes.map { $0.waitForEnd() }
        #expect(ends.contains(.exited(0)))
        for (process, end) in zip(processes, ends) where end != .exited(0) {
            #expect(end == .exited(1) && process.errors.contains("being loaded already"), "\(process.errors)")
        }
        #expect(try larder.documents() == 500)
        #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
    }
}

/// A name that an origin gives, and a test changes.
private final class SharedName: Sendable {
    private let name: Mutex<String>

    init(_ name: String) { self.name = Mutex(name) }

    var text: String {
        get { name.withLock { $0 } }
        set { name.withLock { $0 = newValue } }
    }
}

/// Merging on a disk that is really full.
@Suite(.scripts, .enabled(if: SmallDisk.isPossible, "file systems can be mounted by root only"))
struct MergeOnFullDiskTests {
    @Test func `a disk that fills ends a merge with an error, and with room it is finished`() throws {
        let body = String(repeating: "x", count: 20_000)
        let origin = try Origin { .json("[\"\($0.path)\(body)\"]", Fresh.hour) }
        let full = try Larder(origin)
        for number in 0..<300 { _ = try full.get("/\(number)") }
        #expect(try full.waitForDocuments(300))
        // Room for the copy of some 6 MB, but not for its contents as well.
        let disk = try SmallDisk(megabytes: 12)
        let copy = disk.outside.file("copy.db")
        #expect(try full.command("save", copy).end == .exited(0))
        let config = Configs.plain(origin, top: ["store: { maximum_size: 16MiB }"])
        let larder = try Larder(
            arguments: ["--config", try disk.outside.write(config, to: "larder.yaml")],
            folder: disk.folder,
            startedBy: disk.entrance
        )
        _ = try larder.get("/mine")
        func merge() throws -> ChildProcess {
            let arguments =
                disk.entrance + [
                    Larder.binary, "load", copy, "--merge", "--admin", "127.0.0.1:\(larder.adminPort)", "--store",
                    disk.folder.file("larder.db"),
                ]
            let process = try ChildProcess(arguments[0], Array(arguments.dropFirst()), environment: Larder.environment)
            process.waitForEnd()
            return process
        }
        let refused = try merge()
        #expect(
            refused.end == .exited(1) && refused.errors.contains("merging again adds the rest"),
            "\(refused.output) \(refused.errors)"
        )
        #expect(try larder.get("/mine").status == 200)
        try ChildProcess.run(
            disk.entrance[0],
            Array(disk.entrance.dropFirst()) + ["mount", "-o", "remount,size=64m", disk.folder.path]
        )
        // Until it has found the room, the store keeps its size, and what is added displaces what is there.
        #expect(
            eventually {
                larder.log.contains("the disk has room for the store again")
                    || !larder.log.contains("the store cannot grow")
            }
        )
        let finished = try merge()
        #expect(finished.end == .exited(0), "\(finished.errors)")
        #expect(try larder.admin("GET", "/count", disk.authorization).object["documents"] as? Int == 301)
    }
}
