import Foundation
import TestSupport
import Testing

/// Random reads, writes and failures on three machines, against what is true.
@Suite(.scripts, .enabled(if: RedisServer.isAvailable, "redis-server is not installed")) struct FleetHistoryTests {
    @Test(arguments: [1, 2])
    func `every response of three machines is one that is promised`(seed: UInt64) throws {
        #expect(try FleetHistory(seed: seed, steps: 240, fails: false).run() == [])
    }

    @Test(arguments: [3, 4])
    func `the same while daemons and the server are killed and the server is emptied`(seed: UInt64) throws {
        #expect(try FleetHistory(seed: seed, steps: 240, fails: true).run() == [])
    }

    @Test(.enabled(if: SoakOptions.current != nil, "make soak FLEET=1 runs it"))
    func `in thousands of steps every response is one that is promised`() throws {
        let options = try #require(SoakOptions.current)
        let start = options.seed ?? UInt64.random(in: 0..<1 << 32)
        let end = options.minutes.map { ContinuousClock.now + .seconds($0 * 60) }
        var (done, number) = (0, UInt64(0))
        while number == 0 || options.seed == nil || number < UInt64(options.seeds ?? 1) {
            if let end { if ContinuousClock.now > end { break } } else if done >= options.steps { break }
            let seed = start &+ number
            let failures = try FleetHistory(seed: seed, steps: 2_000, fails: seed % 3 != 0).run()
            #expect(failures == [], "make soak FLEET=1 SEED=\(seed)")
            print("fleet: seed \(seed), \(done) steps")
            if !failures.isEmpty { break }
            (done, number) = (done + 2_000, number + 1)
        }
    }
}

/// One random history.
struct FleetHistory {
    let seed: UInt64
    let steps: Int
    /// Whether daemons and the server are killed meanwhile, and the server is emptied.
    let fails: Bool

    private static let clients = 4

    /// A machine, and whether it may be asked.
    private final class Machine: Sendable {
        let larder: Larder
        let floors = Dictionary(uniqueKeysWithValues: FleetTruth.principals.map { ($0, ServedFloors()) })
        /// Its port; nil while it is down.
        let port: Monitor<UInt16?>

        init(_ larder: Larder) { (self.larder, port) = (larder, Monitor(larder.port)) }
    }

    /// Runs it; returns what is wrong, each with what was asked.
    func run() throws -> [String] {
        let truth = FleetTruth(seed: seed)
        let fleet = try TestFleet(3, try truth.origin())
        let machines = fleet.machines.map { Machine($0) }
        let (failures, trace) = (Monitor<[String]>([]), Monitor<[String]>([]))
        let taken = Monitor(0)
        let running = Monitor(Self.clients)
        for number in 0..<Self.clients {
            startThread {
                var random = SeededGenerator(seed: seed &* 31 &+ UInt64(number))
                let principal = FleetTruth.principals[number % FleetTruth.principals.count]
                var clients = [true, true, false].map { FleetClient(principal, sendsPositions: $0) }
                while failures.current.isEmpty {
                    let step = taken.next()
                    guard step < steps else { break }
                    self.step(&clients, truth, machines, &random, "step \(step)", failures, trace)
                }
                running.withLock { $0 -= 1 }
            }
        }
        var random = SeededGenerator(seed: ~seed)
        while !running.wait(.milliseconds(150), until: { $0 == 0 }) {
            if fails { try disturb(fleet, machines, &random) }
        }
        guard failures.current.isEmpty else { return failures.current }
        try fleet.waitUntilConnected()
        return try settle(truth, machines, &random)
    }

    // MARK: One step

    private func step(
        _ clients: inout [FleetClient],
        _ truth: FleetTruth,
        _ machines: [Machine],
        _ random: inout SeededGenerator,
        _ name: String,
        _ failures: Monitor<[String]>,
        _ trace: Monitor<[String]>
    ) {
        let index = random.below(clients.count)
        let (machine, id) = (random.pick(machines), random.below(FleetTruth.items.count) + 1)
        let item = FleetTruth.Item(principal: clients[index].principal, id: id)
        func note(_ what: String) {
            trace.withLock { $0.append("\(ContinuousClock.now) \(name) \(item.principal): \(what)") }
        }
        if random.once(in: 8) {
            truth.change(item)
            return note("\(id) is changed to \(truth.number(item))")
        }
        guard let port = machine.port.current, let client = try? Client(.port(port), limit: .seconds(60)) else {
            return
        }
        if random.once(in: 5) {
            let fields = clients[index].fields + ["X-Write": name, "Connection": "close"]
            // Its connection breaks if its machine is killed.
            note("PATCH \(id) of \(port), client \(index)")
            guard let response = try? client.request("PATCH", "/items/\(id)", fields, body: "{}") else { return }
            note(
                "PATCH \(id) is \(response.status), \(truth.written(by: name) ?? -1), \(response["Larder-Position"] ?? "")"
            )
            if (200..<300).contains(response.status), let number = truth.written(by: name) {
                clients[index].note([item: number], response)
            }
            return
        }
        let path = random.once(in: 3) ? "/items" : "/items/\(id)"
        var fields = clients[index].fields + ["Connection": "close"]
        if random.once(in: 10) { fields.append("Cache-Control", "no-cache") }
        guard let floors = machine.floors[clients[index].principal] else { return }
        let before = floors.current
        note("GET \(path) of \(port), client \(index)")
        guard let response = try? client.get(path, fields) else { return }
        note("GET \(path) is \(response.cacheStatus), \(response["Larder-Position"] ?? "") \(response.text)")
        let asked = "seed \(seed), \(name): \(clients[index].principal) \(path) of machine \(port), \(fields.text)"
        func fail(_ what: String) {
            let before = trace.current.suffix(120).filter { $0.contains(" \(item.principal): ") }
            failures.withLock { failures in
                failures.append(
                    "\(what)\n\(asked)\(response.status) \(response.fields.text)\(response.text)\n"
                        + before.joined(separator: "\n")
                )
            }
        }
        guard response.status == 200 else { return fail("no response") }
        guard let shown = truth.shown(response, to: clients[index].principal) else {
            return fail("another principal's, or invented")
        }
        let isInDoubt = response.cacheStatus.contains("doubt")
        for (item, number) in shown where !isInDoubt {
            let least = clients[index].least(item)
            if number < least { fail("item \(item.id) was seen as \(least) before, or written") }
            if response.isHit, number < before[item] ?? 0 {
                fail("item \(item.id) was served from this machine's cache as \(before[item] ?? 0) before")
            }
        }
        if response.isHit, !isInDoubt { floors.note(shown) }
        if !isInDoubt { clients[index].note(shown, response) }
    }

    // MARK: What goes wrong

    private func disturb(_ fleet: TestFleet, _ machines: [Machine], _ random: inout SeededGenerator) throws {
        switch random.below(6) {
        case 0:
            let machine = random.pick(machines)
            machine.port.withLock { $0 = nil }
            machine.larder.kill()
            try machine.larder.start()
            machine.port.withLock { $0 = machine.larder.port }
        case 1:
            fleet.redis.kill()
            pause(.milliseconds(random.below(400)))
            try fleet.redis.start()
        case 2: try fleet.redis.command("FLUSHALL")
        default: break
        }
    }

    // MARK: The end

    /// Whether every machine serves the truth once it is quiet: after a write to each item, and after each has been seen anew.
    private func settle(_ truth: FleetTruth, _ machines: [Machine], _ random: inout SeededGenerator) throws -> [String]
    {
        for isWrite in [true, false] {
            for principal in FleetTruth.principals {
                let client = FleetClient(principal, sendsPositions: false)
                for id in FleetTruth.items {
                    let machine = random.pick(machines).larder
                    if isWrite {
                        // The response may be lost, but not the write.
                        _ = try machine.request("PATCH", "/items/\(id)", client.fields, body: "{}")
                    } else {
                        truth.change(.init(principal: principal, id: id))
                        let fields = client.fields + ["Cache-Control": "no-cache"]
                        _ = try machine.get("/items/\(id)", fields)
                    }
                }
                for machine in machines {
                    for path in ["/items"] + FleetTruth.items.map({ "/items/\($0)" }) {
                        var last = ""
                        let isTrue = try eventually(within: .seconds(20)) {
                            let response = try machine.larder.get(path, client.fields)
                            last = "\(response.cacheStatus) \(response.text)"
                            let shown = truth.shown(response, to: principal)
                            return shown?.allSatisfy { $0.value == truth.number($0.key) } ?? false
                        }
                        if !isTrue {
                            let cause = isWrite ? "writes" : "other changes"
                            return ["seed \(seed), at the end, after \(cause): \(principal) \(path): \(last)"]
                        }
                    }
                }
            }
        }
        return []
    }
}
