import Foundation
import TestSupport
import Testing

/// One thread that serves clients and asks the upstream.
@Suite(.scripts) struct SingleWorkerTests {
    @Test func `a single worker asks the upstream on its own thread, for many clients at once`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            let response = OriginResponse.json(#"{"path":"\#(request.target)"}"#, Fresh.hour)
            return request.target == "/late" ? response.after(gate) : response
        }
        let larder = try Larder(origin, "--workers", "1")
        // Each path is asked for by two clients, and fetched once.
        let texts = try together(8) { client in
            try (0..<20).map { try larder.get("/\(client / 2)/\($0)").text }
        }
        for (client, texts) in texts.enumerated() {
            #expect(texts == (0..<20).map { #"{"path":"/\#(client / 2)/\#($0)"}"# })
        }
        #expect(origin.requests.count == 80)
        #expect(try larder.get("/0/0").isHit)
        let tasks = "/proc/\(larder.process.pid)/task"
        // Some threads end meanwhile.
        let threads = try FileManager.default.contentsOfDirectory(atPath: tasks).compactMap {
            try? String(contentsOfFile: "\(tasks)/\($0)/comm", encoding: .utf8)
        }
        #expect(threads.contains("worker-0\n") && !threads.contains("upstream\n"), "\(threads)")
        // It ends when the requests under way have their responses.
        let late = Background { try larder.get("/late") }
        origin.waitForRequests(81)
        larder.process.signal(SIGTERM)
        gate.open()
        #expect(try late.value().status == 200)
        #expect(larder.process.waitForEnd() == .exited(0))
    }
}
