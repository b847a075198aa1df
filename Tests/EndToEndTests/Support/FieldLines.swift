/// The header or trailer lines of a message, in order, in the spelling they have on the wire.
struct FieldLines: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    struct Line: Sendable, Equatable {
        let name: String
        let value: String
    }

    var lines: [Line]

    init(_ lines: [Line] = []) { self.lines = lines }

    init(dictionaryLiteral elements: (String, String)...) { lines = elements.map { Line(name: $0, value: $1) } }

    /// The value of the first line of this name, whatever its case.
    subscript(name: String) -> String? { all(name).first }

    /// The values of all lines of this name, in order.
    func all(_ name: String) -> [String] {
        lines.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    func contains(_ name: String) -> Bool { self[name] != nil }

    mutating func append(_ name: String, _ value: String) { lines.append(Line(name: name, value: value)) }

    static func + (one: FieldLines, other: FieldLines) -> FieldLines { FieldLines(one.lines + other.lines) }

    /// The lines as they are sent, each with its line end.
    var text: String { lines.map { "\($0.name): \($0.value)\r\n" }.joined() }
}
