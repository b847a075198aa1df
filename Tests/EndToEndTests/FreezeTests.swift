import Foundation
import TestSupport
import Testing

/// `larder freeze`: a recording of what is stored.
@Suite(.scripts) struct FreezeTests {
    private func freeze(_ larder: Larder, _ folder: String, _ more: String...) throws -> (
        end: TestProcess.End?, output: String, errors: String
    ) {
        try Larder.run(
            ["freeze", folder, "--admin", "127.0.0.1:\(larder.adminPort)", "--store", larder.folder.file("larder.db")]
                + more
        )
    }

    @Test func `a frozen store replays what clients would get now, in the order of arrival`() throws {
        let (_, larder) = try AdminTests.blog()
        let recording = RecordedFolder()
        #expect(try freeze(larder, recording.path).output == "recorded 2 exchanges in \(recording.path)\n")
        let (list, post) = (try larder.get("/users"), try larder.get("/posts/7"))
        larder.terminate()
        #expect(recording.lines.count == 2 && recording.lines[0].contains("/users"))
        #expect(!recording.lines.joined().contains("Content-Length"))
        #expect(try FileManager.default.attributesOfItem(atPath: recording.path)[.posixPermissions] as? Int == 0o700)
        let replay = try Larder.replaying(recording.path)
        #expect(try replay.get("/users").body == list.body)
        #expect(try replay.get("/posts/7").body == post.body)
        #expect(try replay.get("/posts/8").status == 504)
        #expect(try replay.waitForObjects(2, of: "User"))
    }

    @Test func `an object's newest values are frozen, not those that a list once had`() throws {
        let origin = try Origin([
            "/users": .json(#"[{"id":1,"login":"ada","name":"Ada"}]"#, Fresh.hour),
            "/users/1": .json(#"{"id":1,"login":"ada","name":"Countess"}"#, Fresh.hour),
        ])
        let (larder, recording) = (try Larder(config: Configs.blog(origin)), RecordedFolder())
        _ = try larder.get("/users")
        _ = try larder.get("/users/1")
        #expect(try freeze(larder, recording.path).output.hasPrefix("recorded 2 exchanges"))
        #expect(try Larder.replaying(recording.path).get("/users").text.contains("Countess"))
    }

    @Test func `freeze selects by model, route and age, and refuses an unknown model or route`() throws {
        let (_, larder) = try AdminTests.blog()
        let folder = TemporaryFolder()
        #expect(try freeze(larder, folder.file("a"), "--model", "Post").output.hasPrefix("recorded 1 exchange in"))
        #expect(try freeze(larder, folder.file("b"), "--model", "User").output.hasPrefix("recorded 2 exchanges"))
        #expect(try freeze(larder, folder.file("c"), "--route", "users").output.hasPrefix("recorded 1 exchange in"))
        #expect(try freeze(larder, folder.file("d"), "--max-age", "1d").output.hasPrefix("recorded 2 exchanges"))
        #expect(try freeze(larder, folder.file("e"), "--max-age", "0s").output.hasPrefix("recorded 0 exchanges"))
        for (arguments, words) in [
            (["--model", "Usr"], "did you mean User?"), (["--route", "nowhere"], "the config has no route nowhere"),
            (["--max-age", "soon"], "max_age"), (["--principal", "p-00000000"], "no principal has the label"),
        ] {
            let refusal = try freeze(larder, folder.file("f"), arguments[0], arguments[1])
            #expect(refusal.end == .exited(1) && refusal.errors.contains(words), "\(refusal.errors)")
        }
        #expect(!folder.names.contains("f"))
        // A recording without exchanges counts as none.
        #expect(try freeze(larder, folder.file("e")).output.hasPrefix("recorded 2 exchanges"))
        let again = try freeze(larder, folder.file("a"))
        #expect(again.end == .exited(1) && again.errors.contains("there is a recording already"))
        #expect(try larder.command("recording", "list").output == "there is no recording\n")
    }

    @Test func `freeze needs a principal if there are several, and writes no credential`() throws {
        let (secret, folder) = ("hunter2-of-bob", TemporaryFolder())
        let origin = try Origin { request in
            .json(#"{"id":1,"login":"ada","name":"\#(request["Authorization"] == nil ? "all" : "bob")"}"#, Fresh.hour)
        }
        let (larder, recording) = (try Larder(config: Configs.blog(origin)), RecordedFolder())
        _ = try larder.get("/users/1")
        let fields: FieldLines = ["Authorization": "Bearer \(secret)", "Accept": "application/vnd.v3+json"]
        _ = try larder.get("/users/1?access_token=\(secret)", fields)
        #expect(try larder.waitForDocuments(2))
        let refusal = try freeze(larder, folder.file("x"))
        #expect(refusal.end == .exited(1) && refusal.errors.contains("anonymous (1), p-"), "\(refusal.errors)")
        let label = try #require(refusal.errors.firstMatch(of: /p-[0-9a-f]{8}/)).output
        #expect(try freeze(larder, recording.path, "--principal", String(label)).end == .exited(0))
        for (name, bytes) in recording.files { #expect(!Data(bytes).contains(Data(secret.utf8)), "\(name)") }
        let replay = try Larder.replaying(recording.path)
        let token: FieldLines = ["Authorization": "Bearer other", "Accept": "application/vnd.v3+json"]
        #expect(try replay.get("/users/1?access_token=other", token).text.contains("bob"))
        #expect(try replay.get("/users/1?access_token=other", ["Authorization": "Bearer other"]).status == 504)
    }

    @Test func `a recording can be removed once it is stopped`() throws {
        let larder = try Larder(try Origin { .text($0.target) })
        _ = try larder.command("recording", "start", "x")
        #expect(try larder.command("recording", "remove", "x").errors.contains("stop it first"))
        _ = try larder.command("recording", "stop", "x")
        #expect(try larder.command("recording", "remove", "x").output == "removed x\n")
        #expect(try larder.command("recording", "remove", "x").errors.contains("there is no such recording"))
    }
}
