import Foundation
import TestSupport
import Testing

/// Starting, draining, ending: what the daemon does when it is told to go.
@Suite(.scripts) struct LifeTests {
    @Test(arguments: [SIGTERM, SIGINT]) func `a stopping daemon finishes requests under way, then exits`(signal: Int32)
        throws
    {
        let gate = Gate()
        let origin = try Origin { request in
            request.path == "/slow"
                ? OriginResponse.json(#"{"slow":true}"#, Fresh.hour).after(gate) : .json("[]", Fresh.hour)
        }
        let larder = try Larder(origin)
        let slow = Background { try larder.get("/slow") }
        origin.waitForRequests(1)
        larder.process.signal(signal)
        let refuses = eventually { (try? larder.get("/fast")) == nil }
        #expect(refuses)
        #expect(larder.isRunning)
        gate.open()
        #expect(try slow.value().text == #"{"slow":true}"#)
        #expect(larder.process.waitForEnd() == .exited(0))
        // And what it brought was stored before the end.
        origin.stop()
        try larder.start()
        #expect(try larder.get("/slow").text == #"{"slow":true}"#)
    }

    @Test(arguments: [SIGUSR1, SIGUSR2]) func `an unused signal is logged, and the daemon goes on`(
        signal: Int32
    ) throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        for _ in 1...2 {
            larder.process.signal(signal)
            #expect(larder.process.waitForErrors { $0.contains("signal ignored") })
            #expect(try larder.get("/x").isHit)
        }
        #expect(larder.isRunning)
        #expect(larder.terminate() == .exited(0))
    }

    @Test func `a daemon started with nohup survives a hangup`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(
            arguments: ["--upstream", origin.url],
            folder: TemporaryFolder(),
            startedBy: ["/bin/sh", "-c", #"trap "" HUP; exec "$0" "$@""#]
        )
        larder.process.signal(SIGHUP)
        larder.process.signal(SIGUSR1)
        #expect(larder.process.waitForErrors { $0.contains("SIGUSR1") })
        #expect(!larder.log.contains("SIGHUP"))
        #expect(larder.terminate() == .exited(0))
    }

    /// It waits from before the program's first instruction, as a pending signal survives `exec`.
    @Test(arguments: [(SIGHUP, "the config is reloaded"), (SIGUSR1, "signal ignored"), (SIGUSR2, "signal ignored")])
    func `a signal that comes while the daemon starts waits until it serves`(signal: Int32, message: String) throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let script = """
            import os, signal, sys
            signal.pthread_sigmask(signal.SIG_BLOCK, [\(signal)])
            os.kill(os.getpid(), \(signal))
            os.execv(sys.argv[1], sys.argv[1:])
            """
        let larder = try Larder(
            arguments: ["--upstream", origin.url],
            folder: TemporaryFolder(),
            startedBy: ["python3", "-c", script]
        )
        #expect(larder.process.waitForErrors { $0.contains(message) }, "\(larder.log)")
        #expect(larder.terminate() == .exited(0))
    }

    /// `script` gives it a terminal of its own, which goes with it.
    @Test(.enabled(if: access("/usr/bin/script", X_OK) == 0, "script(1) is not installed: apt-get install bsdutils"))
    func `closing the terminal stops a daemon that was started in it`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let folder = TemporaryFolder()
        let pidFile = folder.file("pid")
        let command =
            "\(Larder.binary) serve --store \(folder.file("larder.db")) --upstream \(origin.url) "
            + "--listen 127.0.0.1:0 --admin 127.0.0.1:0"
        let terminal = try TestProcess(
            "/usr/bin/script",
            ["-qfc", "echo $$ > \(pidFile); exec \(command)", folder.file("log")]
        )
        let log = { (try? String(contentsOfFile: folder.file("log"), encoding: .utf8)) ?? "" }
        #expect(eventually { log().contains("admin on") }, "\(log())")
        let pid = try #require(
            pid_t(
                (try String(contentsOfFile: pidFile, encoding: .utf8)).trimmingCharacters(in: .whitespacesAndNewlines)
            )
        )
        terminal.signal(SIGKILL)
        // Nobody may have fetched its exit status: a zombie has ended, too.
        let state = { (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? "" }
        let hasEnded = eventually { kill(pid, 0) != 0 || state().contains(") Z ") }
        #expect(hasEnded)
        if !hasEnded { kill(pid, SIGKILL) }
    }

    @Test func `a second signal ends the daemon at once`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.json("[]").after(gate) }
        let larder = try Larder(config: Configs.plain(origin, top: ["timeouts: { drain: 1h }"]))
        let slow = Background { try? larder.get("/slow").status }
        origin.waitForRequests(1)
        larder.process.signal(SIGTERM)
        // The first has been heard: two that wait at once are one.
        #expect(eventually { (try? larder.client()) == nil })
        #expect(larder.isRunning)
        larder.process.signal(SIGTERM)
        #expect(larder.process.waitForEnd() != nil)
        gate.open()
        _ = try slow.value()
    }

    @Test func `idle connections do not delay the daemon's exit`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(config: Configs.plain(origin, top: ["timeouts: { drain: 1h }"]))
        let clients = try (1...20).map { _ in try larder.client() }
        for client in clients { #expect(try client.get("/x").status == 200) }
        #expect(larder.terminate() == .exited(0))
    }

    @Test func `draining has a time limit`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.json("[]").after(gate) }
        let larder = try Larder(config: Configs.plain(origin, top: ["timeouts: { drain: 1s }"]))
        let slow = Background { try? larder.get("/slow").status }
        origin.waitForRequests(1)
        #expect(larder.terminate() == .exited(0), "\(larder.log)")
        gate.open()
        _ = try slow.value()
    }

    /// Ends the daemon fifty times in the middle of taking answers in.
    @Test func `kill -9 during heavy ingest leaves a sound store, fifty times`() throws {
        let number = Monitor(0)
        let origin = try Origin { request in
            let first = number.next() * 40
            let users = (first..<first + 40).map { id in
                #"{"id":\#(id % 700),"login":"user\#(id % 700)","name":"round \#(first)","company":null}"#
            }
            return .json("[\(users.joined(separator: ","))]", Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        for round in 1...50 {
            let isOver = Monitor(false)
            let load = (0..<3).map { thread in
                Background {
                    guard let client = try? larder.client() else { return }
                    for page in 0..<10_000 where !isOver.current {
                        guard (try? client.get("/users?round=\(round)&thread=\(thread)&page=\(page)")) != nil else {
                            return
                        }
                    }
                }
            }
            pause(.milliseconds(60 + 7 * (round % 13)))
            larder.kill()
            isOver.withLock { $0 = true }
            for thread in load { _ = try? thread.value() }
            #expect(try larder.sql("PRAGMA integrity_check") == ["ok"], "round \(round)")
            try larder.start()
        }
        // Each stored response is whole: it says one round for all users it brought, or what later rounds said.
        #expect(try larder.documents() > 0)
        #expect(try larder.sql("SELECT count(*) FROM User WHERE login != 'user' || id") == ["0"])
    }
}
