import Foundation
import TestSupport

/// What is true at an origin of items, for each of several principals, and what each client has seen of it.
///
/// Every value occurs once: `NAME-ITEM-NUMBER`, with numbers that grow. So each response shows whose it is, and how old.
final class FleetTruth: Sendable {
    struct Item: Hashable, Sendable {
        let principal: String
        let id: Int
    }

    private struct State {
        /// The current number of each item.
        var numbers: [Item: Int] = [:]
        /// The numbers that were written by requests, by their names.
        var written: [String: Int] = [:]
        var random: SeededGenerator
    }

    static let principals = ["ada", "bela", "anonymous"]
    static let items = 1...4
    private let state: Monitor<State>

    init(seed: UInt64) { state = Monitor(State(random: SeededGenerator(seed: seed))) }

    /// The current number of an item.
    func number(_ item: Item) -> Int { state.current.numbers[item] ?? 0 }

    /// The number that a write has made; nil if it has not reached the origin.
    func written(by name: String) -> Int? { state.current.written[name] }

    /// Changes an item without any Larder.
    func change(_ item: Item) { state.withLock { $0.numbers[item, default: 0] += 1 } }

    /// An origin that takes its time, loses responses to writes now and then, and shows in half of them what was written.
    func origin() throws -> Origin {
        try Origin { [self] request in
            let principal = request["Authorization"]?.split(separator: " ").last.map(String.init) ?? "anonymous"
            let last = request.path.split(separator: "/").last.flatMap { Int($0) }
            let (delay, further, luck) = state.withLock {
                ($0.random.below(12), $0.random.below(12), $0.random.below(40))
            }
            pause(.milliseconds(delay))
            guard request.method == "PATCH", let last else {
                let body = body(of: principal, last)
                return OriginResponse.json(body, Fresh.hour).after(.milliseconds(further))
            }
            let item = Item(principal: principal, id: last)
            state.withLock { state in
                state.numbers[item, default: 0] += 1
                if let name = request["X-Write"] { state.written[name] = state.numbers[item] }
            }
            if luck == 0 { return .reset }
            let response = luck % 2 == 0 ? OriginResponse.empty(204) : .json(body(of: principal, last))
            return response.after(.milliseconds(further))
        }
    }

    private func body(of principal: String, _ id: Int?) -> String {
        let numbers = state.current.numbers
        func json(_ id: Int) -> String {
            #"{"id":\#(id),"text":"\#(principal)-\#(id)-\#(numbers[Item(principal: principal, id: id)] ?? 0)"}"#
        }
        return id.map(json) ?? "[\(Self.items.map(json).joined(separator: ","))]"
    }

    /// What a response shows; nil if it shows anything that was never true for the principal.
    func shown(_ response: Response, to principal: String) -> [Item: Int]? {
        let objects = (response.json as? [Any] ?? [response.json as Any]).map { $0 as? [String: Any] }
        var shown: [Item: Int] = [:]
        for object in objects {
            guard let object, let id = object["id"] as? Int, let text = object["text"] as? String else { return nil }
            let parts = text.split(separator: "-")
            let item = Item(principal: principal, id: id)
            guard parts.count == 3, parts[0] == principal, parts[1] == "\(id)", let number = Int(parts[2]),
                (0...self.number(item)).contains(number)
            else { return nil }
            shown[item] = number
        }
        return shown
    }
}

/// A position as clients get it.
struct FleetPlace: Hashable, Comparable {
    let epoch: UInt64
    private let entry: [UInt64]

    /// - Parameter text: the value of `Larder-Position`.
    init?(_ text: String?) {
        let numbers = text?.split(separator: "=").last?.split(separator: "-").compactMap { UInt64($0) } ?? []
        guard numbers.count == 3 else { return nil }
        (epoch, entry) = (numbers[0], Array(numbers[1...]))
    }

    static func < (one: FleetPlace, other: FleetPlace) -> Bool {
        one.epoch != other.epoch ? one.epoch < other.epoch : one.entry.lexicographicallyPrecedes(other.entry)
    }
}

/// A client of one principal that moves between machines.
struct FleetClient {
    let principal: String
    /// Whether it sends back the positions that it gets.
    let sendsPositions: Bool
    private var position = ""
    /// What it has seen, or written, in responses with a position.
    private var floor: [FleetTruth.Item: Int] = [:]

    init(_ principal: String, sendsPositions: Bool) {
        (self.principal, self.sendsPositions) = (principal, sendsPositions)
    }

    /// What it sends back next.
    var place: FleetPlace? { FleetPlace(position) }

    var fields: FieldLines {
        (principal == "anonymous" ? [:] : ["Authorization": "Bearer \(principal)"] as FieldLines)
            + (sendsPositions ? ["Larder-Position": position] as FieldLines : [:])
    }

    /// The least that a response may show now.
    func least(_ item: FleetTruth.Item) -> Int { sendsPositions ? floor[item] ?? 0 : 0 }

    /// Notes a response, or a write.
    mutating func note(_ shown: [FleetTruth.Item: Int], _ response: Response) {
        // Without a position it is not known which other machine knows it.
        guard sendsPositions, let said = response["Larder-Position"] else { return }
        position = said
        for (item, number) in shown { floor[item] = max(floor[item] ?? 0, number) }
    }
}

/// The least that one machine may serve from its cache.
final class ServedFloors: Sendable {
    private let floors = Monitor<[FleetTruth.Item: Int]>([:])

    var current: [FleetTruth.Item: Int] { floors.current }

    func note(_ shown: [FleetTruth.Item: Int]) {
        floors.withLock { for (item, number) in shown { $0[item] = max($0[item] ?? 0, number) } }
    }
}

/// What has been announced up to each position: a machine that has read so far serves nothing older from its cache.
///
/// How far a machine has read is what `larder_fleet_delay_seconds` measures. Here it follows from a hit for a request with a position.
final class AnnouncedValues: Sendable {
    private struct Value {
        let place: FleetPlace
        let number: Int
    }

    private struct State {
        var firstEpoch: UInt64?
        /// Of each item in each epoch, with growing places and numbers.
        var values: [UInt64: [FleetTruth.Item: [Value]]] = [:]
    }

    private let state = Monitor(State())

    /// Notes a response that had a position.
    ///
    /// Values that no write has made are not announced again in another epoch.
    func note(_ shown: [FleetTruth.Item: Int], at place: FleetPlace?, isWrite: Bool) {
        guard let place else { return }
        state.withLock { state in
            let first = state.firstEpoch ?? place.epoch
            state.firstEpoch = first
            guard isWrite || place.epoch == first else { return }
            for (item, number) in shown {
                var values = state.values[place.epoch]?[item] ?? []
                let index = values.firstIndex { $0.place > place } ?? values.count
                if index > 0, values[index - 1].number >= number { continue }
                values.insert(Value(place: place, number: number), at: index)
                // Later ones that say less.
                let end = values[(index + 1)...].firstIndex { $0.number > number } ?? values.count
                values.removeSubrange((index + 1)..<end)
                state.values[place.epoch, default: [:]][item] = values
            }
        }
    }

    /// What has been announced of a principal's items up to a place.
    func known(at place: FleetPlace, to principal: String) -> [FleetTruth.Item: Int] {
        let epoch = state.current.values[place.epoch] ?? [:]
        var known: [FleetTruth.Item: Int] = [:]
        for (item, values) in epoch where item.principal == principal {
            known[item] = values.last { $0.place <= place }?.number
        }
        return known
    }
}
