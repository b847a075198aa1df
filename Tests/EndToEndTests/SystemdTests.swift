import Foundation
import TestSupport
import Testing

/// What a service manager sees, without one.
@Suite(.scripts) struct SystemdTests {
    /// A datagram socket as `NOTIFY_SOCKET` names it.
    final class NotifySocket: Sendable {
        let path: String
        private let socket: Socket
        private let messages = Monitor([String]())

        init(in folder: TemporaryFolder) throws {
            path = folder.file("notify.sock")
            let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            guard descriptor >= 0 else { throw SocketError.system(call: "socket", code: errno) }
            socket = Socket(adopting: descriptor)
            let code = Socket.withUnixAddress(path) { bind(descriptor, $0, $1) }
            guard code == 0 else { throw SocketError.system(call: "bind", code: errno) }
            startThread { [socket, messages] in
                while let message = try? socket.receive(), !message.isEmpty {
                    messages.withLock {
                        $0 += String(decoding: message, as: UTF8.self).split(separator: "\n").map(String.init)
                    }
                }
            }
        }

        deinit { socket.shutDown() }

        func waitFor(_ limit: Duration = .seconds(60), count: Int = 1, _ condition: @escaping (String) -> Bool) -> Bool
        {
            messages.wait(limit) { $0.count(where: condition) >= count }
        }
    }

    @Test func `systemd is notified of readiness, at each watchdog interval, and of the stop`() throws {
        let folder = TemporaryFolder()
        let notify = try NotifySocket(in: folder)
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(
            arguments: ["--upstream", origin.url],
            folder: folder,
            environment: ["NOTIFY_SOCKET": notify.path, "WATCHDOG_USEC": "400000"]
        )
        #expect(notify.waitFor { $0 == "READY=1" })
        #expect(notify.waitFor(count: 3) { $0 == "WATCHDOG=1" })
        #expect(larder.terminate() == .exited(0))
        #expect(notify.waitFor { $0 == "STOPPING=1" })
    }

    /// The command of a line of the unit, with the binary under test and a config of the test's own.
    private static func command(of key: String, config: String) throws -> [String] {
        let unit = try String(contentsOfFile: Repository.root + "/systemd/larder.service", encoding: .utf8)
        let line = try #require(unit.split(separator: "\n").first { $0.hasPrefix("\(key)=/usr/bin/larder ") })
        let words = line.split(separator: " ").dropFirst().map(String.init)
        #expect(words.contains("/etc/larder/larder.yaml"))
        return words.map { $0 == "/etc/larder/larder.yaml" ? config : $0 }
    }

    @Test func `the unit's reload succeeds when the new config is in force, and fails with each mistake`() throws {
        let (folder, origin) = (TemporaryFolder(), try Origin { _ in .json("[]", Fresh.hour) })
        let notify = try NotifySocket(in: folder)
        let (port, admin) = (try Socket.freePort(), try Socket.freePort())
        func config(_ upstream: String) -> String {
            """
            listen: 127.0.0.1:\(port)
            admin: 127.0.0.1:\(admin)
            upstreams: { api: { url: '\(origin.url)'\(upstream) } }

            """
        }
        let path = try folder.write(config(""), to: "larder.yaml")
        // As the unit says: StateDirectory=larder.
        let environment = Larder.environment.merging([
            "NOTIFY_SOCKET": notify.path, "STATE_DIRECTORY": folder.path,
        ]) { $1 }
        let start = try Self.command(of: "ExecStart", config: path)
        let daemon = try TestProcess(Larder.binary, start, environment: environment)
        defer { daemon.signal(SIGKILL) }
        #expect(notify.waitFor { $0 == "READY=1" }, "\(daemon.errors)")
        func reload() throws -> TestProcess {
            let command = try Self.command(of: "ExecReload", config: path)
            let process = try TestProcess(Larder.binary, command, environment: environment)
            #expect(process.waitForEnd() != nil)
            return process
        }
        try folder.write(config(", prefix: /new"), to: "larder.yaml")
        let done = try reload()
        #expect(done.end == .exited(0), "\(done.errors)")
        // It is in force once the command has ended.
        #expect(try Client(port: port).get("/new/x").status == 200)
        try folder.write(config(", prefx: /newer"), to: "larder.yaml")
        let refused = try reload()
        #expect(refused.end == .exited(78) && refused.errors.contains("larder.yaml:3:"), "\(refused.errors)")
        #expect(try Client(port: port).get("/new/x").status == 200)
    }

    @Test func `listening sockets that systemd passes are shared by all workers`() throws {
        let folder = TemporaryFolder()
        let data = try Socket.listen()
        let admin = try Socket.listen()
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(
            arguments: ["--upstream", origin.url, "--workers", "2"],
            folder: folder,
            environment: ["LISTEN_FDS": "2", "LISTEN_FDNAMES": "data:admin"],
            startedBy: ["sh", "-c", #"LISTEN_PID=$$ exec "$0" "$@""#],
            descriptors: [data.descriptor, admin.descriptor],
            addresses: []
        )
        #expect(larder.port == data.port)
        #expect(larder.adminPort == admin.port)
        let answers = try together(16) { _ in try larder.get("/x").text }
        #expect(answers.allSatisfy { $0 == "[]" })
        #expect(try larder.admin("GET", "/count").status == 200)
        #expect(larder.terminate() == .exited(0))
    }

    @Test func `a systemd socket without an upstream answers 404, and says that each has its own address`() throws {
        let data = try Socket.listen()
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let folder = TemporaryFolder()
        let config = "upstreams: { api: { url: '\(origin.url)', listen: 'unix:\(folder.file("api.sock"))' } }"
        let larder = try Larder(
            arguments: ["--config", try folder.write(config, to: "larder.yaml")],
            folder: folder,
            environment: ["LISTEN_FDS": "1", "LISTEN_FDNAMES": "data"],
            startedBy: ["sh", "-c", #"LISTEN_PID=$$ exec "$0" "$@""#],
            descriptors: [data.descriptor],
            addresses: ["--admin", "127.0.0.1:0"]
        )
        #expect(try Client(.unix(folder.file("api.sock"))).get("/x").text == "[]")
        let response = try larder.get("/x")
        #expect(response.status == 404)
        #expect(response.text.contains("No upstream is served at this address: each has addresses of its own"))
        #expect(try Client(port: data.port).get("/x", ["Host": "evil.example"]).status == 421)
    }

    @Test func `a daemon that systemd starts at the first connection serves it`() throws {
        let folder = TemporaryFolder()
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let port = try Socket.freePort()
        let process = try TestProcess(
            "systemd-socket-activate",
            [
                "--listen=127.0.0.1:\(port)", Larder.binary, "serve", "--upstream", origin.url, "--admin",
                "127.0.0.1:0", "--store", folder.file("larder.db"),
            ],
            environment: Larder.environment
        )
        #expect(process.waitForErrors { $0.contains("Listening on") }, "\(process.errors)")
        let client = try Client(port: port)
        #expect(try client.get("/x").text == "[]")
        #expect(try client.get("/x").isHit)
        process.signal(SIGTERM)
        #expect(process.waitForEnd() == .exited(0), "\(process.errors)")
    }

    @Test func `a Unix socket of the config is bound beside an admin socket that systemd passes`() throws {
        let folder = TemporaryFolder()
        let (data, admin) = (try Socket.listen(), try Socket.listen())
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(
            arguments: [
                "--upstream", origin.url, "--admin", "127.0.0.1:\(admin.port)", "--admin",
                "unix:\(folder.file("admin.sock"))",
            ],
            folder: folder,
            environment: ["LISTEN_FDS": "2"],
            startedBy: ["sh", "-c", #"LISTEN_PID=$$ exec "$0" "$@""#],
            descriptors: [data.descriptor, admin.descriptor],
            addresses: []
        )
        #expect(larder.adminPort == admin.port)
        #expect(try Client(port: admin.port).get("/count").status == 401)
        #expect(try Client(.unix(folder.file("admin.sock"))).get("/count").status == 200)
    }

    @Test func `sockets meant for another process are left alone`() throws {
        let folder = TemporaryFolder()
        let data = try Socket.listen()
        let origin = try Origin { _ in .json("[]") }
        let larder = try Larder(
            arguments: ["--upstream", origin.url],
            folder: folder,
            environment: ["LISTEN_FDS": "1", "LISTEN_PID": "1"],
            descriptors: [data.descriptor]
        )
        #expect(larder.port != data.port)
    }

    @Test func `a Unix socket that systemd passes serves requests`() throws {
        let folder = TemporaryFolder()
        let data = try Socket.listen(unix: folder.file("data.sock"))
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let process = try TestProcess(
            "sh",
            [
                "-c", #"LISTEN_PID=$$ exec "$0" "$@""#, Larder.binary, "serve", "--upstream", origin.url, "--admin",
                "127.0.0.1:0", "--store", folder.file("larder.db"),
            ],
            environment: Larder.environment.merging(["LISTEN_FDS": "1", "LISTEN_FDNAMES": "data"]) { $1 },
            descriptors: [data.descriptor]
        )
        let isUp = process.waitForErrors { $0.contains("admin on http://127.0.0.1:") }
        #expect(isUp, "\(process.errors)")
        let answers = try together(8) { _ in try Client(.unix(folder.file("data.sock"))).get("/x").text }
        #expect(answers.allSatisfy { $0 == "[]" })
    }

    @Test func `in the journal each line has its priority`() throws {
        let origin = try Origin { _ in .json("[]") }
        let larder = try Larder(
            arguments: ["--upstream", origin.url],
            folder: TemporaryFolder(),
            environment: ["JOURNAL_STREAM": "8:12345", "INVOCATION_ID": "0123456789abcdef0123456789abcdef"]
        )
        let lines = larder.log.split(separator: "\n")
        #expect(!lines.isEmpty)
        #expect(lines.allSatisfy { $0.hasPrefix("<") && $0.dropFirst(2).hasPrefix(">") }, "\(larder.log)")
    }
}
