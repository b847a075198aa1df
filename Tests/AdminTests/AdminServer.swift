import DaemonTestSupport
import Foundation
import HTTPSemantics
import TestSupport

@testable import Admin
@testable import EventLoops
@testable import HTTPServer

/// An admin side that listens, over a real store.
final class AdminServer: Sendable {
    let daemon: AdminFixture
    private let server: Server
    private let loop: EventLoop
    private let address: Address

    init(isUnix: Bool = false) throws {
        let daemon = try AdminFixture()
        let loop = try EventLoop(name: "admin")
        self.daemon = daemon
        self.loop = loop
        server = Server(loops: [loop]) { _ in
            // The clients of these tests block the shared pool's threads, so tasks have to run elsewhere.
            AdminHandler(
                service: AdminService(daemon.core),
                executor: loop.taskExecutor
            )
        }
        loop.start()
        let path = daemon.folder.path + "/admin.sock"
        address = try server.listen(on: isUnix ? .unix(path: path) : .tcp(host: "127.0.0.1", port: 0))[0]
    }

    deinit {
        loop.stop()
    }

    /// What a client puts into `Host`.
    var authority: String { "\(address)" }

    var credential: String { "Authorization: Bearer \(daemon.token)\r\n" }

    /// Sends a head without its empty line, and a body, and reads the response.
    func ask(_ head: String, body: String = "") throws -> HTTPTestResponse {
        let client = try HTTPTestClient(address)
        client.send("\(head)\r\n\(body)")
        return try client.answer(toHead: head.hasPrefix("HEAD"))
    }
}
