import TestSupport
import Testing

/// `larder status`, and the mode, which is a part of it.
@Suite(.scripts) struct StatusTests {
    @Test func `the status shows addresses, upstreams, hits and bounds, and that nothing needs attention`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(
            config: "upstreams: { api: { url: '\(origin.url)' } }\nmemory: { maximum_size: 32MiB }\n"
        )
        for _ in 1...4 { _ = try larder.get("/x") }
        #expect(try larder.waitForDocuments(1))
        let command = try larder.command("status")
        #expect(command.end == .exited(0), "\(command.errors)")
        for text in [
            ", auto\n", "config       \(larder.folder.file("larder.yaml"))\n",
            "listen       127.0.0.1:\(larder.port)\n",
            "admin        127.0.0.1:\(larder.adminPort)\n", "4 requests, 75.0 % hits, 0 errors", " of 1.0 GiB, ",
            " of 32.0 MiB, 1 response", "nothing needs attention",
        ] { #expect(command.output.contains(text), "\(text) is not in \(command.output)") }
        #expect(command.output.contains("api       reachable         1         0"))
        let status = try larder.admin("GET", "/status").object
        #expect(status["ok"] as? Bool == true)
        #expect((status["since_start"] as? [String: Any])?["hit_ratio"] as? Double == 0.75)
        #expect((status["memory"] as? [String: Any])?["maximum"] as? Int == 32 << 20)
    }

    @Test func `status fails if an upstream cannot be reached, also with --json`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin)
        origin.stop()
        _ = try larder.get("/x")
        let shown = try larder.command("status")
        #expect(shown.end == .exited(1))
        #expect(shown.output.contains("! upstream upstream cannot be reached since "))
        let json = try larder.command("status", "--json")
        #expect(json.end == .exited(1))
        #expect(json.output.contains(#""ok":false"#))
    }

    @Test func `status fails until the whole config is in force`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let upstreams = "upstreams: { api: { url: '\(origin.url)' } }\n"
        let larder = try Larder(config: upstreams)
        try larder.folder.write("prefx: 1\n" + upstreams, to: "larder.yaml")
        #expect(try larder.admin("POST", "/reload").status == 422)
        let broken = try larder.command("status")
        #expect(broken.end == .exited(1))
        #expect(broken.output.contains("larder.yaml:1:1: error: unknown key \"prefx\""))
        try larder.folder.write("workers: 3\n" + upstreams, to: "larder.yaml")
        #expect(try larder.admin("POST", "/reload").status == 200)
        let partly = try larder.command("status")
        #expect(partly.end == .exited(1))
        #expect(partly.output.contains("! a restart is needed for these keys of the config: workers"))
        try larder.restart()
        #expect(try larder.command("status").end == .exited(0))
    }

    @Test func `commands find a running daemon even if its config has become broken`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        // The daemon was started with another address than this one.
        let larder = try Larder(
            config: "admin: 127.0.0.1:\(try Socket.freePort())\nupstreams: { api: { url: '\(origin.url)' } }\n"
        )
        let path = larder.folder.file("larder.yaml")
        func run(_ command: String, config: String) throws -> TestProcess {
            let process = try TestProcess(
                Larder.binary,
                [command, "--config", config, "--store", larder.folder.file("larder.db")],
                environment: Larder.environment
            )
            #expect(process.waitForEnd() != nil)
            return process
        }
        #expect(try run("status", config: path).end == .exited(0))
        try larder.folder.write("upstreams: { api: [\n", to: "larder.yaml")
        let reload = try run("reload", config: path)
        #expect(reload.end == .exited(78) && reload.errors.contains("\(path):"), "\(reload.errors)")
        let status = try run("status", config: path)
        #expect(status.end == .exited(1), "\(status.errors)")
        #expect(status.output.contains("! the config could not be reloaded at "), "\(status.output)")
        #expect(status.output.contains("the former one is in force: \(path):"), "\(status.output)")
        // A daemon with another config is another daemon.
        let other = try larder.folder.write("upstreams: { api: [\n", to: "other.yaml")
        #expect(try run("status", config: other).end == .exited(78))
    }

    @Test func `after many requests without a hit, status says what would make hits`() throws {
        let origin = try Origin { request in
            .json("[]", request.path == "/said" ? ["Cache-Control": "max-age=0"] : [:])
        }
        for (path, advice) in [
            ("/said", "- few requests are hits; `larder explain URL` says why"),
            ("/unsaid", "of the latest would have been: upstreams: { api: { fresh_unsaid: 60s } }"),
        ] {
            let larder = try Larder(config: Configs.plain(origin))
            #expect(try !larder.command("status").output.contains("few requests"))
            for _ in 0..<25 {
                _ = try larder.get(path)
                #expect(try larder.waitForQuiet())
            }
            let status = try larder.command("status")
            #expect(status.end == .exited(0) && status.output.contains(advice), "\(status.output)")
        }
    }

    @Test(arguments: [
        "upstreams: { api: [", "admin: { listen: 127.0.0.1:1 }\nupstreams: { api: { url: http://a.example } }",
    ])
    func `a config that does not say where the daemon is gets the place of its mistake`(text: String) throws {
        let folder = TemporaryFolder()
        let path = try folder.write(text + "\n", to: "larder.yaml")
        for command in [["status"], ["tail"], ["reload"], ["sql", "select 1"]] {
            let process = try TestProcess(
                Larder.binary,
                command + ["--config", path],
                environment: Larder.environment
            )
            #expect(process.waitForEnd() == .exited(78), "\(command): \(process.errors)")
            #expect(process.errors.contains("\(path):"), "\(process.errors)")
        }
    }

    @Test func `a mode that is set survives a restart, until the config says another one`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let upstreams = "upstreams: { api: { url: '\(origin.url)' } }\n"
        let larder = try Larder(config: upstreams)
        #expect(try larder.command("mode", "offline").end == .exited(0))
        for isKilled in [false, true] {
            if isKilled { larder.kill() } else { larder.terminate() }
            try larder.start()
            #expect(try larder.command("mode").output == "offline\n")
            #expect(larder.log.contains("the mode is offline, as it was set before the restart"))
        }
        let status = try larder.command("status")
        #expect(status.end == .exited(0))
        #expect(status.output.contains("- the mode is offline, as it was set at run time; the config says auto"))
        // A reload that leaves the key alone leaves the mode alone.
        try larder.folder.write("slow_requests: 1s\n" + upstreams, to: "larder.yaml")
        #expect(try larder.command("reload").end == .exited(0))
        #expect(try larder.command("mode").output == "offline\n")
        try larder.folder.write("mode: offline\n" + upstreams, to: "larder.yaml")
        #expect(try larder.command("reload").end == .exited(0))
        try larder.folder.write("mode: online\n" + upstreams, to: "larder.yaml")
        #expect(try larder.command("reload").end == .exited(0))
        #expect(try larder.command("mode").output == "online\n")
        try larder.restart()
        #expect(try larder.command("mode").output == "online\n")
    }

    @Test func `a daemon that is started in a mode begins in it`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin, store: TemporaryFolder(), "--mode", "offline")
        #expect(try larder.admin("PUT", "/mode?mode=online").status == 200)
        try larder.restart()
        #expect(try larder.command("mode").output == "offline\n")
    }
}
