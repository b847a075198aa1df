import Foundation
import TestSupport
import Testing

/// `larder record`: what is written down, and when.
@Suite(.scripts) struct RecordTests {
    @Test func `every request goes to the upstream, and each exchange becomes a line and its bodies`() throws {
        let origin = try Origin { request in
            request.method == "POST"
                ? .json(#"{"id":7}"#, ["Location": "/things/7"], status: 201)
                : .json(#"{"n": 1.0, "u": "\u00e9"}"#, Fresh.hour + ["ETag": #""a""#])
        }
        let recording = RecordedFolder()
        let log = try recording.record(origin) { (larder: Larder) throws -> Void in
            #expect(try larder.get("/things?page=2").text == #"{"n": 1.0, "u": "\u00e9"}"#)
            #expect(try !larder.get("/things?page=2").isHit)
            #expect(
                try larder.request("POST", "/things", ["Content-Type": "application/json"], body: "{}").status == 201
            )
        }
        #expect(origin.count() == 3)
        #expect(log.contains("recorded 3 exchanges in \(recording.path)"))
        #expect(recording.lines.count == 3)
        #expect(recording.lines[0].contains(#""target":"/things?page=2""#))
        #expect(recording.lines[2].contains(#""body":"bodies/000003.request.json""#))
        #expect(recording.files["bodies/000001.json"] == Array(#"{"n": 1.0, "u": "\u00e9"}"#.utf8))
        #expect(recording.files["bodies/000003.request.json"] == Array("{}".utf8))
        #expect(recording.files[".gitattributes"] == Array("bodies/* -text\n".utf8))
        // None of Larder's own additions is in it.
        for word in ["Via", "Cache-Status", "Age:", "Larder-"] { #expect(!recording.lines[0].contains(word)) }
        let modes = try ["", "/exchanges.jsonl", "/bodies", "/bodies/000001.json"].map {
            try FileManager.default.attributesOfItem(atPath: recording.path + $0)[.posixPermissions] as? Int
        }
        #expect(modes == [0o700, 0o600, 0o700, 0o600])
    }

    @Test func `while recording, conditions and ranges are left to the upstream`() throws {
        let origin = try Origin { request in
            request["If-None-Match"] != nil
                ? .notModified(["ETag": #""a""#]) : .json("{}", Fresh.hour + ["ETag": #""a""#])
        }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            #expect(try larder.get("/x").status == 200)
            #expect(try larder.get("/x", ["If-None-Match": #""a""#]).status == 304)
        }
        #expect(origin.count() == 2)
        let replay = try Larder.replaying(recording.path)
        #expect(try replay.get("/x", ["If-None-Match": #""a""#]).status == 304)
        #expect(try replay.get("/x").status == 200)
    }

    @Test func `exchanges can be added to a recording, and a second recorder is refused`() throws {
        let origin = try Origin { .text($0.target, Fresh.hour) }
        let recording = RecordedFolder()
        try recording.record(origin) { _ = try $0.get("/one") }
        try recording.record(origin) { (larder: Larder) throws -> Void in
            _ = try larder.get("/two")
            let other = try Larder.run([
                "record", recording.path, "--upstream", origin.url, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
            ])
            #expect(other.end == .exited(1))
            #expect(other.errors.contains("another process is recording into this folder"))
        }
        #expect(recording.lines.count == 2)
        #expect(recording.files["bodies/000002.bin"] == Array("/two".utf8))
    }

    @Test func `a recording without exchanges, or of a recorder that cannot listen, leaves no files`() throws {
        let origin = try Origin { .text($0.target) }
        let recording = RecordedFolder()
        let log = try recording.record(origin) { _ in }
        #expect(log.contains("nothing was recorded, so there is no recording"))
        #expect(!FileManager.default.fileExists(atPath: recording.path))
        let address = origin.url.replacing("http://", with: "")
        let taken = ["--upstream", origin.url, "--listen", "127.0.0.1:0", "--admin", address]
        #expect(try Larder.run(["record", recording.path] + taken).end == .exited(1))
        #expect(!FileManager.default.fileExists(atPath: recording.path))
    }

    @Test func `after kill -9 the recording is whole up to its last line, and can be continued`() throws {
        let origin = try Origin { .text($0.target, Fresh.hour) }
        let recording = RecordedFolder()
        let larder = try Larder.recording(origin, into: recording.path)
        for number in 0..<5 { _ = try larder.get("/\(number)") }
        #expect(eventually { recording.lines.count >= 3 })
        larder.kill()
        let count = recording.lines.count
        // As if it had been at a line.
        let file = try #require(FileHandle(forWritingAtPath: "\(recording.path)/exchanges.jsonl"))
        file.seekToEndOfFile()
        file.write(Data(#"{"request":{"met"#.utf8))
        try file.close()
        let replay = try Larder.replaying(recording.path)
        #expect(replay.log.contains("the last line is cut short"))
        #expect(try replay.get("/0").text == "/0")
        try recording.record(origin) { _ = try $0.get("/later") }
        #expect(recording.lines.count == count + 1)
        #expect(try Larder.replaying(recording.path).get("/later").text == "/later")
    }

    @Test func `a response that breaks off reaches its client truncated, and is not recorded`() throws {
        let origin = try Origin { request in
            request.path == "/whole"
                ? .text("whole") : .raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", thenReset: true)
        }
        let recording = RecordedFolder()
        let log = try recording.record(origin) { (larder: Larder) throws -> Void in
            _ = try? larder.get("/broken")
            #expect(try larder.get("/whole").text == "whole")
        }
        #expect(recording.lines.count == 1)
        #expect(log.contains("not recorded: 1 that broke off"))
    }

    @Test func `a response whose client leaves after its head is recorded to its end`() throws {
        let gate = Gate()
        let origin = try Origin { _ in .json(#"{"message":"none"}"#, status: 404).split(before: 5, by: gate) }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            let client = try larder.client()
            try client.socket.send(Array("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            #expect(origin.waitForRequests(1))
            pause(.milliseconds(100))
            client.socket.shutDown()
            pause(.milliseconds(100))
            gate.open()
            #expect(eventually { recording.lines.count == 1 })
        }
        #expect(recording.files["bodies/000001.indented.json"] == Array("{\n  \"message\": \"none\"\n}\n".utf8))
    }

    @Test func `a config's routes and models are written into the recording, and its secrets are not`() throws {
        let origin = try Origin { _ in .json(#"{"id":1,"login":"ada"}"#, Fresh.hour) }
        let folder = TemporaryFolder()
        let file = try folder.write("hidden-credential", to: "credential")
        let config = """
            upstreams:
              api:
                url: \(origin.url)
                credential: { header: X-Api-Key, from: "\(file)" }
            models: { User: { identity: id, properties: { login: login } } }
            routes: [{ path: "users/{id:#}", model: User, fresh: 1h }]
            """
        let recording = RecordedFolder()
        try recording.record(origin, config: config) { _ = try $0.get("/users/1") }
        #expect(origin.requests.first?["X-Api-Key"] == "hidden-credential")
        for (name, bytes) in recording.files {
            #expect(!bytes.contains("hidden-credential"), "\(name)")
            #expect(!bytes.contains(folder.path), "\(name)")
        }
        let replay = try Larder.replaying(recording.path)
        #expect(try replay.waitForObjects(1, of: "User"))
        #expect(try replay.get("/users/1", ["Larder-View": "mapped"]).object["login"] as? String == "ada")
    }

    @Test(.enabled(if: SmallDisk.isPossible, "file systems cannot be mounted here"))
    func `a full disk ends the recording, not the clients`() throws {
        let disk = try SmallDisk(megabytes: 1)
        let origin = try Origin { _ in .text(String(repeating: "x", count: 100_000)) }
        let path = disk.folder.file("recording")
        let larder = try Larder(
            arguments: ["--upstream", origin.url],
            folder: disk.outside,
            startedBy: disk.entrance,
            verb: ["record", path]
        )
        for number in 0..<20 { #expect(try larder.get("/\(number)").body.count == 100_000) }
        #expect(larder.terminate() == .exited(1))
        #expect(larder.log.contains("recording ended early") && larder.log.contains("No space left on device"))
        let script = "\(Larder.binary) run \(path) -- sh -c 'curl -s $LARDER_URL/3 | wc -c'"
        let output = try TestProcess.run(disk.entrance[0], Array(disk.entrance.dropFirst()) + ["sh", "-c", script])
        #expect(output.contains("100000"))
    }
}
