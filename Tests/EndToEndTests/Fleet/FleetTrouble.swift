import Glibc
import TestSupport

/// What goes wrong in a history of a fleet.
enum FleetTrouble: String, CaseIterable, Sendable {
    case daemonsAreKilled, daemonsAreRestarted, machinesPause, aClockIsSet
    case machinesLoseTheServer, machinesLoseTheOrigin
    case theServerIsKilled, theServerHangs, theServerIsEmptied, theServerIsFull, aReplicaTakesOver, theServerLies
    case theServersClockIsSet

    /// Whether it concerns the server, and not one machine.
    var isOfServer: Bool {
        switch self {
        case .daemonsAreKilled, .daemonsAreRestarted, .machinesPause, .aClockIsSet, .machinesLoseTheServer,
            .machinesLoseTheOrigin:
            false
        case .theServerIsKilled, .theServerHangs, .theServerIsEmptied, .theServerIsFull, .aReplicaTakesOver,
            .theServerLies, .theServersClockIsSet:
            true
        }
    }
}

extension FleetHistory {
    /// Makes trouble until the history is over, and mends all of it.
    ///
    /// - Parameter isOver: waits so long; returns whether the history is over.
    func trouble(
        _ kinds: [FleetTrouble],
        _ random: inout SeededGenerator,
        isOver: (Duration) -> Bool
    ) throws {
        guard !kinds.isEmpty else { return }
        // Most follow one another closely; now and then there is peace.
        while !isOver(.milliseconds(random.once(in: 8) ? 2_000 : random.below(400))) {
            try make(random.pick(kinds), &random, isOver: isOver)
        }
    }

    private func make(_ trouble: FleetTrouble, _ random: inout SeededGenerator, isOver: (Duration) -> Bool) throws {
        let machine = random.pick(machines)
        let server = network.server
        /// Short or long; as long as the server's limits, and longer.
        let time = Duration.milliseconds(random.once(in: 3) ? random.below(3_000) : random.below(400))
        note("\(trouble) \(machine.index), \(time)")
        switch trouble {
        case .daemonsAreKilled:
            try machine.replace { larder in
                machine.lives.withLock { $0 += 1 }
                larder.kill()
            }
        case .daemonsAreRestarted: try machine.replace { $0.terminate() }
        case .machinesPause:
            machine.larder.process.signal(SIGSTOP)
            _ = isOver(time)
            machine.larder.process.signal(SIGCONT)
        case .aClockIsSet: try network.machineClock?.set(ahead: random.pick([-3_600, 0, 3_600]))
        case .machinesLoseTheServer:
            let link = network.toServer[machine.index]
            if random.once(in: 2) { link.hold() } else { link.cut() }
            _ = isOver(time)
            if kinds.contains(.daemonsAreKilled), random.once(in: 4) {
                try make(.daemonsAreKilled, &random, isOver: isOver)
            }
            try link.restore()
        case .machinesLoseTheOrigin:
            machine.origin.withLock { $0.begin() }
            let link = network.toOrigin[machine.index]
            if random.once(in: 2) { link.hold() } else { link.cut() }
            _ = isOver(time)
            try link.restore()
            // Larder asks an upstream seldom that did not respond.
            let isBack = eventually {
                (try? machine.larder.get("/items", ["Cache-Control": "no-cache"]))?.status == 200
            }
            if !isBack { fail("machine \(machine.index) does not reach the origin again") }
            machine.origin.withLock { $0.isAway = false }
        case .theServerIsKilled:
            server.kill()
            _ = isOver(time)
            try server.start()
        case .theServerHangs:
            server.hang()
            _ = isOver(time)
            server.goOn()
        case .theServerIsEmptied: try server.command("FLUSHALL")
        case .theServerIsFull:
            try server.command("CONFIG", "SET", "maxmemory-policy", random.pick(Self.policies))
            let used = try server.command("INFO", "memory").split(whereSeparator: \.isNewline)
                .first { $0.hasPrefix("used_memory:") }.flatMap { Int($0.dropFirst("used_memory:".count)) }
            try server.command("CONFIG", "SET", "maxmemory", "\((used ?? 0) - random.below(100_000))")
            _ = isOver(time)
            try server.command("CONFIG", "SET", "maxmemory", "0")
        case .aReplicaTakesOver:
            try network.failOver(lost: time / 4, isKilled: random.once(in: 2), &random)
        case .theServerLies: try lie(server, &random)
        case .theServersClockIsSet: try network.serverClock?.set(ahead: random.pick([-3_600, 0, 3_600]))
        }
    }

    private static let policies = ["volatile-lru", "allkeys-random", "noeviction"]

    /// Has the server have garbage, and what it had before.
    private func lie(_ server: RedisServer, _ random: inout SeededGenerator) throws {
        func names(_ pattern: String) throws -> [String] {
            try server.command("KEYS", pattern).split(whereSeparator: \.isNewline).map(String.init).sorted()
        }
        for name in try names("larder:*:document:*").shuffled(using: &random).prefix(4) {
            switch random.below(3) {
            case 0: try server.command("COPY", name, "kept:\(name)", "REPLACE")
            case 1: try server.command("COPY", "kept:\(name)", name, "REPLACE")
            default: try server.command("SET", name, "garbage", "EX", "60")
            }
        }
        guard let stream = try names("larder:*:news").last, random.once(in: 3) else { return }
        // An entry that does not say which one it follows.
        try server.command("XADD", stream, "*", "after", "1-1", "news", "garbage")
    }
}
