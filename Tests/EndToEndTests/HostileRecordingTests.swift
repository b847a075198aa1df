import Foundation
import TestSupport
import Testing

/// Recordings from elsewhere, and what a crash leaves of one's own.
@Suite(.scripts) struct HostileRecordingTests {
    @Test func `odd methods, statuses and fields are recorded and replayed`() throws {
        let origin = try Origin { request in
            request.path == "/odd"
                ? .raw("HTTP/1.1 999 Odd\r\nContent-Length: 2\r\nX: a\u{1}b\r\n\r\nno") : .text("yes", Fresh.hour)
        }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            #expect(try larder.get("/odd").status == 999)
            for method in ["M-SEARCH2", "X!#$%&'*+.^_`|~", "get"] {
                #expect(try larder.request(method, "/x").status == 200)
            }
            _ = try larder.request("OPTIONS", "*")
            _ = try larder.get("/y?\(String(repeating: "a=%7e&", count: 500))")
        }
        #expect(recording.lines.count >= 5)
        let larder = try Larder.replaying(recording.path)
        #expect(try larder.get("/odd").status == 999)
        #expect(try larder.request("M-SEARCH2", "/x").text == "yes")
        #expect(try Larder.run(["export", recording.path, recording.path + ".har"]).end == .exited(0))
        #expect(try Larder.run(["diff", recording.path, recording.path]).end == .exited(0))
    }

    @Test func `a recording cannot read or write files, or listen, with any command`() throws {
        let origin = try Origin { _ in .text("x") }
        let recording = RecordedFolder()
        try recording.record(origin) { _ = try $0.get("/x") }
        let folder = TemporaryFolder()
        try folder.write("s3cret-of-the-user", to: "token")
        let manifest = String(decoding: recording.files["recording.yaml"] ?? [], as: UTF8.self)
        let asked = origin.count()
        for (added, key) in [
            ("    credential: { from: \(folder.file("token")) }\n", "credential"),
            ("access_log: { file: \(folder.file("log")) }\n", "access_log"),
            ("include: \(folder.file("token"))\n", "include"),
            ("listen: 0.0.0.0:0\n", "listen"),
        ] {
            try recording.write(manifest + added, to: "recording.yaml")
            let line = manifest.split(separator: "\n", omittingEmptySubsequences: false).count
            let commands = [
                ["replay", recording.path, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"],
                ["run", recording.path, "--", "true"], ["run", recording.path, "--record", "new", "--", "true"],
                ["run", recording.path, "--record", "all", "--", "true"], ["diff", recording.path],
                ["diff", recording.path, recording.path], ["export", recording.path, folder.file("x.har")],
                [
                    "record", recording.path, "--upstream", origin.url, "--listen", "127.0.0.1:0", "--admin",
                    "127.0.0.1:0",
                ],
            ]
            for command in commands {
                let result = try Larder.run(command)
                #expect(result.end == .exited(1), "\(command)")
                #expect(result.errors.contains("recording.yaml:\(line): \"\(key)\" is not allowed"), "\(result.errors)")
                #expect(!result.errors.contains("s3cret"))
            }
        }
        #expect(origin.count() == asked)
        #expect(folder.names == ["token"])
    }

    @Test func `pages that a recording's config allows can use its replay, but not the recorder`() throws {
        let origin = try Origin { _ in .text("x") }
        let recording = RecordedFolder()
        let config = "upstreams: { api: { url: \"\(origin.url)\", cors: [\"http://page.example\"] } }\n"
        try recording.record(origin, config: config) { _ = try $0.get("/x") }
        let script = #"curl -s -o /dev/null -w '%{http_code}' -H 'Origin: http://page.example' "$LARDER_URL/x""#
        for (mode, status) in [("none", "200"), ("new", "403"), ("all", "403")] {
            #expect(
                try Larder.run(["run", recording.path, "--record", mode, "--", "sh", "-c", script]).output == status
            )
        }
    }

    @Test func `after kill -9 the recorded exchanges are intact, and more can be added`() throws {
        let origin = try Origin { .text($0.target, Fresh.hour) }
        let recording = RecordedFolder()
        let larder = try Larder.recording(origin, into: recording.path)
        for number in 1...20 { _ = try larder.get("/\(number)") }
        #expect(eventually { recording.lines.count == 20 })
        larder.kill()
        #expect(try Larder.replaying(recording.path).get("/20").text == "/20")
        try recording.record(origin) { _ = try $0.get("/21") }
        #expect(try Larder.replaying(recording.path).get("/21").text == "/21")
    }

    @Test(arguments: ["once", "all"])
    func `after kill -9 of a first run its recording replays, and is replaced at the next recording`(mode: String)
        throws
    {
        let origin = try Origin { .text($0.target) }
        let recording = RecordedFolder()
        let options = ["--record", mode, "--upstream", origin.url]
        let script = #"curl -s "$LARDER_URL/x"; cat"#
        let run = try TestProcess(Larder.binary, ["run", recording.path] + options + ["--", "sh", "-c", script])
        let lines = "\(recording.path)/.larder-new/exchanges.jsonl"
        #expect(
            eventually { (FileManager.default.contents(atPath: lines)?.split(separator: 0x0A).count ?? 0) == 1 }
        )
        run.signal(SIGKILL)
        _ = run.waitForEnd()
        let asked = origin.count()
        let larder = try Larder.replaying(recording.path)
        #expect(try larder.get("/x").text == "/x")
        #expect(larder.log.contains("this recording was not completed, and may lack exchanges"))
        #expect(origin.count() == asked)
        let again = ["run", recording.path] + options + ["--", "sh", "-c", #"curl -s "$LARDER_URL/y""#]
        #expect(try Larder.run(again).output == "/y")
        #expect(origin.count() == asked + 1)
        #expect(recording.lines.count == 1 && recording.files[".larder-new/exchanges.jsonl"] == nil)
    }

    @Test func `names in a recording cannot alter the terminal`() throws {
        let origin = try Origin { _ in .json("{}") }
        let (one, two) = (RecordedFolder(), RecordedFolder())
        for recording in [one, two] { try recording.record(origin) { _ = try $0.get("/x") } }
        let odd = one.lines[0].replacingOccurrences(of: #""/x""#, with: "\"/\u{202E}\u{200B}x\"")
        try one.write(odd + "\n", to: "exchanges.jsonl")
        let result = try Larder.run(["diff", one.path, two.path])
        #expect(result.output.contains(#"GET /\u{202e}\u{200b}x"#), "\(result.output)")
        #expect(!result.output.contains("\u{202E}"))
    }
}
