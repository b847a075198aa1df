/// The members and values of a JSON text, with their places, for code that reads or edits a body without its models.
public struct JSONOutline: Sendable {
    private let index: JSONIndex

    /// Scans a text; nil if it is not JSON, or nested too deep for the scanner.
    public init?(_ text: [UInt8]) {
        guard let index = try? JSONIndex(text) else { return nil }
        self.index = index
    }

    /// The type of a value.
    public enum Kind: String, Sendable, CaseIterable { case object, array, string, number, boolean, null }

    /// One value, to be read by what it should be.
    public struct Node: Sendable {
        fileprivate let index: JSONIndex
        fileprivate let node: Int

        /// The value of a member, the last one if the name is repeated; nil if there is none.
        public subscript(name: StaticString) -> Node? {
            index.member(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), of: node).map(at)
        }

        /// The names of an object's members, in order; nil for any other value.
        ///
        /// A name that is not Unicode is empty.
        public var names: [String]? {
            guard index.kind(node) == .object else { return nil }
            var names: [String] = []
            index.forEachMember(of: node) { name, _ in names.append(index.name(name) ?? "") }
            return names
        }

        /// The elements of a list; nil for any other value.
        public var elements: [Node]? {
            index.kind(node) == .array ? index.children(of: node).map(at) : nil
        }

        /// The value at a key path; nil if there is none.
        ///
        /// The last one counts if a name is repeated, and a list for its elements.
        public func value(at path: String) -> Node? {
            guard let names = KeyPathSyntax.steps(of: path)?.leadingNames else { return nil }
            return names.reduce(node as Int?) { node, name in node.flatMap { index.member(name.utf8, of: $0) } }.map(at)
        }

        private func at(_ node: Int) -> Node { Node(index: index, node: node) }

        public var bytes: ArraySlice<UInt8> { index.bytes(node) }

        public var isObject: Bool { index.kind(node) == .object }

        public var isNull: Bool { index.kind(node) == .word && index.isNull(node) }

        /// The content of a string; nil for any other value, and for what is not Unicode.
        public var text: String? { index.kind(node) == .string ? index.name(node) : nil }

        /// A number that is spelled as an integer; nil for any other value.
        public var integer: Int? {
            index.kind(node) == .number ? Int(String(decoding: index.bytes(node), as: UTF8.self)) : nil
        }
    }

    public var root: Node { Node(index: index, node: 0) }

    /// One value with its path, in which `[]` means any element of a list.
    public struct Value: Sendable {
        /// A path such as `items[].user.login`; empty for the whole text.
        public let path: String
        public let kind: Kind
        public let bytes: ArraySlice<UInt8>
    }

    /// Every value, in the order of the text.
    public var values: [Value] {
        var values: [Value] = []
        collect(0, path: "", into: &values)
        return values
    }

    /// The canonical form of the text, the same for all texts that are equal as JSON: members sorted by name, no white
    /// space, plain numbers, unescaped strings.
    ///
    /// - Parameter pointers: the JSON pointers of values to leave out.
    public func canonical(leavingOut pointers: Set<String> = []) -> [UInt8] {
        var writer = Writer(index: index, left: pointers)
        writer.write(0)
        return writer.output
    }

    /// The form by which requests with the same meaning are known to be the same: members sorted by name, no white space,
    /// numbers as written, unescaped strings.
    ///
    /// Nil if programs may read it differently: a member is repeated within its object, or a name or a string is not Unicode.
    public var unambiguous: [UInt8]? {
        var writer = Writer(index: index, keepsNumbers: true)
        writer.write(0)
        return writer.isAmbiguous ? nil : writer.output
    }

    private func kind(_ node: Int) -> Kind {
        switch index.kind(node) {
        case .object: .object
        case .array: .array
        case .string: .string
        case .number: .number
        case .word: index.isNull(node) ? .null : .boolean
        }
    }

    private func collect(_ node: Int, path: String, into values: inout [Value]) {
        values.append(Value(path: path, kind: kind(node), bytes: index.bytes(node)))
        switch index.kind(node) {
        case .object:
            index.forEachMember(of: node) { name, value in
                let name = index.name(name) ?? ""
                collect(value, path: path.isEmpty ? name : "\(path).\(name)", into: &values)
            }
        case .array: index.forEachElement(of: node) { collect($1, path: path + "[]", into: &values) }
        default: break
        }
    }

    private struct Writer {
        let index: JSONIndex
        /// The JSON pointers of values to leave out.
        var left: Set<String> = []
        var keepsNumbers = false
        var output: [UInt8] = []
        var isAmbiguous = false

        mutating func write(_ node: Int, at pointer: String = "") {
            switch index.kind(node) {
            case .object: writeObject(node, at: pointer)
            case .array:
                output.append(UInt8(ascii: "["))
                for (position, element) in index.children(of: node).enumerated() {
                    write(element, name: nil, at: left.isEmpty ? "" : "\(pointer)/\(position)")
                }
                output.append(UInt8(ascii: "]"))
            case .string:
                if let text = index.name(node) {
                    JSONString.append(text, to: &output)
                } else {
                    isAmbiguous = true
                    output += index.bytes(node)
                }
            case .number where !keepsNumbers:
                output += index.slice(node).withBytes { JSONNumber($0).canonicalText.utf8 }
            case .number, .word: output += index.bytes(node)
            }
        }

        private mutating func writeObject(_ node: Int, at pointer: String) {
            var members: [(name: String, node: Int)] = []
            var hasOddName = false
            index.forEachMember(of: node) { [index] name, value in
                let name = index.name(name)
                hasOddName = hasOddName || name == nil
                members.append((name ?? "", value))
            }
            // By bytes: the standard library takes two spellings of one accented letter for equal. Repeated members keep
            // their order, which may be significant.
            members.sort {
                $0.name.utf8.elementsEqual($1.name.utf8)
                    ? $0.node < $1.node : $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
            }
            let hasRepeated = zip(members, members.dropFirst()).contains { $0.name.utf8.elementsEqual($1.name.utf8) }
            isAmbiguous = isAmbiguous || hasOddName || hasRepeated
            output.append(UInt8(ascii: "{"))
            for (name, node) in members {
                write(node, name: name, at: left.isEmpty ? "" : "\(pointer)/\(JSONPointer.escaped(name))")
            }
            output.append(UInt8(ascii: "}"))
        }

        /// Writes an element or a member, unless it is left out.
        private mutating func write(_ node: Int, name: String?, at pointer: String) {
            guard !left.contains(pointer) || left.isEmpty else { return }
            output.appendComma()
            if let name {
                JSONString.append(name, to: &output)
                output.append(UInt8(ascii: ":"))
            }
            write(node, at: pointer)
        }
    }
}
