/// Builds the upstream's JSON from values and their paths.
struct WireBuilder {
    /// A value under construction.
    private enum Node {
        /// Nothing is known of the value yet.
        case open
        case literal([UInt8])
        /// An object; if it was created only on the way to its members, it is left out when they stay empty.
        case object([(name: [UInt8], node: Int)], isOnTheWay: Bool)
        case array([Int])
        /// A detached value that has been merged.
        case merged(into: Int)
    }

    /// The number of members from which an object's names are looked up in a table.
    private static let tableSize = 24

    static let root = 0

    private var nodes: [Node] = [.open]
    /// By large object, its members by name.
    private var tables: [Int: [[UInt8]: Int]] = [:]
    /// Nodes whose complete JSON is also known as a literal.
    private var wholes: [(node: Int, json: [UInt8], isListed: Bool)] = []

    /// Creates a value that is built separately and later merged into another one by `fill`.
    mutating func makeDetached() -> Int { append(.open) }

    private mutating func append(_ node: Node) -> Int {
        nodes.append(node)
        return nodes.count - 1
    }

    /// The current node of a value that may have been merged.
    private func place(of node: Int) -> Int {
        if case .merged(let place) = nodes[node] { self.place(of: place) } else { node }
    }

    /// Whether nothing was put into a value.
    func isVacant(_ node: Int) -> Bool {
        switch nodes[place(of: node)] {
        case .object(let members, let isOnTheWay): isOnTheWay && members.allSatisfy { isVacant($0.node) }
        case .literal, .array: false
        case .open, .merged: true
        }
    }

    /// Whether a value is null, or an object that contains nothing but such values.
    private func isNothing(_ node: Int) -> Bool {
        switch nodes[place(of: node)] {
        case .literal(let json): json.first == UInt8(ascii: "n")
        case .object(let members, _): members.allSatisfy { isVacant($0.node) || isNothing($0.node) }
        case .array, .open, .merged: false
        }
    }

    /// Whether a value is an object, possibly still empty.
    func isObject(_ node: Int) -> Bool {
        if case .object = nodes[place(of: node)] { true } else { false }
    }

    /// The member of a value that is, or becomes, an object; nil if the value has another type already.
    mutating func member(_ name: [UInt8], of node: Int) -> Int? {
        let node = place(of: node)
        if case .open = nodes[node] { nodes[node] = .object([], isOnTheWay: true) }
        guard case .object(var members, let isOnTheWay) = nodes[node] else { return nil }
        if members.count < Self.tableSize {
            if let member = members.first(where: { $0.name == name }) { return member.node }
        } else if let member = tables[node]?[name] {
            return member
        }
        // The list is released first, so that it is not copied.
        nodes[node] = .open
        let member = append(.open)
        members.append((name, member))
        if members.count == Self.tableSize {
            tables[node] = Dictionary(uniqueKeysWithValues: members.map { ($0.name, $0.node) })
        } else if members.count > Self.tableSize {
            tables[node]?[name] = member
        }
        nodes[node] = .object(members, isOnTheWay: isOnTheWay)
        return member
    }

    /// The elements of a value that is, or becomes, an array of at least `count`; nil if it has another type already.
    mutating func elements(_ count: Int, of node: Int) -> [Int]? {
        let node = place(of: node)
        var elements: [Int] = []
        switch nodes[node] {
        case .open: break
        case .array(let known): elements = known
        case .literal, .object, .merged: return nil
        }
        while elements.count < count { elements.append(append(.open)) }
        nodes[node] = .array(elements)
        return elements
    }

    /// The number of elements of a value that already is an array.
    func elementCount(of node: Int) -> Int? {
        if case .array(let elements) = nodes[place(of: node)] { elements.count } else { nil }
    }

    /// Makes a value an object, even without members, unless it has another type; returns whether it is one.
    @discardableResult
    mutating func openObject(_ node: Int) -> Bool {
        let node = place(of: node)
        if case .open = nodes[node] { nodes[node] = .object([], isOnTheWay: false) }
        guard case .object(let members, _) = nodes[node] else { return false }
        nodes[node] = .object(members, isOnTheWay: false)
        return true
    }

    /// Discards an object without members.
    mutating func reopenIfEmpty(_ node: Int) {
        let node = place(of: node)
        if case .object(let members, _) = nodes[node], members.allSatisfy({ isVacant($0.node) }) { nodes[node] = .open }
    }

    /// Sets the JSON of a value, unless it has one already; returns whether the value now has this JSON.
    @discardableResult
    mutating func set(_ node: Int, _ json: [UInt8]) -> Bool {
        let node = place(of: node)
        guard isVacant(node) else { return isEqual(self.json(of: node), json) }
        nodes[node] = .literal(json)
        return true
    }

    private func isEqual(_ mine: [UInt8], _ other: [UInt8]) -> Bool {
        guard let mine = JSONSlice(mine), let other = JSONSlice(other) else { return false }
        return mine.isEqual(to: other)
    }

    // MARK: Merging

    /// Merges a detached value into another one: missing parts are filled in, existing parts stay.
    ///
    /// - Parameter isListed: whether the values are, or are within, elements of lists. A list of one member of each
    ///   element has null for elements without the member; such a null is not written.
    /// - Returns: whether all parts have a place; false if another value occupies it.
    mutating func fill(_ target: Int, from source: Int, isListed: Bool = false) -> Bool {
        let (target, source) = (place(of: target), place(of: source))
        guard target != source, !isVacant(source) else { return true }
        if isVacant(target) {
            (nodes[target], tables[target]) = (nodes[source], tables[source])
            nodes[source] = .merged(into: target)
            return true
        }
        var hasPlace = true
        switch (nodes[target], nodes[source]) {
        case (.literal(let mine), .literal(let other)): return isEqual(mine, other)
        case (.literal(let json), .object), (.literal(let json), .array):
            // If the literal already has the same values, it keeps its spelling.
            if holds(source, in: json, isListed: isListed) { return true }
            return expand(target) && fill(target, from: source, isListed: isListed)
        case (.object, .literal(let json)), (.array, .literal(let json)):
            guard holds(target, in: json, isListed: isListed) else {
                return expand(source) && fill(target, from: source, isListed: isListed)
            }
            // More may still be added later.
            wholes.append((target, json, isListed))
            return true
        case (.object(let known, let isOnTheWay), .object(let members, let isAlsoOnTheWay)):
            nodes[target] = .object(known, isOnTheWay: isOnTheWay && isAlsoOnTheWay)
            for (name, value) in members where !isVacant(value) {
                guard let member = member(name, of: target) else { continue }
                if isListed, isVacant(member), isNothing(value) { continue }
                if !fill(member, from: value, isListed: isListed) { hasPlace = false }
            }
        case (.array(let mine), .array(let others)) where mine.count == others.count:
            for (element, other) in zip(mine, others) where !fill(element, from: other, isListed: true) {
                hasPlace = false
            }
        default: return false
        }
        nodes[source] = .merged(into: target)
        return hasPlace
    }

    /// Whether JSON contains everything in a value.
    private func holds(_ node: Int, in json: [UInt8], isListed: Bool) -> Bool {
        (try? JSONIndex(json)).map { holds(node, $0, 0, isListed: isListed) } ?? false
    }

    private func holds(_ node: Int, _ index: JSONIndex, _ value: Int, isListed: Bool) -> Bool {
        switch nodes[place(of: node)] {
        case .open, .merged: return true
        case .literal(let json): return JSONSlice(json).map { index.slice(value).isEqual(to: $0) } ?? false
        case .object(let members, _):
            guard index.kind(value) == .object else { return isNothing(node) }
            return members.allSatisfy { name, node in
                guard let member = index.member(name, of: value) else {
                    return isVacant(node) || (isListed && isNothing(node))
                }
                return holds(node, index, member, isListed: isListed)
            }
        case .array(let elements):
            let values = index.children(of: value)
            guard index.kind(value) == .array, values.count == elements.count else { return false }
            return zip(elements, values).allSatisfy { holds($0, index, $1, isListed: true) }
        }
    }

    /// At last, replaces nodes by their complete literals, to restore the spelling, if nothing else was added.
    mutating func spellWholes() {
        for (node, json, isListed) in wholes where holds(node, in: json, isListed: isListed) {
            nodes[place(of: node)] = .literal(json)
        }
    }

    /// Splits a literal into members or elements; returns whether it is an object or a list.
    private mutating func expand(_ node: Int) -> Bool {
        guard case .literal(let json) = nodes[node], let index = try? JSONIndex(json) else { return false }
        switch index.kind(0) {
        case .object:
            nodes[node] = .object([], isOnTheWay: false)
            index.forEachMember(of: 0) { name, value in
                guard let text = index.name(name), let member = member(Array(text.utf8), of: node) else { return }
                // Of two members with one name the last counts.
                nodes[member] = .literal(Array(index.bytes(value)))
            }
        case .array: nodes[node] = .array(index.children(of: 0).map { append(.literal(Array(index.bytes($0)))) })
        case .string, .number, .boolean, .null: return false
        }
        return true
    }

    // MARK: Output

    /// The JSON of a value; empty nodes are left out of objects and written as null in arrays.
    func json(of node: Int = Self.root) -> [UInt8] {
        var output: [UInt8] = []
        append(node, to: &output)
        return output
    }

    private func append(_ node: Int, to output: inout [UInt8]) {
        switch nodes[place(of: node)] {
        case .open, .merged: output += "null".utf8
        case .literal(let json): output += json
        case .object(let members, _):
            output.append(UInt8(ascii: "{"))
            for member in members where !isVacant(member.node) {
                output.appendComma()
                JSONString.append(String(decoding: member.name, as: UTF8.self), to: &output)
                output.append(UInt8(ascii: ":"))
                append(member.node, to: &output)
            }
            output.append(UInt8(ascii: "}"))
        case .array(let elements):
            output.append(UInt8(ascii: "["))
            for element in elements {
                output.appendComma()
                append(element, to: &output)
            }
            output.append(UInt8(ascii: "]"))
        }
    }
}
