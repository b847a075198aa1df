import DaemonTestSupport
import HTTPSemantics
import Logging
import Store
import TestSupport

@testable import Admin
@testable import EventLoops
@testable import HTTPServer
@testable import Proxy
@testable import Recording
@testable import Settings

/// A daemon's core with its data side on a real socket.
final class RunningCore: Sendable {
    let folder = TemporaryFolder()
    let core: DaemonCore
    let address: Address
    private let server: Server
    private let loops: [EventLoop]

    init(_ config: String) throws {
        let settings = try Self.settings(config, store: folder.path + "/larder.db")
        let loops = try ["upstream", "worker"].map { try EventLoop(name: $0) }
        let core = try DaemonCore(
            settings,
            version: "0.1-test",
            workers: 1,
            upstreamLoop: loops[0],
            adminLoop: loops[0],
            log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        core.setState { [core] in
            $0.recordings = Recordings(
                folder: pathBeside(core.settings.store.path ?? "", "recordings"),
                config: config,
                upstreams: core.upstreams,
                log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
        }
        server = Server(loops: [loops[1]]) { _ in
            ProxyHandler(
                proxy: core.proxy,
                loop: loops[1],
                metrics: core.metrics.worker(0),
                interceptor: core.state.recordings
            )
        }
        for loop in loops { loop.start() }
        address = try server.listen(on: .tcp(host: "127.0.0.1", port: 0))[0]
        (self.core, self.loops) = (core, loops)
    }

    deinit { for loop in loops { loop.stop() } }

    /// The text of a config has mistakes.
    private struct BadConfig: Error, CustomStringConvertible { let description: String }

    private static func settings(_ config: String, store: String) throws -> Configuration {
        let file = ConfigFile.parse(config, file: "larder.yaml", environment: [:])
        guard file.errors.isEmpty else { throw BadConfig(description: "\(file.errors)") }
        var settings = file.settings
        settings.store.path = store
        return settings
    }

    /// Replaces the configuration by that of a text; returns what differs.
    @discardableResult
    func replace(
        by config: String,
        _ prepare: (Configuration) throws -> ConfigSource.Preparation = { _ in ({}, {}) }
    ) async throws -> [ConfigChange] {
        let settings = try Self.settings(config, store: core.settings.store.path ?? "")
        return try await core.replaceConfiguration(by: settings, portable: config, prepare)
    }

    /// Sends a request on a connection of its own, or on one that is open.
    func request(
        _ target: String,
        method: String = "GET",
        _ fields: String...,
        on client: HTTPTestClient? = nil
    ) async throws -> HTTPTestResponse {
        let client = try client ?? HTTPTestClient(address)
        let lines = fields + (fields.contains { $0.hasPrefix("Host:") } ? [] : ["Host: \(address)"])
        client.send("\(method) \(target) HTTP/1.1\r\n\(lines.joined(separator: "\r\n"))\r\n\r\n")
        return try await withCheckedThrowingContinuation { continuation in
            // Reading blocks, and the pool's threads are the daemon's, too.
            startThread { continuation.resume(with: Result { try client.answer() }) }
        }
    }
}

/// An origin that responds with its name; a request whose path contains `held` waits until the test lets it go on.
final class NamedOrigin: Sendable {
    private final class Handler: HTTPHandler {
        let origin: (name: String, seen: Monitor<[String]>, held: Monitor<[@Sendable () -> Void]>)

        init(_ origin: (name: String, seen: Monitor<[String]>, held: Monitor<[@Sendable () -> Void]>)) {
            self.origin = origin
        }

        func received(_ request: borrowing RequestHead, on connection: HTTPConnection) {
            var message = request.owned()
            let reply = connection.deferReply(request, &message)
            let (target, name) = (message.target, origin.name)
            var fields: Fields = ["Content-Type": "application/json", "Cache-Control": "max-age=600"]
            if target.contains("limited") { fields = ["Retry-After": "600", "X-RateLimit-Remaining": "0"] }
            let status = target.contains("limited") ? 429 : 200
            let respond: @Sendable () -> Void = { [fields] in
                reply.respond(status: status, fields: fields, body: Array(#"{"id": 1, "origin": "\#(name)"}"#.utf8))
            }
            origin.seen.withLock { $0.append(target) }
            if target.contains("held") { origin.held.withLock { $0.append(respond) } } else { respond() }
        }
    }

    private let seen = Monitor<[String]>([])
    private let held = Monitor<[@Sendable () -> Void]>([])
    private let server: Server
    private let loop: EventLoop
    let url: String

    init(_ name: String) throws {
        let (seen, held) = (seen, held)
        let loop = try EventLoop(name: "origin")
        server = Server(loops: [loop]) { _ in Handler((name, seen, held)) }
        loop.start()
        url = "http://\(try server.listen(on: .tcp(host: "127.0.0.1", port: 0))[0])"
        self.loop = loop
    }

    deinit { loop.stop() }

    /// How many requests have come.
    var count: Int { seen.current.count }

    /// Waits until a request is held.
    func awaitHeld() async {
        await withCheckedContinuation { continuation in
            startThread { [held] in
                held.wait { !$0.isEmpty }
                continuation.resume()
            }
        }
    }

    /// Responds to the held requests.
    func letGo() {
        let waiting = held.withLock { held in
            defer { held = [] }
            return held
        }
        for respond in waiting { respond() }
    }
}
