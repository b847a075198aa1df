/// A value of a JSON text, for code that reads or edits a body without its models.
public struct JSONOutline: Sendable {
    private let index: JSONIndex
    private let node: Int

    private init(_ index: JSONIndex, _ node: Int) { (self.index, self.node) = (index, node) }

    /// The value of a whole text; nil if it is not JSON, or nested too deep for the scanner.
    public init?(_ text: [UInt8]) {
        guard let index = try? JSONIndex(text) else { return nil }
        self.init(index, 0)
    }

    private func at(_ node: Int) -> JSONOutline { JSONOutline(index, node) }

    /// The value of a member, the last one if the name is repeated; nil if there is none.
    public subscript(name: StaticString) -> JSONOutline? {
        index.member(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), of: node).map(at)
    }

    /// The names of an object's members, in order; nil for any other value.
    ///
    /// A name that is not Unicode is empty.
    public var names: [String]? {
        // The name of a member directly precedes its value.
        kind == .object ? index.children(of: node).map { index.name($0 - 1) ?? "" } : nil
    }

    /// The elements of a list; nil for any other value.
    public var elements: [JSONOutline]? { kind == .array ? index.children(of: node).map(at) : nil }

    /// The value at a key path; nil if there is none.
    ///
    /// The last one counts if a name is repeated, and a list for its elements.
    public func value(at path: String) -> JSONOutline? {
        guard let names = KeyPathSyntax.steps(of: path)?.leadingNames else { return nil }
        return names.reduce(node as Int?) { node, name in node.flatMap { index.member(name.utf8, of: $0) } }.map(at)
    }

    public var kind: JSONKind { index.kind(node) }

    public var bytes: ArraySlice<UInt8> { index.bytes(node) }

    /// The content of a string; nil for any other value, and for what is not Unicode.
    public var text: String? { kind == .string ? index.name(node) : nil }

    /// A number that is spelled as an integer; nil for any other value.
    public var integer: Int? { kind == .number ? Int(String(decoding: bytes, as: UTF8.self)) : nil }

    /// This value and all within it, in the order of the text.
    ///
    /// A path is such as `items[].user.login`, in which `[]` means any element of a list; it is empty for this value.
    public var values: [(path: String, value: JSONOutline)] {
        var values: [(path: String, value: JSONOutline)] = []
        collect("", into: &values)
        return values
    }

    private func collect(_ path: String, into values: inout [(path: String, value: JSONOutline)]) {
        values.append((path, self))
        for child in index.children(of: node) {
            let step = kind == .object ? (path.isEmpty ? "" : ".") + (index.name(child - 1) ?? "") : "[]"
            at(child).collect(path + step, into: &values)
        }
    }

    /// The canonical form of the text, the same for all texts that are equal as JSON: members sorted by name, no white
    /// space, plain numbers, unescaped strings.
    ///
    /// - Parameter pointers: the JSON pointers of values to leave out.
    public func canonical(leavingOut pointers: Set<String> = []) -> [UInt8] {
        var writer = Writer(index: index, left: pointers)
        writer.write(node)
        return writer.output
    }

    /// The form by which requests with the same meaning are known to be the same: as the canonical one, but with numbers
    /// as written.
    ///
    /// Nil if programs may read it differently: a member is repeated within its object, or text is not Unicode.
    public var unambiguous: [UInt8]? {
        var writer = Writer(index: index, keepsNumbers: true)
        writer.write(node)
        return writer.isAmbiguous ? nil : writer.output
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
            case .number, .boolean, .null: output += index.bytes(node)
            }
        }

        private mutating func writeObject(_ node: Int, at pointer: String) {
            var members: [(name: String, node: Int)] = []
            index.forEachMember(of: node) { [index] name, value in
                let name = index.name(name)
                isAmbiguous = isAmbiguous || name == nil
                members.append((name ?? "", value))
            }
            // By bytes: the standard library takes two spellings of one accented letter for equal. Repeated members keep
            // their order, which may be significant.
            members.sort {
                $0.name.utf8.elementsEqual($1.name.utf8)
                    ? $0.node < $1.node : $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
            }
            let hasRepeated = zip(members, members.dropFirst()).contains { $0.name.utf8.elementsEqual($1.name.utf8) }
            isAmbiguous = isAmbiguous || hasRepeated
            output.append(UInt8(ascii: "{"))
            for (name, node) in members {
                write(node, name: name, at: left.isEmpty ? "" : "\(pointer)/\(JSONPointer.escaped(name))")
            }
            output.append(UInt8(ascii: "}"))
        }

        /// Writes an element or a member, unless it is left out.
        private mutating func write(_ node: Int, name: String?, at pointer: String) {
            guard !left.contains(pointer) else { return }
            output.appendComma()
            if let name {
                JSONString.append(name, to: &output)
                output.append(UInt8(ascii: ":"))
            }
            write(node, at: pointer)
        }
    }
}
