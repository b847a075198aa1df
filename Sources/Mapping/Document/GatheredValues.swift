/// The values of an object's members with the policy `keep`, `union` or `sum`.
///
/// Each response keeps its own literal of such a member. The values are stored apart from the object's contributions,
/// because a value counts once it has been seen, whatever was seen later. Each carries the time of its observation, so
/// that the result does not depend on the order of arrival.
public struct GatheredValues: Sendable, Equatable {
    struct Item: Sendable {
        /// The time of the observation: the start of a read, the end of a write.
        var time: Int64
        /// For `union`, the position in the list; for `sum`, the response that showed the value.
        var origin: Int64
        var value: JSONSlice

        /// Whether it comes before another element of a union: by time, position and bytes, however they arrived.
        func precedes(_ other: Item) -> Bool {
            (time, origin) == (other.time, other.origin)
                ? value.bytes.lexicographicallyPrecedes(other.value.bytes) : (time, origin) < (other.time, other.origin)
        }
    }

    /// The limit on the elements of a union and on the addends of a sum.
    static let maximumElements = 1024

    private(set) var items: [MemberPath: [Item]] = [:]

    /// Creates an empty set of values.
    public init() {}

    public var isEmpty: Bool { items.isEmpty }

    /// Whether both have the same stored form, byte by byte.
    public static func == (left: GatheredValues, right: GatheredValues) -> Bool { left.bytes == right.bytes }

    // MARK: Gathering

    mutating func merge(_ members: ObservedMembers, from contribution: Contribution) {
        let time = contribution.observation.effectiveTime
        for (path, member) in members.gathered where !members.quarantined.contains(path) && !member.value.isNull {
            switch member.policy {
            case .keep:
                if let known = items[path]?.first, known.time <= time { continue }
                items[path] = [Item(time: time, origin: 0, value: member.value)]
            case .union: join(member.value, member.link, time: time, at: path)
            case .sum: add(Item(time: time, origin: contribution.origin, value: member.value), at: path)
            case .latest, .replace: break
            }
        }
    }

    private mutating func join(_ list: JSONSlice, _ link: ObservedMember.Link?, time: Int64, at path: MemberPath) {
        var known = items[path] ?? []
        for (index, element) in (list.kind == .array ? list.elements : [list]).enumerated() {
            let item = Item(time: time, origin: Int64(index), value: element)
            if let same = known.firstIndex(where: { $0.value.isEqual(to: element, as: link?.one) }) {
                let isEarlier = item.precedes(known[same])
                // A reference says more than a bare identity. Of two spellings, the earlier stays.
                let isBetter = element.isReference == known[same].value.isReference ? isEarlier : element.isReference
                if isBetter { known[same].value = element }
                if isEarlier { (known[same].time, known[same].origin) = (time, item.origin) }
            } else if known.count < Self.maximumElements {
                known.append(item)
            }
        }
        items[path] = known.sorted { $0.precedes($1) }
    }

    /// Keeps one addend per response, its newest: a response that is fetched again counts once.
    private mutating func add(_ item: Item, at path: MemberPath) {
        guard item.value.kind == .number else { return }
        var known = items[path] ?? []
        if let same = known.firstIndex(where: { $0.origin == item.origin }) {
            if item.time >= known[same].time { known[same] = item }
        } else if known.count < Self.maximumElements {
            known.append(item)
        }
        items[path] = known.sorted { $0.origin < $1.origin }
    }

    // MARK: Versions

    /// Renames a member for a new version of its model; an existing entry under the new name stays.
    mutating func rename(_ from: MemberPath, to: MemberPath) {
        for (path, gathered) in items where path == from || path.isWithin(from) {
            let rest = path.text.utf8.dropFirst(from.text.utf8.count)
            let renamed = MemberPath(pointer: to.text + String(decoding: rest, as: UTF8.self))
            guard items[renamed] == nil else { continue }
            (items[path], items[renamed]) = (nil, gathered)
        }
    }

    /// Converts each gathered value of a member; values that the conversion does not accept stay as they are.
    mutating func convert(_ path: MemberPath, _ converter: Converter) {
        guard let gathered = items[path] else { return }
        items[path] = gathered.map { item in
            guard !item.value.containsReference,
                case .value(let json) = converter.forward(Array(item.value.bytes)), let value = JSONSlice(json)
            else { return item }
            return Item(time: item.time, origin: item.origin, value: value)
        }
    }

    mutating func remove(_ path: MemberPath) { items = items.filter { $0.key != path && !$0.key.isWithin(path) } }

    // MARK: Results

    func values(of policies: (MemberPath) -> MergePolicy?) -> [MemberPath: [UInt8]] {
        var values: [MemberPath: [UInt8]] = [:]
        for (path, items) in items {
            switch policies(path) {
            case .keep: values[path] = items.first.map { Array($0.value.bytes) }
            case .union: values[path] = Self.list(items)
            case .sum: values[path] = Self.sum(items)
            case .latest, .replace, nil: break
            }
        }
        return values
    }

    private static func list(_ items: [Item]) -> [UInt8] {
        var output = [UInt8(ascii: "[")]
        for item in items {
            output.appendComma()
            output += item.value.bytes
        }
        return output + [UInt8(ascii: "]")]
    }

    private static func sum(_ items: [Item]) -> [UInt8]? {
        // A single addend keeps its spelling.
        guard items.count > 1 else { return items.first.map { Array($0.value.bytes) } }
        var total = DecimalSum()
        for item in items { total.add(item.value.withBytes(JSONNumber.init)) }
        return total.literal
    }

    // MARK: Stored form

    /// Reads the form written by `bytes`; anything else is ignored.
    public init(bytes: [UInt8]) {
        for member in JSONSlice(bytes)?.members ?? [] {
            let entries = member.value.elements
            guard let path = entries.first?.string else { continue }
            items[MemberPath(pointer: path)] = entries.dropFirst().compactMap { entry in
                let parts = entry.elements
                guard parts.count == 3, let time = Self.integer(parts[0]), let origin = Self.integer(parts[1]) else {
                    return nil
                }
                let value = JSONSlice(Array(parts[2].bytes), 0..<parts[2].range.count)
                return Item(time: time, origin: origin, value: value)
            }
        }
    }

    /// The values as JSON for the store; empty if there are none.
    public var bytes: [UInt8] {
        guard !items.isEmpty else { return [] }
        var output = [UInt8(ascii: "{")]
        for (index, entry) in items.sorted(by: { $0.key.text < $1.key.text }).enumerated() {
            output += Array("\(index == 0 ? "" : ",")\"\(index)\":[".utf8)
            JSONString.append(entry.key.text, to: &output)
            for item in entry.value {
                output += Array(",[\(item.time),\(item.origin),".utf8)
                output += item.value.bytes
                output.append(UInt8(ascii: "]"))
            }
            output.append(UInt8(ascii: "]"))
        }
        output.append(UInt8(ascii: "}"))
        return output
    }

    private static func integer(_ value: JSONSlice) -> Int64? { Int64(String(decoding: value.bytes, as: UTF8.self)) }
}
