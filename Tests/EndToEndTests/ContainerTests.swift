import Foundation
import TestSupport
import Testing

/// What a daemon in a container needs, tried without one; `make test-image` has the image itself.
@Suite(.scripts) struct ContainerTests {
    @Test func `the admin side accepts the token of its environment beside the stored one`() throws {
        let given = "0123456789abcdef-0123"
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(
            arguments: ["--upstream", origin.url],
            folder: TemporaryFolder(),
            environment: ["LARDER_ADMIN_TOKEN": given]
        )
        let own = try #require(larder.token)
        for (token, status) in [(given, 200), (own, 200), (given + "4", 401), ("", 401)] {
            #expect(try larder.admin("GET", "/count", ["Authorization": "Bearer \(token)"]).status == status)
        }
        #expect(own != given)
    }

    @Test func `an admin token that is too short keeps the daemon from starting`() throws {
        let daemon = try TestProcess(
            Larder.binary,
            ["serve", "--upstream", "http://127.0.0.1:9", "--store", TemporaryFolder().file("larder.db")],
            environment: Larder.environment.merging(["LARDER_ADMIN_TOKEN": "short"]) { $1 }
        )
        #expect(daemon.waitForEnd() == .exited(1))
        #expect(daemon.errors.contains("larder: LARDER_ADMIN_TOKEN must have 16 to 512 characters"), "\(daemon.errors)")
    }

    @Test func `readiness needs no token and no upstream, and ends with the daemon`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin)
        origin.stop()
        _ = try larder.get("/x")
        #expect(try larder.command("status").end == .exited(1))
        let arguments = ["status", "--ready", "--admin", "127.0.0.1:\(larder.adminPort)"]
        let ready = try Larder.run(arguments)
        #expect(ready.end == .exited(0) && ready.output == "ready\n", "\(ready.errors)")
        #expect(try Larder.run(arguments + ["--json"]).output.contains(#""status":"ready""#))
        larder.terminate()
        let gone = try Larder.run(arguments)
        #expect(gone.end == .exited(1) && gone.errors.contains("nothing listens on"), "\(gone.errors)")
    }

    @Test(.enabled(if: geteuid() == 0, "it takes root to be two users"))
    func `a folder that belongs to another user is named, with both users and the remedy`() throws {
        let folder = TemporaryFolder()
        chmod(folder.path, 0o755)
        let daemon = try TestProcess(
            "setpriv",
            [
                "--reuid", "12345", "--regid", "54321", "--clear-groups", Larder.binary, "serve", "--upstream",
                "http://127.0.0.1:9", "--store", folder.file("larder.db"),
            ],
            environment: Larder.environment
        )
        #expect(daemon.waitForEnd() == .exited(1))
        #expect(
            daemon.errors.contains(
                "\(folder.path) belongs to the user 0, and Larder runs as the user 12345 in the group 54321; "
                    + "run it as that user, or give the folder to this one: chown -R 12345 '\(folder.path)'"
            ),
            "\(daemon.errors)"
        )
    }

    @Test func `names in LARDER_HOSTS are accepted as Host`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(
            arguments: ["--upstream", origin.url],
            folder: TemporaryFolder(),
            environment: ["LARDER_HOSTS": "larder, cache.internal:80"]
        )
        for (host, status) in [("larder:\(larder.port)", 200), ("cache.internal", 200), ("other:\(larder.port)", 421)] {
            #expect(try larder.get("/x", ["Host": host]).status == status, "\(host)")
        }
    }
}
