import Foundation
import TestSupport
import Testing

/// `larder recording`: recordings of a daemon that runs anyway.
@Suite(.scripts) struct RecordingsTests {
    @Test func `a running daemon records what its clients receive, hits too, and goes on afterwards`() throws {
        let origin = try Origin { .json("\"\($0.target)\"", Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/before")
        #expect(try larder.command("recording", "start", "monday").output.contains("recording monday"))
        #expect(try larder.get("/before").isHit)
        _ = try larder.get("/new")
        _ = try larder.get("/new")
        #expect(try larder.command("recording", "list").output == "monday  running, 3 so far\n")
        let folder = TemporaryFolder()
        let running = try larder.command("recording", "get", "monday", folder.file("running")).output
        #expect(running == "copied monday to \(folder.file("running")); it is still running, 3 exchanges so far\n")
        #expect(try Larder.replaying(folder.file("running")).get("/new").status == 200)
        #expect(try larder.command("recording", "stop", "monday").output == "recorded 3 exchanges as monday\n")
        _ = try larder.get("/after")
        #expect(origin.count() == 3)

        let copy = TemporaryFolder().path + "-copy"
        #expect(try larder.command("recording", "get", "monday", copy).end == .exited(0))
        defer { try? FileManager.default.removeItem(atPath: copy) }
        let replay = try Larder.replaying(copy)
        #expect(try replay.get("/before").text == "\"/before\"")
        #expect(try replay.get("/new").status == 200)
        #expect(try replay.get("/after").status == 504)
    }

    @Test func `with a session only its requests are recorded, and its field is not sent upstream`() throws {
        let origin = try Origin { .text($0.target, Fresh.hour) }
        let larder = try Larder(origin)
        #expect(try larder.command("recording", "start", "a", "--session", "one").end == .exited(0))
        _ = try larder.get("/x", ["Larder-Session": "one"])
        _ = try larder.get("/y", ["Larder-Session": "two"])
        _ = try larder.get("/z")
        #expect(origin.requests.allSatisfy { $0["Larder-Session"] == nil })
        #expect(try larder.command("recording", "stop", "a").output == "recorded 1 exchange as a\n")
        #expect(try larder.command("recording", "stop", "a").errors.contains("a: this recording is not running"))
    }

    @Test(arguments: [
        (["start", "../x"], "this is not a name"), (["stop", "x"], "there is no such recording"),
        (["get", "x", "/nonexistent/y"], "there is no such recording"),
    ])
    func `a recording command that cannot be carried out is refused with the reason`(
        arguments: [String],
        message: String
    ) throws {
        let larder = try Larder(try Origin { _ in .text("") })
        let process = try TestProcess(
            Larder.binary,
            ["recording"] + arguments
                + ["--admin", "127.0.0.1:\(larder.adminPort)", "--store", larder.folder.file("larder.db")],
            environment: Larder.environment
        )
        #expect(process.waitForEnd() == .exited(1))
        #expect(process.errors.contains(message), "\(process.errors)")
    }

    @Test func `a recording that runs when the daemon stops is complete`() throws {
        let origin = try Origin { .text($0.target) }
        let larder = try Larder(origin)
        _ = try larder.command("recording", "start", "x")
        _ = try larder.get("/1")
        larder.terminate()
        #expect(try Larder.replaying(larder.folder.file("recordings/x")).get("/1").text == "/1")
    }
}
