import Foundation
import TestSupport

/// What is between the machines of a fleet, their server and the origin, so that each part of it can fail.
///
/// There are two servers: the one that is used, and a replica of it.
final class FleetNetwork: Sendable {
    let servers: [RedisServer]
    /// From each machine.
    let toServer: [NetworkRelay]
    let toOrigin: [NetworkRelay]
    /// From the replica to the server that is used.
    private let replication: NetworkRelay
    /// Which server is used.
    private let used = Monitor(0)
    /// The clock of the first server, and of the last machine.
    let serverClock: WallClock?
    let machineClock: WallClock?

    /// - Parameters:
    ///   - hasReplica: whether the second server runs.
    ///   - setsServerClock: whether the first server's clock can be set.
    ///   - setsMachineClock: whether the last machine's can.
    init(
        _ count: Int,
        origin: UInt16,
        hasReplica: Bool,
        setsServerClock: Bool,
        setsMachineClock: Bool
    ) throws {
        serverClock = setsServerClock ? try WallClock() : nil
        machineClock = setsMachineClock ? try WallClock() : nil
        // A new replica gets everything at once, without a file.
        let options = ["--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"]
        let first = try RedisServer(options, port: Socket.freePort(), environment: serverClock?.environment ?? [:])
        let second = hasReplica ? try RedisServer(options, port: Socket.freePort()) : nil
        servers = [first] + (second.map { [$0] } ?? [])
        let port = first.port ?? 0
        toServer = try (0..<count).map { _ in try NetworkRelay(to: port) }
        toOrigin = try (0..<count).map { _ in try NetworkRelay(to: origin) }
        replication = try NetworkRelay(to: port)
        if let second { try follow(second) }
    }

    // MARK: The machines' config

    func serverURL(for machine: Int) -> String { "redis://127.0.0.1:\(toServer[machine].port)/0" }

    /// The upstream has the same URL on all machines; therefore the way to it is a proxy.
    func keys(for machine: Int) -> String {
        """
        , proxy: "http://127.0.0.1:\(toOrigin[machine].port)", timeouts: { connect: 1s, first_byte: 2s, stall: 2s }
        """
    }

    func environment(of machine: Int) -> [String: String] {
        machine == toServer.count - 1 ? machineClock?.environment ?? [:] : [:]
    }

    // MARK: The servers

    /// The server that is used.
    var server: RedisServer { servers[used.current] }

    private func follow(_ server: RedisServer) throws {
        try server.command("REPLICAOF", "127.0.0.1", "\(replication.port)")
    }

    /// Has the replica take over.
    ///
    /// - Parameters:
    ///   - lost: for how long it has got nothing then.
    ///   - isKilled: whether the former server is gone before; otherwise it goes on until all machines have left it.
    ///   - random: decides in which order the machines change, and how fast.
    func failOver(lost: Duration, isKilled: Bool, _ random: inout SeededGenerator) throws {
        let (former, next) = (server, servers[1 - used.current])
        guard let port = next.port,
            try eventually(within: .seconds(10), { try next.command("INFO", "replication").contains("link_status:up") })
        else { return }
        replication.hold()
        pause(lost)
        if isKilled { former.kill() }
        try next.command("REPLICAOF", "NO", "ONE")
        for relay in toServer.shuffled(using: &random) {
            try relay.lead(to: port)
            if random.once(in: 2) { pause(.milliseconds(random.below(300))) }
        }
        if !isKilled { former.kill() }
        try former.start()
        used.withLock { $0 = 1 - $0 }
        try replication.lead(to: port)
        try follow(former)
    }
}
