import Foundation
import TestSupport

/// One random history of three machines: reads, writes and other changes by several clients at a time, while things go wrong.
final class FleetHistory: Sendable {
    let seed: UInt64
    let steps: Int
    let kinds: [FleetTrouble]
    let network: FleetNetwork
    let machines: [Machine]
    private let truth: FleetTruth
    private let fleet: TestFleet
    private let announced = AnnouncedValues()
    private let failures = Monitor<[String]>([])
    private let taken = Monitor(0)
    /// The writes that others must know in the end.
    private let owed = Monitor<[Owed]>([])
    /// The last events, made into text when something has failed.
    private let events = Monitor<[@Sendable () -> String]>([])

    private static let clients = 6
    private static let machineCount = 3

    /// A machine, and whether it may be asked.
    final class Machine: Sendable {
        let index: Int
        let larder: Larder
        let floors = Dictionary(uniqueKeysWithValues: FleetTruth.principals.map { ($0, ServedFloors()) })
        /// Its port; nil while it is down.
        let port: Monitor<UInt16?>
        let origin = Monitor(OriginLink())
        /// How often it was killed.
        let lives = Monitor(0)

        init(_ index: Int, _ larder: Larder) { (self.index, self.larder, port) = (index, larder, Monitor(larder.port)) }

        /// Ends the daemon, and starts it again.
        func replace(_ end: (Larder) -> Void) throws {
            port.withLock { $0 = nil }
            end(larder)
            try larder.start()
            port.withLock { $0 = larder.port }
        }
    }

    /// Whether a machine reaches the origin, and how often it did not.
    struct OriginLink: Equatable {
        var isAway = false
        private var count = 0

        mutating func begin() {
            isAway = true
            count += 1
        }
    }

    private struct Owed {
        let item: FleetTruth.Item
        let number: Int
        let machine: Int
        let life: Int
    }

    /// - Parameter kinds: what goes wrong, in any order and again and again.
    init(seed: UInt64, steps: Int, _ kinds: [FleetTrouble] = []) throws {
        (self.seed, self.steps, self.kinds) = (seed, steps, kinds)
        truth = FleetTruth(seed: seed)
        let origin = try truth.origin()
        network = try FleetNetwork(
            Self.machineCount,
            origin: origin.port,
            hasReplica: kinds.contains(.aReplicaTakesOver),
            setsServerClock: kinds.contains(.theServersClockIsSet),
            setsMachineClock: kinds.contains(.aClockIsSet)
        )
        fleet = try TestFleet(
            Self.machineCount,
            origin,
            redis: network.server,
            network: network,
            "log: { level: debug }\n" + TestFleet.models
        )
        machines = fleet.machines.enumerated().map { Machine($0, $1) }
    }

    /// How many steps have been made.
    var done: Int { min(taken.current, steps) }

    /// Runs it; returns what is wrong, each with what was asked.
    func run() throws -> [String] {
        let running = Monitor(Self.clients + 2)
        for number in 0..<Self.clients {
            startThread { [self] in
                var random = SeededGenerator(seed: seed &* 31 &+ UInt64(number))
                let principal = FleetTruth.principals[number % FleetTruth.principals.count]
                var clients = [true, true, false].map { FleetClient(principal, sendsPositions: $0) }
                var connections = Connections()
                while failures.current.isEmpty {
                    let step = taken.next()
                    guard step < steps else { break }
                    self.step(&clients, &connections, &random, "step \(step)")
                }
                running.withLock { $0 -= 1 }
            }
        }
        // One thread for the server, and one for the machines.
        for isOfServer in [true, false] {
            startThread { [self] in
                var random = SeededGenerator(seed: ~seed &+ (isOfServer ? 1 : 0))
                do {
                    try trouble(kinds.filter { $0.isOfServer == isOfServer }, &random) { duration in
                        running.wait(duration) { $0 <= 2 }
                    }
                } catch { fail("\(error)") }
                running.withLock { $0 -= 1 }
            }
        }
        running.wait(.seconds(3600)) { $0 == 0 }
        guard failures.current.isEmpty else { return failures.current }
        try fleet.waitUntilConnected()
        var random = SeededGenerator(seed: seed)
        return try settle(&random)
    }

    // MARK: Notes

    func note(_ event: @autoclosure @escaping @Sendable () -> String) {
        let time = ContinuousClock.now
        events.withLock { events in
            events.append { "\(time) \(event())" }
            if events.count > 2_000 { events.removeFirst(1_000) }
        }
    }

    /// Notes what is wrong, with what came before.
    ///
    /// - Parameter name: in what came before; nil for all of it.
    func fail(_ what: String, about name: String? = nil) {
        let before = events.current.suffix(400).map { $0() }
            .filter { line in name.map { !line.contains(" step ") || line.contains(" \($0): ") } ?? true }
        let known = failures.current.isEmpty ? explanation() : ""
        failures.withLock {
            $0.append("seed \(seed), \(kinds.map(\.rawValue)): \(what)\n\(before.joined(separator: "\n"))\n\(known)")
        }
    }

    // MARK: One step

    /// The connections of one thread, to each machine.
    private struct Connections {
        private var open: [Int: (port: UInt16, client: Client)] = [:]

        mutating func client(of machine: Machine) -> Client? {
            guard let port = machine.port.current else { return nil }
            if let known = open[machine.index], known.port == port { return known.client }
            open[machine.index] = (try? Client(.port(port), limit: .seconds(60))).map { (port, $0) }
            return open[machine.index]?.client
        }

        /// Sends a request; nil if its connection has broken, as when its machine is killed.
        mutating func request(
            _ machine: Machine,
            _ method: String,
            _ path: String,
            _ fields: FieldLines,
            body: String? = nil
        ) -> Response? {
            guard let client = client(of: machine) else { return nil }
            guard let response = try? client.request(method, path, fields, body: body) else {
                open[machine.index] = nil
                return nil
            }
            if response["Connection"]?.lowercased() == "close" { open[machine.index] = nil }
            return response
        }
    }

    private func step(
        _ clients: inout [FleetClient],
        _ connections: inout Connections,
        _ random: inout SeededGenerator,
        _ name: String
    ) {
        let index = random.below(clients.count)
        let (machine, id) = (random.pick(machines), random.below(FleetTruth.items.count) + 1)
        let item = FleetTruth.Item(principal: clients[index].principal, id: id)
        let whose = "\(name) \(item.principal):"
        if random.once(in: 8) {
            truth.change(item)
            let number = truth.number(item)
            return note("\(whose) \(id) is changed to \(number)")
        }
        guard machine.port.current != nil else { return }
        if random.once(in: 5) { return write(item, &clients[index], machine, &connections, whose) }
        let path = random.once(in: 3) ? "/items" : "/items/\(id)"
        var fields = clients[index].fields
        if random.once(in: 10) { fields.append("Cache-Control", "no-cache") }
        guard let floors = machine.floors[item.principal] else { return }
        let (before, origin) = (floors.current, machine.origin.current)
        let sent = clients[index].sendsPositions ? clients[index].place : nil
        note("\(whose) GET \(path) of \(machine.index), client \(index)")
        guard let response = connections.request(machine, "GET", path, fields) else { return }
        note(
            "\(whose) GET \(path) of \(machine.index), client \(index) is \(response.cacheStatus), \(response["Larder-Position"] ?? "") \(response.text)"
        )
        let asked = fields
        func fail(_ what: String) {
            self.fail(
                "\(what)\n\(whose) \(path) of machine \(machine.index), \(asked.text)\(response.status) \(response.fields.text)\(response.text)",
                about: item.principal
            )
        }
        guard response.status == 200 else {
            // Without the origin not everything can be served.
            if origin.isAway || machine.origin.current != origin { return }
            // A machine that has stopped for longer than it waits may find that out before it reads what has come meanwhile.
            if kinds.contains(.machinesPause), response.text.contains("_timeout") { return }
            return fail("no response")
        }
        guard let shown = truth.shown(response, to: item.principal) else {
            return fail("another principal's, or invented")
        }
        guard !response.cacheStatus.contains("doubt") else { return }
        for (item, number) in shown {
            let least = clients[index].least(item)
            if number < least { fail("item \(item.id) was seen as \(least) before, or written") }
            if response.isHit, number < before[item] ?? 0 {
                fail("item \(item.id) may not be older than \(before[item] ?? 0) on this machine")
            }
        }
        if response.isHit {
            floors.note(shown)
            // It has read the stream up to there.
            if let sent { floors.note(announced.known(at: sent, to: item.principal)) }
        }
        announced.note(shown, at: FleetPlace(response["Larder-Position"]), isWrite: false)
        clients[index].note(shown, response)
    }

    private func write(
        _ item: FleetTruth.Item,
        _ client: inout FleetClient,
        _ machine: Machine,
        _ connections: inout Connections,
        _ whose: String
    ) {
        let life = machine.lives.current
        note("\(whose) PATCH \(item.id) of \(machine.index)")
        let fields = client.fields + ["X-Write": whose]
        guard let response = connections.request(machine, "PATCH", "/items/\(item.id)", fields, body: "{}") else {
            return note("\(whose) PATCH \(item.id) has no response")
        }
        let number = truth.written(by: whose)
        note("\(whose) PATCH \(item.id) is \(response.status), \(number ?? -1), \(response["Larder-Position"] ?? "")")
        guard (200..<300).contains(response.status), let number else { return }
        owed.withLock { $0.append(Owed(item: item, number: number, machine: machine.index, life: life)) }
        announced.note([item: number], at: FleetPlace(response["Larder-Position"]), isWrite: true)
        client.note([item: number], response)
    }

    // MARK: The end

    /// Whether every machine serves what it must once it is quiet: what was written through any of them, without having to be
    /// written again; then the truth, after a write to each item, and after each has been seen anew.
    private func settle(_ random: inout SeededGenerator) throws -> [String] {
        var least: [FleetTruth.Item: Int] = [:]
        // What a machine has to announce is lost with it, if the server loses it, too.
        for write in owed.current where machines[write.machine].lives.current == write.life {
            least[write.item] = max(least[write.item] ?? 0, write.number)
        }
        for principal in FleetTruth.principals {
            try show("what was written", to: principal) { $0.value >= least[$0.key] ?? 0 }
        }
        for isWrite in [true, false] {
            for principal in FleetTruth.principals {
                let fields = FleetClient(principal, sendsPositions: false).fields
                for id in FleetTruth.items {
                    let machine = random.pick(machines).larder
                    if isWrite {
                        _ = try eventually {
                            // The response may be lost, but not the write.
                            let name = "end \(principal) \(id)"
                            _ = try machine.request("PATCH", "/items/\(id)", fields + ["X-Write": name], body: "{}")
                            return truth.written(by: name) != nil
                        }
                    } else {
                        truth.change(.init(principal: principal, id: id))
                        _ = try machine.get("/items/\(id)", fields + ["Cache-Control": "no-cache"])
                    }
                }
                try show(isWrite ? "writes" : "other changes", to: principal) { [truth] in
                    $0.value == truth.number($0.key)
                }
            }
        }
        return failures.current
    }

    /// What the machines know, and what they did last.
    private func explanation() -> String {
        machines.map { machine in
            let known = FleetTruth.items.map { (try? machine.larder.command("why", "Item", "\($0)").output) ?? "" }
            let metrics = (try? machine.larder.admin("GET", "/metrics").text.split(separator: "\n")) ?? []
            let log = machine.larder.log.split(separator: "\n").suffix(2_000).map(String.init)
            let figures = metrics.filter { $0.hasPrefix("larder_fleet") }.map(String.init)
            return (["machine \(machine.index)"] + log + known + figures)
                .joined(separator: "\n")
        }.joined(separator: "\n")
    }

    /// Waits until all that machines serve to a principal satisfies a condition.
    private func show(
        _ what: String,
        to principal: String,
        _ isRight: (Dictionary<FleetTruth.Item, Int>.Element) -> Bool
    ) throws {
        let fields = FleetClient(principal, sendsPositions: false).fields
        for machine in machines where failures.current.isEmpty {
            for path in ["/items"] + FleetTruth.items.map({ "/items/\($0)" }) {
                var last = ""
                let isTrue = try eventually(within: .seconds(60)) {
                    let response = try machine.larder.get(path, fields)
                    last = "\(response.cacheStatus) \(response.text)"
                    return truth.shown(response, to: principal)?.allSatisfy(isRight) ?? false
                }
                if !isTrue {
                    fail(
                        "at the end, \(what): \(principal) \(path) of machine \(machine.index): \(last)",
                        about: principal
                    )
                    return
                }
            }
        }
    }
}
