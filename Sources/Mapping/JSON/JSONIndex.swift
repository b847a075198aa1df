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
        nodes.reserveCapacity(text.count / 12 + 4)
        let end = text.withUnsafeBufferPointer { text in
            let scanner = JSONScanner(text, allowsReferences: true)
            let end = add(scanner.skipSpace(0), depth: 0, scanner)
            return end >= 0 ? scanner.skipSpace(end) : end
        }
        guard end == text.count else { throw end == JSONScanner.Failure.tooDeep ? .tooDeep : .malformed }
    }

    /// Adds a value and its descendants; returns the value's end or a `JSONScanner.Failure`.
    private mutating func add(_ start: Int, depth: Int, _ scanner: JSONScanner) -> Int {
        let container = nodes.count
        let end: Int
        switch scanner.byte(start) {
        case UInt8(ascii: "{"):
            append(start, start)
            end = scanner.scanMembers(start, depth: depth) { nameStart, name, value in
                append(nameStart, name.end)
                return add(value, depth: depth + 1, scanner)
            }
        case UInt8(ascii: "["):
            append(start, start)
            end = scanner.scanElements(start, depth: depth) { add($0, depth: depth + 1, scanner) }
        default:
            end = scanner.scanValue(start, depth: depth)
            if end >= 0 { append(start, end) }
            return end
        }
        if end >= 0 { (nodes[container].end, nodes[container].next) = (UInt32(end), UInt32(nodes.count)) }
        return end
    }

    private mutating func append(_ start: Int, _ end: Int) {
        nodes.append(Node(start: UInt32(start), end: UInt32(end), next: UInt32(nodes.count + 1)))
    }

    func range(_ node: Int) -> Range<Int> { Int(nodes[node].start)..<Int(nodes[node].end) }

    func bytes(_ node: Int) -> ArraySlice<UInt8> { text[range(node)] }

    func kind(_ node: Int) -> JSONKind { slice(node).kind }

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

    /// Visits the elements of an array, or the members of an object: the first node of each, and its value.
    func forEachEntry(of container: Int, _ body: (_ first: Int, _ value: Int) -> Void) {
        switch kind(container) {
        case .array: forEachElement(of: container) { body($1, $1) }
        case .object: forEachMember(of: container, body)
        default: break
        }
    }

    /// The elements of an array, or the member values of an object.
    func children(of container: Int) -> [Int] {
        var children: [Int] = []
        forEachEntry(of: container) { children.append($1) }
        return children
    }

    /// The value of the member with this name, the last one if it is repeated; nil if there is none.
    func member(_ name: some Collection<UInt8>, of object: Int) -> Int? { lastMember(name, of: object)?.value }

    /// Like `member(_:of:)`, and whether the member is repeated.
    func lastMember(_ name: some Collection<UInt8>, of object: Int) -> (value: Int, isRepeated: Bool)? {
        guard kind(object) == .object else { return nil }
        var found: (value: Int, isRepeated: Bool)?
        forEachMember(of: object) { nameNode, value in
            let isMeant = slice(nameNode).withBytes { JSONString.content(of: $0, is: name) }
            if isMeant { found = (value, found != nil) }
        }
        return found
    }

    /// The unescaped name of a member; nil if it is not Unicode.
    func name(_ node: Int) -> String? { slice(node).withBytes(JSONString.text) }

    /// The JSON pointer of the value that begins at an offset.
    func pointer(toOffset offset: Int) -> String { pointer(to: nodes.boundary(where: { $0.start >= offset })) }

    /// The JSON pointer (RFC 6901) of a value.
    func pointer(to node: Int) -> String {
        var (pointer, current) = ("", 0)
        while current < node {
            var position = 0
            var step: (name: String, value: Int)?
            forEachEntry(of: current) { first, value in
                if first <= node, node < nodes[value].next {
                    step = (first == value ? "\(position)" : name(first) ?? "\u{FFFD}", value)
                }
                position += 1
            }
            guard let step else { break }
            pointer += "/" + JSONPointer.escaped(step.name)
            current = step.value
        }
        return pointer
    }
}

extension RandomAccessCollection where Index == Int {
    /// The first index from which on all elements are so, which none before it is; the end if there is none.
    func boundary(where isSo: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if isSo(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
