import Foundation
import TestSupport

/// A real `redis-server` on a port of its own, which keeps nothing on disk.
final class RedisServer: @unchecked Sendable {  // `process` is replaced by one thread at a time
    let port: UInt16
    private let folder = TemporaryFolder()
    private var process: ChildProcess

    /// Whether Debian's package is installed, which `scripts/dependencies test` does where it can.
    static let isAvailable = (try? ChildProcess.run("redis-server", ["--version"])) != nil

    init() throws {
        port = try Socket.freePort()
        process = try Self.start(port, folder)
        guard waitUntilUp() else {
            throw Larder.DidNotStart(description: "redis-server did not start: \(process.output) \(process.errors)")
        }
    }

    private static func start(_ port: UInt16, _ folder: TemporaryFolder) throws -> ChildProcess {
        try ChildProcess(
            "redis-server",
            [
                "--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir",
                folder.file(""),
                "--daemonize", "no",
            ]
        )
    }

    private func waitUntilUp() -> Bool { eventually { process.end == nil ? (try? command("PING")) == "+PONG" : true } }

    /// Ends it at once; what it had is lost.
    func kill() {
        process.signal(SIGKILL)
        process.waitForEnd()
    }

    /// Starts it again, empty, on the same port.
    func restart() throws {
        process = try Self.start(port, folder)
        _ = waitUntilUp()
    }

    /// Sends a command in its inline form; returns the first line of the reply.
    @discardableResult
    func command(_ line: String) throws -> String {
        let client = try Client(.port(port), limit: .seconds(10))
        try client.send("\(line)\r\n")
        var line: [UInt8] = []
        while line.last != 0x0A { line += try client.bytes(1) }
        return String(decoding: line.dropLast(2), as: UTF8.self)
    }
}

/// Several daemons that share one server and one origin.
struct TestFleet {
    let redis: RedisServer
    let origin: Origin
    let machines: [Larder]

    /// - Parameters:
    ///   - config: the models, routes and further lines of the config.
    ///   - upstream: further keys of the upstream, each after a comma.
    init(
        _ count: Int = 2,
        _ origin: Origin,
        redis: RedisServer? = nil,
        upstream: String = "",
        _ config: String = TestFleet.models
    ) throws {
        let redis = try redis ?? RedisServer()
        (self.redis, self.origin) = (redis, origin)
        let keys = TemporaryFolder()
        let key = try keys.write(String(repeating: "0123456789abcdef", count: 4) + "\n", to: "fleet.key")
        _ = try? ChildProcess.run("chmod", ["600", key])
        machines = try (0..<count).map { _ in
            try Larder(
                config: """
                    store: { withhold: 10s }
                    fleet: { url: "redis://127.0.0.1:\(redis.port)/0", key_file: "\(key)" }
                    upstreams: { api: { url: "\(origin.url)", lag: 0s\(upstream) } }
                    \(config)
                    """
            )
        }
        // The daemons read it when they start, and when they start again.
        Self.kept.withLock { $0.append(keys) }
        try waitUntilConnected()
        // To whoever sends a position, nothing is served that may be from before the epoch; that is known by the second.
        pause(.milliseconds(2_100))
    }

    private static let kept = Monitor<[TemporaryFolder]>([])

    /// Items with a text, by themselves and in a list.
    static let models = """
        models:
          Item: { identity: id, properties: { text: text } }
        routes:
          - { path: "items", model: [Item] }
          - { path: "items/{id:#}", model: Item, object: { id: id } }
        """

    subscript(index: Int) -> Larder { machines[index] }

    /// Waits until every machine says a position.
    func waitUntilConnected() throws {
        for machine in machines {
            guard eventually({ (try? machine.get("/nothing", TestFleet.asking))?["Larder-Position"] != nil }) else {
                throw Larder.DidNotStart(description: "a machine never joined the fleet:\n\(machine.log)")
            }
        }
        origin.forget()
    }

    /// Asks for a position.
    static let asking: FieldLines = ["Larder-Position": ""]
}
