/// What is known of the members of one object whose policy is not the newest value: `keep`, `union` and `sum`.
///
/// Such members never move between answers; each keeps its own literal. Here is what they come to for the object, apart
/// from its contributions, because a value that was once seen counts whatever was seen since. What is gathered does not
/// depend on the order of arrival: each value has the time of its observation.
public struct GatheredValues: Sendable, Equatable {
    /// One value that counts.
    struct Item: Sendable {
        /// When it was observed: of a read its start, of a write its end.
        var time: Int64
        /// `union`: its position in the list; `sum`: the answer that showed it.
        var origin: Int64
        var value: JSONSlice

        /// Whether it stands before another one of a joined list: by time, then by position, then, for lists that were
        /// asked for at one instant, by its bytes, so that what arrived first never decides.
        func precedes(_ other: Item) -> Bool {
            (time, origin) == (other.time, other.origin)
                ? value.bytes.lexicographicallyPrecedes(other.value.bytes)
                : (time, origin) < (other.time, other.origin)
        }
    }

    /// More elements of a joined list, or answers that a sum counts one by one, are not kept apart.
    static let limit = 1024

    private(set) var items: [MemberPath: [Item]] = [:]

    /// Nothing has been gathered.
    public init() {}

    /// Whether nothing has been gathered.
    public var isEmpty: Bool { items.isEmpty }

    /// Whether both come to the same, byte by byte.
    public static func == (left: GatheredValues, right: GatheredValues) -> Bool { left.bytes == right.bytes }

    // MARK: Gathering

    /// Takes in what one version shows.
    mutating func take(_ members: ObservedMembers, from contribution: Contribution) {
        let time = contribution.observation.effectiveTime
        for (path, member) in members.gathered where !members.quarantined.contains(path) && !member.value.isNull {
            switch member.policy {
            case .keep: keep(Item(time: time, origin: 0, value: member.value), at: path)
            case .union: join(member.value, member.link, time: time, at: path)
            case .sum: add(Item(time: time, origin: contribution.origin, value: member.value), at: path)
            case .latest, .replace: break
            }
        }
    }

    private mutating func keep(_ item: Item, at path: MemberPath) {
        guard let known = items[path]?.first else { return items[path] = [item] }
        if item.time < known.time { items[path] = [item] }
    }

    private mutating func join(_ list: JSONSlice, _ link: ObservedMember.Link?, time: Int64, at path: MemberPath) {
        let one = link.map { ObservedMember.Link(model: $0.model, arity: .one, isStrict: $0.isStrict) }
        var known = items[path] ?? []
        for (index, element) in (list.kind == .array ? list.elements : [list]).enumerated() {
            let item = Item(time: time, origin: Int64(index), value: element)
            let same = known.firstIndex { other in
                one.map { other.value.isEqual(to: element, as: $0) } ?? other.value.isEqual(to: element)
            }
            if let same {
                let isEarlier = item.precedes(known[same])
                // An object says more than its bare identity; of two spellings the first stays, whichever arrived first.
                let isBetter =
                    element.isReference == known[same].value.isReference ? isEarlier : element.isReference
                if isBetter { known[same].value = element }
                if isEarlier { (known[same].time, known[same].origin) = (time, item.origin) }
            } else if known.count < Self.limit {
                known.append(item)
            }
        }
        items[path] = known.sorted { $0.precedes($1) }
    }

    /// One addend for each answer, its newest: an answer that is asked for again counts once.
    private mutating func add(_ item: Item, at path: MemberPath) {
        guard item.value.kind == .number else { return }
        var known = items[path] ?? []
        if let same = known.firstIndex(where: { $0.origin == item.origin }) {
            if item.time >= known[same].time { known[same] = item }
        } else if known.count < Self.limit {
            known.append(item)
        }
        items[path] = known.sorted { $0.origin < $1.origin }
    }

    // MARK: Versions

    /// The same under the name that a member has since a version of its model; what is there under that name stays.
    mutating func rename(_ from: MemberPath, to: MemberPath) {
        for (path, gathered) in items {
            guard let renamed = path.moved(from: from, to: to), items[renamed] == nil else { continue }
            items[path] = nil
            items[renamed] = gathered
        }
    }

    /// Converts each value gathered of a member; what the conversion does not know stays as it is.
    mutating func convert(_ path: MemberPath, _ converter: Converter) {
        guard let gathered = items[path] else { return }
        items[path] = gathered.map { item in
            guard !item.value.containsReference,
                case .value(let json) = converter.forward(Array(item.value.bytes)), let value = JSONSlice(json)
            else { return item }
            var converted = item
            converted.value = value
            return converted
        }
    }

    /// Forgets what was gathered of a member.
    mutating func remove(_ path: MemberPath) {
        for known in items.keys where known.moved(from: path, to: path) != nil { items[known] = nil }
    }

    // MARK: Showing

    /// What each member comes to.
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
        for (index, item) in items.enumerated() {
            if index > 0 { output.append(UInt8(ascii: ",")) }
            output.append(contentsOf: item.value.bytes)
        }
        output.append(UInt8(ascii: "]"))
        return output
    }

    private static func sum(_ items: [Item]) -> [UInt8]? {
        guard let first = items.first else { return nil }
        // A lone addend keeps its spelling.
        guard items.count > 1 else { return Array(first.value.bytes) }
        var total = DecimalSum()
        for item in items { total.add(item.value.withBytes(JSONNumber.init)) }
        return total.literal
    }

    // MARK: As bytes

    /// Reads what `bytes` gave; what is not such is nothing.
    public init(bytes: [UInt8]) {
        guard !bytes.isEmpty, let value = JSONSlice(bytes) else { return }
        for member in value.members {
            guard let path = member.value.elements.first?.string else { continue }
            items[MemberPath(pointer: path)] = member.value.elements.dropFirst().compactMap { entry in
                let parts = entry.elements
                guard parts.count == 3, let time = Self.integer(parts[0]), let origin = Self.integer(parts[1]) else {
                    return nil
                }
                return Item(
                    time: time,
                    origin: origin,
                    value: JSONSlice(Array(parts[2].bytes), 0..<parts[2].range.count)
                )
            }
        }
    }

    /// As JSON, for a store; empty if there is nothing.
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

    private static func integer(_ value: JSONSlice) -> Int64? {
        Int64(String(decoding: value.bytes, as: UTF8.self))
    }
}

extension MemberPath {
    /// The path with its beginning replaced; nil if it begins otherwise.
    fileprivate func moved(from: MemberPath, to: MemberPath) -> MemberPath? {
        guard text.utf8.starts(with: from.text.utf8) else { return nil }
        let rest = text.utf8.dropFirst(from.text.utf8.count)
        guard rest.isEmpty || rest.first == UInt8(ascii: "/") else { return nil }
        return MemberPath(pointer: to.text + String(decoding: rest, as: UTF8.self))
    }
}
