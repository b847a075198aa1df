import Foundation
import TestSupport
import Testing

/// A config that is read again while the daemon serves.
@Suite(.scripts) struct ReloadTests {
    /// Writes the daemon's config anew.
    private func write(_ config: String, of larder: Larder) throws {
        try larder.folder.write(config, to: "larder.yaml")
    }

    private func reload(_ larder: Larder) throws -> Response { try larder.admin("POST", "/reload") }

    /// The keys that a reload names, and those that need a restart.
    private func keys(_ response: Response) -> (all: [String], restart: [String]) {
        let changes = response.object["changes"] as? [[String: Any]] ?? []
        return (changes.compactMap { $0["key"] as? String }, response.object["needs_restart"] as? [String] ?? [])
    }

    @Test func `a reload changes routes without interrupting requests and streams under way`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            if request.path == "/slow" { gate.wait() }
            return .json(#"{"path":"\#(request.path)"}"#)
        }
        func config(_ route: String) -> String {
            "upstreams: { api: { url: '\(origin.url)' } }\nroutes: [{ path: '**', \(route) }]\n"
        }
        let larder = try Larder(config: config("cache: never"))
        let kept = try larder.client()
        #expect(try kept.get("/x").isHit == false)
        let slow = Background { try larder.get("/slow") }
        #expect(eventually { origin.requests.contains { $0.path == "/slow" } })
        let stream = try Follower(larder, "/x")
        #expect(stream.wait(for: 1))

        try write(config("fresh: 1h"), of: larder)
        let response = try reload(larder)
        #expect(response.status == 200)
        #expect(keys(response).all == ["upstreams.api.routes.**"])
        // The same connection gets the new rules.
        _ = try kept.get("/x")
        #expect(try kept.get("/x").isHit)
        gate.open()
        #expect(try slow.value().text == #"{"path":"/slow"}"#)
        #expect(!stream.state.current.isOver)
        #expect(larder.process.waitForErrors { $0.contains("the config is reloaded changed=upstreams.api.routes.**") })
    }

    @Test func `clients under load get every response while models, routes and limits change`() throws {
        let origin = try Origin { .json(#"{"id":\#($0.path.dropFirst(3)),"name":"x"}"#) }
        func config(_ round: Int) -> String {
            """
            upstreams: { api: { url: '\(origin.url)' } }
            models: { User: { identity: id, properties: { called\(round % 3): name } } }
            routes: [{ path: "u/{id}", model: User, fresh: \(round % 2)s }]
            limits: { head: \(8 + round)KiB }
            memory: { maximum_size: \(1 + round % 2)MiB }
            """
        }
        let larder = try Larder(config: config(0))
        let isOver = Gate()
        let clients = (0..<4).map { number in
            Background {
                let client = try larder.client()
                var wrong: [String] = []
                var count = 0
                while count < 100 || !isOver.isOpenNow {
                    let id = (count * 7 + number) % 20
                    let response = try client.get("/u/\(id)")
                    if response.text != #"{"id":\#(id),"name":"x"}"# {
                        wrong.append("\(response.status) \(response.text)")
                    }
                    count += 1
                }
                return wrong
            }
        }
        for round in 1...12 {
            try write(config(round), of: larder)
            #expect(try reload(larder).status == 200)
        }
        isOver.open()
        for client in clients { #expect(try client.value() == []) }
        #expect(try eventually { try larder.sql("SELECT count(*) FROM User WHERE called0 = 'x'") == ["20"] })
    }

    @Test func `a config with mistakes changes nothing, and each mistake is reported with its place`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(config: "upstreams: { api: { url: '\(origin.url)' } }\n")
        _ = try larder.get("/x")
        let path = larder.folder.file("larder.yaml")
        try write("upstreams:\n  api:\n    url: '\(origin.url)'\n    prefx: /a\nmode: offlin\n", of: larder)

        let response = try reload(larder)
        #expect(response.status == 422)
        let errors = try #require(response.object["errors"] as? [String])
        #expect(errors.count == 2)
        #expect(errors[0].hasPrefix("\(path):4:5: error: upstreams.api: unknown key \"prefx\""))
        #expect(errors[1].hasPrefix("\(path):5:7: error: mode: "))

        let command = try larder.command("reload")
        #expect(command.end == .exited(78))
        #expect(command.errors.contains("larder.yaml:4:5: error: upstreams.api: unknown key \"prefx\""))

        larder.process.signal(SIGHUP)
        #expect(larder.process.waitForErrors { $0.components(separatedBy: ":4:5: error:").count > 3 })
        #expect(try larder.get("/x").isHit)
        // Once it is mended, it is taken.
        try write("upstreams: { api: { url: '\(origin.url)', prefix: /a } }\n", of: larder)
        larder.process.signal(SIGHUP)
        #expect(try eventually { try larder.get("/x").status == 404 })
        #expect(try larder.get("/a/x").status == 200)
    }

    @Test func `addresses can be added and removed, also that of the admin side`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let folder = TemporaryFolder()
        let ports = try (1...3).map { _ in try Socket.freePort() }
        func config(_ listen: String, admin: UInt16) -> String {
            "listen: [\(listen)]\nadmin: 127.0.0.1:\(admin)\nupstreams: { api: { url: '\(origin.url)' } }\n"
        }
        let larder = try Larder(
            arguments: [
                "--config", try folder.write(config("'127.0.0.1:\(ports[0])'", admin: ports[1]), to: "larder.yaml"),
            ],
            folder: folder,
            addresses: []
        )
        let kept = try larder.client()
        _ = try kept.get("/x")
        try write(config("'unix:\(folder.file("api.sock"))', '0.0.0.0:\(ports[0])'", admin: ports[2]), of: larder)
        // The config names the new address, at which nothing listens yet.
        let command = try TestProcess(
            Larder.binary,
            ["reload", "--config", folder.file("larder.yaml"), "--store", folder.file("larder.db")],
            environment: Larder.environment
        )
        #expect(command.waitForEnd() == .exited(0), "\(command.errors)")
        #expect(command.output.contains("listen"))
        #expect(try Client(.unix(folder.file("api.sock"))).get("/x").isHit)
        #expect(try Client(port: ports[2]).get("/healthz").status == 200)
        // Another program may have the free port by now; it has another token.
        let token = try String(contentsOfFile: folder.file("admin.token"), encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        let known: FieldLines = ["Authorization": "Bearer \(token)"]
        #expect(try Client(port: ports[2]).get("/count", known).status == 200)
        #expect(eventually { (try? Client(port: ports[1]).get("/count", known).status) != 200 })
        #expect(try Client(port: ports[0]).get("/x").isHit)
        #expect(origin.requests.count == 1)
    }

    @Test func `if an address cannot be listened on, nothing changes`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(config: "upstreams: { api: { url: '\(origin.url)' } }\n")
        let other = "b: { url: '\(origin.url)', listen: '127.0.0.1:\(origin.port)' }"
        try write("upstreams: { api: { url: '\(origin.url)' }, \(other) }\n", of: larder)
        let response = try reload(larder)
        #expect(response.status == 409)
        #expect(response.text.contains("cannot listen on 127.0.0.1:\(origin.port)"))
        #expect(try larder.admin("GET", "/upstreams").text.contains(#""name":"b""#) == false)
    }

    @Test func `objects of a changed model are migrated while the daemon serves`() throws {
        let origin = try Origin { _ in .json(#"{"id":1,"name":"Ada"}"#, Fresh.hour) }
        func config(_ rest: String) -> String {
            """
            upstreams: { api: { url: '\(origin.url)' } }
            models: { User: { identity: id, \(rest) } }
            routes: [{ path: "users/{id}", model: User }]

            """
        }
        let larder = try Larder(config: config("properties: { called: name }"))
        _ = try larder.get("/users/1")
        #expect(try larder.waitForObjects(1, of: "User"))
        #expect(try larder.sql("SELECT called FROM User") == ["Ada"])
        try write(
            config(
                "properties: { called: full_name }, version: 1, migrations: [{ to: 1, rename: { name: full_name } }]"
            ),
            of: larder
        )
        let response = try reload(larder)
        #expect(response.status == 200)
        #expect(keys(response).all == ["upstreams.api.models.User"])
        #expect(try eventually { try larder.sql("SELECT called FROM User") == ["Ada"] })
        #expect(try larder.get("/users/1", ["Larder-View": "mapped"]).text == #"{"id":1,"called":"Ada"}"#)
        #expect(try larder.get("/users/1").text == #"{"id":1,"name":"Ada"}"#)
        #expect(origin.requests.count == 1)
        #expect(larder.process.waitForErrors { $0.contains("were stored at version 0") })
    }

    @Test func `settings that need a restart are named, and the others apply: levels, limits, logs`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let upstream = "upstreams: { api: { url: '\(origin.url)' } }\n"
        let larder = try Larder(config: upstream)
        let log = larder.folder.file("access.log")
        try write(
            "workers: 3\nlog: { level: debug }\nlimits: { target: 300B }\naccess_log: { file: \(log) }\n" + upstream,
            of: larder
        )
        let response = try reload(larder)
        #expect(keys(response).all == ["workers", "limits.target", "log.level", "access_log.file"])
        #expect(keys(response).restart == ["workers"])
        #expect(larder.process.waitForErrors { $0.contains("keys=workers") })
        let long = "/" + String(repeating: "x", count: 400)
        #expect(try eventually { try larder.get(long).status == 414 })
        _ = try larder.get("/seen")
        #expect(eventually { String(decoding: larder.folder.bytes("access.log"), as: UTF8.self).contains("/seen") })
        #expect(larder.process.waitForErrors { $0.contains(" debug ") })
        // The store's file and the workers are those of the start; so a second reload names them again.
        #expect(keys(try reload(larder)).all == ["workers"])
    }

    @Test func `check with --diff says what a reload would change, and changes nothing`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(config: "upstreams: { api: { url: '\(origin.url)' } }\n")
        try write("upstreams: { api: { url: '\(origin.url)', heuristic: 5s } }\nworkers: 3\n", of: larder)
        let path = larder.folder.file("larder.yaml")
        func check(_ arguments: String...) throws -> TestProcess {
            let process = try TestProcess(
                Larder.binary,
                ["check", "--diff"] + arguments,
                environment: Larder.environment.merging([
                    "LARDER_ADMIN": "127.0.0.1:\(larder.adminPort)", "LARDER_ADMIN_TOKEN": larder.token ?? "",
                ]) { $1 }
            )
            #expect(process.waitForEnd() != nil)
            return process
        }
        let shown = try check(path)
        #expect(shown.end == .exited(0), "\(shown.errors)")
        #expect(shown.output.contains("upstreams.api.heuristic"))
        #expect(shown.output.contains("→ 5s"))
        #expect(shown.output.contains("needs a restart:\nchanged  workers"))
        #expect(try check(path, "--json").output.contains(#""dry_run":true"#))
        // The daemon tries what a reload would need.
        func listening(at port: UInt16) -> String {
            "upstreams: { api: { url: '\(origin.url)' }, b: { url: '\(origin.url)', listen: 127.0.0.1:\(port) } }\n"
        }
        try write(listening(at: origin.port), of: larder)
        let taken = try check()
        #expect(taken.end == .exited(1) && taken.errors.contains("127.0.0.1:\(origin.port)"), "\(taken.errors)")
        let free = try Socket.freePort()
        try write(listening(at: free), of: larder)
        #expect(try check().end == .exited(0))
        #expect(try larder.get("/x").status == 200)
        try write("upstreams: { api: { url: '\(origin.url)', heuristic: 5s } }\nworkers: 3\n", of: larder)
        let other = try check(try larder.folder.write("", to: "other.yaml"))
        #expect(other.end == .exited(1))
        #expect(other.errors.contains("the daemon reads its config from"))
        #expect(keys(try larder.admin("POST", "/reload?dry_run=true")).all == ["workers", "upstreams.api.heuristic"])
        try write("upstreams: {\n", of: larder)
        #expect(try check().end == .exited(78))
    }

    @Test func `a daemon that records refuses to reload its config`() throws {
        let origin = try Origin { _ in .json("[]") }
        let folder = TemporaryFolder()
        let larder = try Larder(
            arguments: [folder.file("recording"), "--upstream", origin.url],
            folder: folder,
            verb: ["record"]
        )
        let response = try reload(larder)
        #expect(response.status == 409)
        #expect(response.text.contains("a recording has the config that it began with"))
        larder.process.signal(SIGHUP)
        #expect(larder.process.waitForErrors { $0.contains("signal ignored: a recording has the config") })
    }

    @Test func `systemd is told that a reload begins and ends`() throws {
        let folder = TemporaryFolder()
        let notify = try SystemdTests.NotifySocket(in: folder)
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(
            config: "upstreams: { api: { url: '\(origin.url)' } }\n",
            store: folder,
            environment: ["NOTIFY_SOCKET": notify.path]
        )
        #expect(notify.waitFor { $0 == "READY=1" })
        try write("upstreams: { other: { url: '\(origin.url)' } }\n", of: larder)
        larder.process.signal(SIGHUP)
        #expect(notify.waitFor { $0 == "RELOADING=1" })
        #expect(notify.waitFor { $0.hasPrefix("MONOTONIC_USEC=") })
        #expect(notify.waitFor { $0 == "STATUS=serving other" })
        #expect(notify.waitFor(count: 2) { $0 == "READY=1" })
    }
}
