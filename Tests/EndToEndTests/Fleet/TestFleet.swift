import Foundation
import TestSupport

/// Several daemons that share one server and one origin.
struct TestFleet {
    let redis: RedisServer
    let origin: Origin
    let machines: [Larder]

    /// - Parameters:
    ///   - config: the models, routes and further lines of the config.
    ///   - upstream: further keys of the upstream, each after a comma.
    ///   - network: what is between the machines, the server and the origin; nil for nothing.
    ///   - environment: further variables of each machine.
    init(
        _ count: Int = 2,
        _ origin: Origin,
        redis: RedisServer? = nil,
        upstream: String = "",
        network: FleetNetwork? = nil,
        environment: (Int) -> [String: String] = { _ in [:] },
        _ config: String = TestFleet.models
    ) throws {
        let redis = try redis ?? RedisServer(port: Socket.freePort())
        (self.redis, self.origin) = (redis, origin)
        let keys = TemporaryFolder()
        let key = try keys.write(String(repeating: "0123456789abcdef", count: 4) + "\n", to: "fleet.key")
        _ = try? TestProcess.run("chmod", ["600", key])
        machines = try (0..<count).map { index in
            try Larder(
                config: """
                    store: { withhold: 10s }
                    fleet: { url: "\(network?.serverURL(for: index) ?? redis.url)", key_file: "\(key)" }
                    upstreams: { api: { url: "\(origin.url)", lag: 0s\(upstream)\(network?.keys(for: index) ?? "") } }
                    \(config)
                    """,
                environment: (network?.environment(of: index) ?? [:]).merging(environment(index)) { $1 }
            )
        }
        // The daemons read it when they start, and when they start again.
        Self.kept.withLock { $0.append(keys) }
        try waitUntilConnected()
        guard network == nil else { return }
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
