/// The places of all values in a JSON text, found in one scan.
///
/// Code that visits values repeatedly or out of order need not scan again for their ends. Nodes are ordered by their
/// first bytes. The name of a member directly precedes its value:
///
///     {"a": [1, 2]}      0 {…}   1 "a"   2 […]   3 1   4 2
struct JSONIndex: Sendable {
    /// One value, or the name of a member.
    struct Node: Sendable {
        var start: UInt32
        var end: UInt32
        /// The index of the first node after this one and its descendants.
        var next: UInt32
    }

    /// Why a text cannot be indexed.
    enum Failure: Error { case malformed, tooDeep }

    let text: [UInt8]
    private(set) var nodes: [Node] = []

    /// Scans a text; reference literals are accepted as ordinary strings.
    init(_ text: [UInt8]) throws(Failure) {
        self.text = text
        guard text.count < Int(UInt32.max) else { throw .tooDeep }
        var builder = JSONIndexBuilder()
        let failure = text.withUnsafeBufferPointer { builder.build($0) }
        if let failure { throw failure }
        nodes = builder.nodes
    }

    /// The byte range of a value in the text.
    func range(_ node: Int) -> Range<Int> { Int(nodes[node].start)..<Int(nodes[node].end) }

    /// The value's bytes.
    func bytes(_ node: Int) -> ArraySlice<UInt8> { text[range(node)] }

    /// The kind of a value, recognised by its first byte.
    func kind(_ node: Int) -> JSONSlice.Kind { slice(node).kind }

    func isNull(_ node: Int) -> Bool { text[Int(nodes[node].start)] == UInt8(ascii: "n") }

    func slice(_ node: Int) -> JSONSlice { JSONSlice(text, range(node)) }

    /// Visits the members of an object in order; both arguments of `body` are nodes.
    @inline(__always)
    func forEachMember(of object: Int, _ body: (_ name: Int, _ value: Int) -> Void) {
        var name = object + 1
        let end = Int(nodes[object].next)
        while name < end {
            body(name, name + 1)
            name = Int(nodes[name + 1].next)
        }
    }

    /// Visits the elements of an array in order.
    @inline(__always)
    func forEachElement(of array: Int, _ body: (_ index: Int, _ value: Int) -> Void) {
        var element = array + 1
        var index = 0
        let end = Int(nodes[array].next)
        while element < end {
            body(index, element)
            element = Int(nodes[element].next)
            index += 1
        }
    }

    /// The elements of an array, or the member values of an object.
    func children(of container: Int) -> [Int] {
        var children: [Int] = []
        switch kind(container) {
        case .array: forEachElement(of: container) { children.append($1) }
        case .object: forEachMember(of: container) { children.append($1) }
        default: break
        }
        return children
    }

    /// The value of the member with this name, the last one if it is repeated.
    ///
    /// Nil if there is none or `object` is no object.
    func member(_ name: some Collection<UInt8>, of object: Int) -> Int? { lastMember(name, of: object)?.value }

    /// Like `member(_:of:)`, and whether the member is repeated.
    func lastMember(_ name: some Collection<UInt8>, of object: Int) -> (value: Int, isRepeated: Bool)? {
        guard kind(object) == .object else { return nil }
        var found: (value: Int, isRepeated: Bool)?
        forEachMember(of: object) { nameNode, value in if isName(nameNode, name) { found = (value, found != nil) } }
        return found
    }

    /// The unescaped name of a member; nil if it is not Unicode.
    func name(_ node: Int) -> String? {
        text.withUnsafeBufferPointer { JSONString.text(UnsafeBufferPointer(rebasing: $0[range(node)])) }
    }

    private func isName(_ node: Int, _ name: some Collection<UInt8>) -> Bool {
        let content = range(node).dropFirst().dropLast()
        if text[content].elementsEqual(name) { return true }
        guard text[content].contains(UInt8(ascii: "\\")) else { return false }
        return self.name(node).map { $0.utf8.elementsEqual(name) } ?? false
    }

    /// The JSON pointer (RFC 6901) of a value.
    func pointer(to node: Int) -> String {
        var pointer = ""
        var current = 0
        while current < node {
            var step: (component: String, node: Int)?
            let isWithin = { (value: Int) in value <= node && node < Int(nodes[value].next) }
            if kind(current) == .array {
                forEachElement(of: current) { if isWithin($1) { step = (String($0), $1) } }
            } else {
                forEachMember(of: current) { name, value in
                    if isWithin(value) || name == node { step = (self.name(name) ?? "\u{FFFD}", value) }
                }
            }
            guard let step else { break }
            pointer += "/" + JSONPointer.escaped(step.component)
            if step.node > node { break }
            current = step.node
        }
        return pointer
    }
}

/// Builds the nodes of an index without recursion.
private struct JSONIndexBuilder {
    var nodes: [JSONIndex.Node] = []
    /// The containers still open, innermost last.
    private var open: [Int] = []

    mutating func build(_ text: UnsafeBufferPointer<UInt8>) -> JSONIndex.Failure? {
        let scanner = JSONScanner(text, allowsReferences: true)
        nodes.reserveCapacity(text.count / 12 + 4)
        var position = scanner.skipSpace(0)
        while true {
            let byte = scanner.byte(position)
            if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
                guard open.count < JSONScanner.maximumDepth else { return .tooDeep }
                open.append(nodes.count)
                append(position, 0)
                position = scanner.skipSpace(position + 1)
                // In ASCII, the closing bracket is two after the opening one.
                if scanner.byte(position) != byte + 2 {
                    if byte == UInt8(ascii: "{") { position = name(scanner, position) }
                    guard position >= 0 else { return .malformed }
                    continue
                }
            } else {
                let end = scanner.scanValue(position, depth: 0)
                guard end >= 0 else { return .malformed }
                append(position, end)
                position = scanner.skipSpace(end)
            }
            guard let next = afterValue(scanner, position) else { return .malformed }
            if open.isEmpty { return next == text.count ? nil : .malformed }
            position = next
        }
    }

    /// Advances from the end of a value to the next value, closing containers on the way; nil if the text is not JSON.
    private mutating func afterValue(_ scanner: JSONScanner, _ start: Int) -> Int? {
        var position = start
        while let container = open.last {
            let bracket = scanner.base[Int(nodes[container].start)]
            let byte = scanner.byte(position)
            if byte == UInt8(ascii: ",") {
                position = scanner.skipSpace(position + 1)
                if bracket == UInt8(ascii: "{") { position = name(scanner, position) }
                return position >= 0 ? position : nil
            }
            guard byte == bracket + 2 else { return nil }
            nodes[container].end = UInt32(position + 1)
            nodes[container].next = UInt32(nodes.count)
            open.removeLast()
            position = scanner.skipSpace(position + 1)
        }
        return position
    }

    /// Adds the name of a member and returns the position of its value.
    private mutating func name(_ scanner: JSONScanner, _ position: Int) -> Int {
        guard scanner.byte(position) == UInt8(ascii: "\"") else { return JSONScanner.Failure.malformed }
        let end = scanner.scanString(position)
        guard end >= 0 else { return end }
        append(position, end)
        return scanner.skipColon(end)
    }

    private mutating func append(_ start: Int, _ end: Int) {
        nodes.append(JSONIndex.Node(start: UInt32(start), end: UInt32(end), next: UInt32(nodes.count + 1)))
    }
}
