import Foundation
import TestSupport
import Testing

/// `larder run`: a command against a recording.
@Suite(.scripts) struct RunTests {
    private static func run(
        _ recording: String,
        _ options: [String],
        _ script: String
    ) throws -> (end: TestProcess.End?, output: String, errors: String) {
        try Larder.run(["run", recording] + options + ["--", "sh", "-c", script])
    }

    private static func run(_ recording: String, _ script: String) throws -> (
        end: TestProcess.End?, output: String, errors: String
    ) {
        try run(recording, [], script)
    }

    private static func origin() throws -> Origin { try Origin { .text("\($0.target) of the origin") } }

    @Test func `the command gets the address, and its exit status is the run's`() throws {
        let origin = try Self.origin()
        let recording = RecordedFolder()
        try recording.record(origin) { _ = try $0.get("/x") }
        let asked = origin.count()
        let result = try Self.run(
            recording.path,
            ["--env", "API=@/v1", "--env", "PLAIN=y"],
            #"curl -s "$LARDER_URL/x"; echo " $API $PLAIN $LARDER_URL"; exit 3"#
        )
        #expect(result.end == .exited(3))
        #expect(result.output.hasPrefix("/x of the origin http://127.0.0.1:"))
        let words = result.output.split(separator: " ")
        #expect(words[4] == "\(words.last!.dropLast())/v1" && words[5] == "y")
        #expect(result.errors == "")
        let missing = try Larder.run(["run", recording.path, "--", "no-such-command"])
        #expect(missing.end == .exited(127) && missing.errors == "larder: no-such-command: No such file or directory\n")
        #expect(try Self.run(recording.path, "kill -TERM $$").end == .exited(143))
        #expect(try Larder.run(["run", recording.path]).end == .exited(64))
        #expect(origin.count() == asked)
    }

    @Test func `a run reports unrecorded requests and unused exchanges, and under strict fails`() throws {
        let recording = RecordedFolder()
        try recording.record(try Self.origin()) { larder in
            for target in ["/x", "/y"] { _ = try larder.get(target) }
        }
        let script = #"curl -s -o /dev/null "$LARDER_URL/x" "$LARDER_URL/z" "$LARDER_URL/z""#
        let loose = try Self.run(recording.path, script)
        #expect(loose.end == .exited(0))
        #expect(loose.errors.contains("larder: asked for, and not recorded:\nlarder:   GET /z (2 times)\n"))
        #expect(loose.errors.contains("nearest: GET /x"))
        #expect(loose.errors.contains("larder: recorded, and never asked for:\nlarder:   GET /y\n"))
        #expect(try Self.run(recording.path, ["--strict"], script).end == .exited(1))
        let twice = #"curl -s -o /dev/null "$LARDER_URL/x" "$LARDER_URL/x""#
        let exhausted = try Self.run(recording.path, ["--strict"], twice).errors
        #expect(exhausted.contains("recorded once, and asked for more often"))
        let json = try Self.run(recording.path, ["--json"], script).errors
        let report = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
        #expect((report["replayed"] as? [String: Any])?["never_used"] as? [String] == ["GET /y"])
    }

    @Test func `a recording is not replaced by an empty one, nor by that of a command that failed`() throws {
        let origin = try Self.origin()
        let recording = RecordedFolder()
        try recording.record(origin) { _ = try $0.get("/x") }
        let script = #"curl -s "$LARDER_URL/x""#
        let away = try Self.run(recording.path, ["--record", "all", "--upstream", "http://127.0.0.1:1"], script)
        #expect(away.errors.contains("larder: every request to the API failed: Upstream \"upstream\": "))
        #expect(away.errors.contains("nothing was recorded, so \(recording.path) stays as it was"))
        let failed = try Self.run(recording.path, ["--record", "all"], #"curl -s "$LARDER_URL/y"; exit 3"#)
        #expect(failed.errors.contains("the command failed, so \(recording.path) stays as it was"))
        #expect(failed.errors.contains("larder: recorded 1 exchange in \(recording.path)/.larder-new\n"))
        #expect(failed.end == .exited(3))
        #expect(try Self.run(recording.path, script).output == "/x of the origin")
        let empty = RecordedFolder()
        let once = ["--record", "once", "--upstream"]
        let first = try Self.run(empty.path, once + ["http://127.0.0.1:1"], script)
        #expect(first.errors.contains("nothing was recorded, so there is no recording"))
        #expect(try Self.run(empty.path, once + [origin.url], script).output == "/x of the origin")
    }

    @Test(arguments: ["once", "new", "all"])
    func `other files in the folder stay when its recording is replaced`(mode: String) throws {
        let origin = try Self.origin()
        let folder = TemporaryFolder()
        for name in ["q", "q/.git"] { mkdir(folder.file(name), 0o755) }
        try folder.write("precious", to: "q/notes.txt")
        symlink("q", folder.file("link"))
        let options = ["--record", mode, "--upstream", origin.url]
        let first = try Self.run(folder.file("link"), options, #"curl -s "$LARDER_URL/x" "$LARDER_URL/y""#)
        #expect(first.output == "/x of the origin/y of the origin")
        let second = try Self.run(folder.file("q/."), ["--record", "all"], #"curl -s "$LARDER_URL/z""#)
        #expect(second.end == .exited(0), "\(second.errors)")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.file("q")).sorted()
        #expect(names == [".git", ".gitattributes", "bodies", "exchanges.jsonl", "notes.txt", "recording.yaml"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("q/bodies")) == ["000001.bin"])
        #expect(folder.bytes("q/notes.txt") == Array("precious".utf8))
        #expect(try FileManager.default.attributesOfItem(atPath: folder.file("q"))[.posixPermissions] as? Int == 0o755)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: folder.file("link")) == "q")
        #expect(folder.names == ["link", "q"])
    }

    @Test func `a folder that is no recording is not replaced`() throws {
        let origin = try Self.origin()
        let folder = TemporaryFolder()
        try folder.write("precious", to: "file")
        for name in ["mine", "mine/bodies"] { mkdir(folder.file(name), 0o755) }
        try folder.write("precious", to: "mine/bodies/x")
        for (name, words) in [
            ("file", "this is not a folder"), ("mine", "the folder contains bodies, but no recording"),
        ] {
            let options = ["--record", "all", "--upstream", origin.url]
            let refused = try Self.run(folder.file(name), options, "echo started")
            #expect(refused.end == .exited(1) && refused.output == "" && refused.errors.contains(words))
        }
        #expect(folder.bytes("file") == Array("precious".utf8) && folder.bytes("mine/bodies/x") != [])
    }

    @Test func `a folder that is being recorded into is not replaced`() throws {
        let origin = try Self.origin()
        let recording = RecordedFolder()
        try recording.record(origin) { larder in
            _ = try larder.get("/x")
            #expect(eventually { recording.lines.count == 1 })
            let refused = try Self.run(recording.path, ["--record", "all"], "echo started")
            #expect(refused.end == .exited(1) && refused.output == "")
            #expect(refused.errors.contains("another process is recording into this folder"))
        }
        #expect(recording.lines.count == 1)
    }

    @Test func `a killed run's remains count as no recording, and the next run removes them`() throws {
        let origin = try Self.origin()
        let recording = RecordedFolder()
        let options = ["--record", "once", "--upstream", origin.url]
        let script = #"curl -s "$LARDER_URL/x""#
        #expect(try Self.run(recording.path, options, "\(script); kill -9 $PPID").end == .killed(by: SIGKILL))
        #expect(try Self.run(recording.path, options, script).errors.contains("recorded 1 exchange"))
        #expect(!recording.files.keys.contains { $0.hasPrefix(".larder") })
        let begun = RecordedFolder()
        try Larder.recording(origin, into: begun.path).kill()
        #expect(begun.files["exchanges.jsonl"] == [])
        #expect(try Self.run(begun.path, options, script).errors.contains("recorded 1 exchange"))
    }

    @Test func `the command's requests to Larder go through no proxy`() throws {
        let recording = RecordedFolder()
        try recording.record(try Self.origin()) { _ = try $0.get("/x") }
        let result = try Larder.run(
            ["run", recording.path, "--", "sh", "-c", #"curl -s "$LARDER_URL/x"; echo " $NO_PROXY""#],
            environment: ["http_proxy": "http://127.0.0.1:1", "no_proxy": "example.com"]
        )
        #expect(result.output == "/x of the origin example.com,127.0.0.1\n")
        let variable = try Self.run(recording.path, ["--env", "API=http://@/v1"], "true")
        #expect(variable.end == .exited(64) && variable.errors.contains("write API=@ or API=@/path"))
    }

    @Test func `a run reports exchanges added from another address`() throws {
        let (origin, other) = (try Self.origin(), try Self.origin())
        let recording = RecordedFolder()
        try recording.record(origin) { _ = try $0.get("/x") }
        let options = ["--record", "new", "--upstream", other.url]
        let added = try Self.run(recording.path, options, #"curl -s "$LARDER_URL/y""#)
        #expect(
            added.errors.contains("was recorded from \(origin.url), and exchanges with \(other.url) are added to it")
        )
        let again = try Self.run(recording.path, ["--record", "new"], #"curl -s "$LARDER_URL/y""#)
        #expect(again.output == "/y of the origin" && !again.errors.contains("are added to it"))
    }

    @Test func `run --record once records if there is no recording, and replays from then on`() throws {
        let origin = try Self.origin()
        let recording = RecordedFolder()
        let options = ["--record", "once", "--upstream", origin.url]
        let script = #"curl -s "$LARDER_URL/x""#
        #expect(try Self.run(recording.path, script).end == .exited(1))
        let first = try Self.run(recording.path, options, script)
        #expect(first.output == "/x of the origin" && first.errors.contains("recorded 1 exchange"))
        let second = try Self.run(recording.path, options, script)
        #expect(second.output == "/x of the origin" && second.errors == "")
        #expect(origin.count() == 1)
    }

    @Test func `run --record new replays known requests and records others, and --record all records everything`()
        throws
    {
        let origin = try Self.origin()
        let recording = RecordedFolder()
        try recording.record(origin) { _ = try $0.get("/x") }
        let post = #"curl -s -d 'a=1' "$LARDER_URL/y""#
        let result = try Self.run(
            recording.path,
            ["--record", "new", "--strict"],
            #"curl -s "$LARDER_URL/x"; \#(post)"#
        )
        #expect(result.end == .exited(0) && !result.errors.contains("not recorded"), "\(result.errors)")
        #expect(result.output == "/x of the origin/y of the origin")
        #expect(origin.count("/x") == 1 && origin.count("/y") == 1)
        #expect(origin.requests.last?.body == Array("a=1".utf8))
        #expect(recording.lines.count == 2)
        #expect(try Self.run(recording.path, ["--strict"], #"curl -s "$LARDER_URL/x"; \#(post)"#).end == .exited(0))
        let all = try Self.run(recording.path, ["--record", "all"], #"curl -s "$LARDER_URL/w""#)
        #expect(all.output == "/w of the origin")
        #expect(recording.lines.count == 1 && recording.lines[0].contains(#""target":"/w""#))
    }

    @Test func `signals reach the command`() throws {
        let recording = RecordedFolder()
        try recording.record(try Self.origin()) { _ = try $0.get("/x") }
        let script = "trap 'echo told; exit 5' TERM; echo ready >&2; while :; do sleep 0.05; done"
        let process = try TestProcess(
            Larder.binary,
            ["run", recording.path, "--", "sh", "-c", script],
            environment: Larder.environment
        )
        #expect(process.waitForErrors { $0.contains("ready") })
        process.signal(SIGTERM)
        #expect(process.waitForEnd() == .exited(5))
        #expect(process.output == "told\n")
    }

    @Test func `runs at the same time do not disturb each other`() throws {
        let recording = RecordedFolder()
        let count = Monitor(0)
        let origin = try Origin { _ in
            .text("\(count.withLock { $0 += 1; return $0 })")
        }
        try recording.record(origin) { larder in for _ in 0..<3 { _ = try larder.get("/n") } }
        let path = recording.path
        let outputs = try together(4) { _ in
            try Self.run(path, #"for i in 1 2 3; do curl -s "$LARDER_URL/n"; done"#).output
        }
        #expect(outputs == ["123", "123", "123", "123"])
    }
}
