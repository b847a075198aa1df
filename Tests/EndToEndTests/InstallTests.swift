import Foundation
import TestSupport
import Testing

/// What `make install` puts where, apart from building it.
@Suite(.scripts) struct InstallTests {
    @Test func `an installed Larder is complete, finds its files and serves`() throws {
        let folder = TemporaryFolder()
        let (root, prefix) = (folder.file("root"), "/opt/larder")
        let script = try TestProcess(
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
            let check = try TestProcess(binary, ["check", "--preset", preset], environment: Larder.environment)
            #expect(check.waitForEnd() == .exited(0), "\(check.errors)")
        }
        let origin = try Origin { _ in .json(#"{"id":1,"login":"ann"}"#, Fresh.hour) }
        let daemon = try TestProcess(
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

    @Test func `the program allocates by jemalloc, with options of its own`() throws {
        // jemalloc prints them when the program ends.
        let run = try TestProcess(
            Larder.binary,
            ["--version"],
            environment: Larder.environment.merging(["MALLOC_CONF": "stats_print:true"]) { $1 }
        )
        #expect(run.waitForEnd() == .exited(0))
        for option in ["opt.narenas: 2\n", "opt.dirty_decay_ms: 1000 "] {
            #expect(run.errors.contains(option), "\(run.errors)")
        }
    }

    @Test func `binary, package and changelog have the same version`() throws {
        func first(_ pattern: Regex<(Substring, Substring)>, in file: String) throws -> String? {
            let text = try String(contentsOfFile: "\(Repository.root)/\(file)", encoding: .utf8)
            return text.firstMatch(of: pattern).map { String($0.1) }
        }
        let version = try Larder.run(["--version"]).output.trimmingCharacters(in: .newlines)
        #expect(try first(/^larder \(([^)]+)\)/, in: "debian/changelog") == version)
        #expect(try first(/\n## ([0-9.]+) - [0-9]{4}-[0-9]{2}-[0-9]{2}\n/, in: "CHANGELOG.md") == version)
    }

    @Test func `a missing or old toolchain gives one sentence that says what to do`() throws {
        let folder = TemporaryFolder()
        let old = try folder.write("#!/bin/sh\necho 'Swift version 5.9 (swift-5.9-RELEASE)'\n", to: "swift")
        try TestProcess.run("chmod", ["+x", old])
        for (swift, reason) in [("no-swift", "there is no \"no-swift\" in PATH"), (old, "is 5.9")] {
            let check = try TestProcess("\(Repository.root)/scripts/check-swift", [swift])
            #expect(check.waitForEnd() == .exited(1))
            #expect(check.errors.split(separator: "\n").count == 1 && check.errors.contains(reason), "\(check.errors)")
            #expect(check.errors.contains("https://www.swift.org/install"))
        }
    }

    @Test func `make run ends if its upstream cannot be reached`() throws {
        let folder = TemporaryFolder()
        let run = try TestProcess(
            "\(Repository.root)/scripts/run",
            [Larder.binary],
            environment: Larder.environment.merging([
                "UPSTREAM": "http://127.0.0.1:\(try Socket.freePort())", "STORE": folder.file("larder.db"),
                "LISTEN": "127.0.0.1:0", "ADMIN": "127.0.0.1:0",
            ]) { $1 }
        )
        #expect(run.waitForEnd() == .exited(1))
        #expect(run.errors.contains("cannot be reached. Check the address, the network and the proxy"), "\(run.errors)")
    }
}
