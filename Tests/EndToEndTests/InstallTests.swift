import Foundation
import TestSupport
import Testing

/// What `make install` puts where, apart from building it.
@Suite(.scripts) struct InstallTests {
    @Test func `what is installed is complete, finds its own files and serves`() throws {
        let folder = TemporaryFolder()
        let (root, prefix) = (folder.file("root"), "/opt/larder")
        let script = try ChildProcess(
            "\(Repository.root)/scripts/install-files",
            [
                Larder.binary, root, prefix, "\(prefix)/share/larder", "\(prefix)/lib/systemd/system",
                "\(prefix)/lib/sysusers.d",
            ],
            environment: Larder.environment
        )
        #expect(script.waitForEnd(.seconds(120)) == .exited(0), "\(script.errors)")
        let files = FileManager.default
        // All that it says it has put somewhere is there.
        for line in script.output.split(separator: "\n") where !line.hasSuffix("/config") {
            #expect(files.fileExists(atPath: String(line)), "\(line)")
        }
        // The documents' links lead somewhere.
        let documents = "\(root)\(prefix)/share/doc/larder"
        let link = try files.destinationOfSymbolicLink(atPath: "\(documents)/config")
        #expect(link == "\(prefix)/share/larder")
        let readme = try String(contentsOfFile: "\(documents)/README.md", encoding: .utf8)
        for match in readme.matches(of: /\]\(([a-z]+\/[^)#]+|[A-Z]+\.md)\)/) {
            let path = String(match.1)
            let place = path.hasPrefix("config/") ? "\(root)\(link)/\(path.dropFirst(7))" : "\(documents)/\(path)"
            #expect(files.fileExists(atPath: place), "\(path)")
        }
        // The units name what was installed.
        let unit = try String(contentsOfFile: "\(root)\(prefix)/lib/systemd/system/larder.service", encoding: .utf8)
        #expect(unit.contains("ExecStart=\(prefix)/bin/larder serve"))
        #expect(unit.contains("Documentation=file:\(prefix)/share/doc/larder/README.md"))
        // The binary finds the presets beside itself, from anywhere.
        let binary = "\(root)\(prefix)/bin/larder"
        for preset in ["github", "gitlab", "mastodon", "stripe"] {
            let check = try ChildProcess(binary, ["check", "--preset", preset], environment: Larder.environment)
            #expect(check.waitForEnd() == .exited(0), "\(check.errors)")
        }
        let origin = try Origin { _ in .json(#"{"id":1,"login":"ann"}"#, Fresh.hour) }
        let daemon = try ChildProcess(
            binary,
            [
                "serve", "--preset", "github", "--upstream", origin.url, "--store", folder.file("larder.db"),
                "--listen",
                "127.0.0.1:0", "--admin", "127.0.0.1:0",
            ],
            environment: Larder.environment
        )
        defer { daemon.signal(SIGKILL) }
        #expect(daemon.waitForErrors(.seconds(60)) { $0.contains("listening on http://") }, "\(daemon.errors)")
        let address = daemon.errors.firstMatch(of: /listening on http:\/\/127\.0\.0\.1:([0-9]+)/)
        let port = try #require(address.flatMap { UInt16($0.1) })
        let answer = try Client(port: port).get("/users/ann")
        #expect(answer.status == 200 && answer.text.contains("ann"))
    }
}
