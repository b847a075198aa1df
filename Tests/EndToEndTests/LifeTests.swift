import Foundation
import TestSupport
import Testing

/// Starting, draining, ending: what the daemon does when it is told to go.
@Suite(.scripts) struct LifeTests {
    @Test(arguments: [SIGTERM, SIGINT]) func `what is in flight is finished, then it ends`(signal: Int32) throws {
        let gate = Gate()
        let origin = try Origin { request in
            request.path == "/slow"
                ? Answer.json(#"{"slow":true}"#, Fresh.hour).after(gate) : .json("[]", Fresh.hour)
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

    @Test func `a second signal ends it at once`() throws {
        let gate = Gate()
        let origin = try Origin { _ in Answer.json("[]").after(gate) }
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

    @Test func `idle connections do not keep it`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(config: Configs.plain(origin, top: ["timeouts: { drain: 1h }"]))
        let clients = try (1...20).map { _ in try larder.client() }
        for client in clients { #expect(try client.get("/x").status == 200) }
        #expect(larder.terminate() == .exited(0))
    }

    @Test func `draining has a limit`() throws {
        let gate = Gate()
        let origin = try Origin { _ in Answer.json("[]").after(gate) }
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
        // Each stored answer is whole: it says one round for all users it brought, or what later rounds said.
        #expect(try larder.documents() > 0)
        #expect(try larder.sql("SELECT count(*) FROM User WHERE login != 'user' || id") == ["0"])
    }
}
