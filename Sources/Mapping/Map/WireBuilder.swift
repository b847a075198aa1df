/// The upstream's JSON while it is put together from values and the paths at which they belong.
struct WireBuilder {
    /// A value under construction.
    private enum Node {
        /// Nothing is known of it yet.
        case open
        case literal([UInt8])
        /// An object; one that is only on the way to its members is left out if nothing is put into them.
        case object([(name: [UInt8], node: Int)], isOnTheWay: Bool)
        case array([Int])
    }

    /// From so many members on, an object's names are looked up in a table.
    private static let tableSize = 24

    /// The outermost value is the first.
    private var nodes: [Node] = [.open]
    /// By large object, its members by name.
    private var tables: [Int: [[UInt8]: Int]] = [:]

    static let root = 0

    /// Whether nothing was put into a value.
    func isVacant(_ node: Int) -> Bool {
        switch nodes[node] {
        case .open: true
        case .object(let members, let isOnTheWay): isOnTheWay && members.allSatisfy { isVacant($0.node) }
        case .literal, .array: false
        }
    }

    /// Whether a value is an object without members.
    func isEmptyObject(_ node: Int) -> Bool {
        if case .object(let members, _) = nodes[node] { members.allSatisfy { isVacant($0.node) } } else { false }
    }

    /// The member of a value that is, or becomes, an object; nil if it is something else already.
    mutating func member(_ name: [UInt8], of node: Int) -> Int? {
        if case .open = nodes[node] { nodes[node] = .object([], isOnTheWay: true) }
        guard case .object(var members, let isOnTheWay) = nodes[node] else { return nil }
        if members.count < Self.tableSize {
            if let member = members.first(where: { $0.name == name }) { return member.node }
        } else if let member = tables[node]?[name] {
            return member
        }
        // Let go of the list first, so that it is not copied.
        nodes[node] = .open
        members.append((name, nodes.count))
        if members.count == Self.tableSize {
            tables[node] = Dictionary(uniqueKeysWithValues: members.map { ($0.name, $0.node) })
        } else if members.count > Self.tableSize {
            tables[node]?[name] = nodes.count
        }
        nodes[node] = .object(members, isOnTheWay: isOnTheWay)
        nodes.append(.open)
        return nodes.count - 1
    }

    /// The elements of a value that is, or becomes, an array of at least so many; nil if it is something else already.
    mutating func elements(_ count: Int, of node: Int) -> [Int]? {
        var elements: [Int] = []
        switch nodes[node] {
        case .open: break
        case .array(let known): elements = known
        case .literal, .object: return nil
        }
        while elements.count < count {
            elements.append(nodes.count)
            nodes.append(.open)
        }
        nodes[node] = .array(elements)
        return elements
    }

    /// How many elements a value has that is an array already; nil for others.
    func elementCount(of node: Int) -> Int? {
        if case .array(let elements) = nodes[node] { elements.count } else { nil }
    }

    /// Makes a value an object, even one without members, if nothing else is known of it; says whether it is one.
    @discardableResult
    mutating func openObject(_ node: Int) -> Bool {
        switch nodes[node] {
        case .open: nodes[node] = .object([], isOnTheWay: false)
        case .object(let members, _): nodes[node] = .object(members, isOnTheWay: false)
        case .literal, .array: return false
        }
        return true
    }

    /// Gives a value its JSON; one that has something already keeps it.
    mutating func set(_ node: Int, _ json: [UInt8]) {
        if case .open = nodes[node] { nodes[node] = .literal(json) }
    }

    /// Forgets what was put into a value.
    mutating func reopen(_ node: Int) { nodes[node] = .open }

    /// The JSON of a value; what nothing was put into is left out of objects, and null in arrays.
    func json(of node: Int = Self.root) -> [UInt8] {
        var output: [UInt8] = []
        append(node, to: &output)
        return output
    }

    private func append(_ node: Int, to output: inout [UInt8]) {
        switch nodes[node] {
        case .open:
            output.append(contentsOf: "null".utf8)
        case .literal(let json):
            output.append(contentsOf: json)
        case .object(let members, _):
            output.append(UInt8(ascii: "{"))
            let start = output.count
            for member in members where !isVacant(member.node) {
                if output.count > start { output.append(UInt8(ascii: ",")) }
                JSONString.append(String(decoding: member.name, as: UTF8.self), to: &output)
                output.append(UInt8(ascii: ":"))
                append(member.node, to: &output)
            }
            output.append(UInt8(ascii: "}"))
        case .array(let elements):
            output.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                append(element, to: &output)
            }
            output.append(UInt8(ascii: "]"))
        }
    }
}
