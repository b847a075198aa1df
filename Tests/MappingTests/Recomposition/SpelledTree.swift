/// A JSON text as a tree that keeps every byte: white space, spelling, order, repeated names.
///
/// Written to be obviously right, not fast, and with nothing of the scanner under test in it.
indirect enum SpelledTree {
    /// A string, number or word as it is spelled.
    case scalar(String)
    /// The elements; `inside` is the white space of an empty one.
    case array([Element], inside: String)
    /// The members, and which object it is, if it is one of a declared model; `inside` is the white space of an empty one.
    case object([Member], inside: String, name: String?)

    struct Element {
        var before: String
        var value: SpelledTree
        var after: String
    }

    struct Member {
        var before: String
        /// The name as it is spelled, in quotes.
        var literal: String
        /// What stands between name and value, colon included.
        var between: String
        var value: SpelledTree
        var after: String

        var name: String { SpelledTree.unescaped(literal) ?? literal }
    }

    // MARK: Reading

    /// Reads a valid text; the white space around it is given back.
    static func read(_ text: String) -> (before: String, tree: SpelledTree, after: String) {
        var rest = Array(text.unicodeScalars)[...]
        let before = space(&rest)
        let tree = value(&rest)
        return (before, tree, space(&rest))
    }

    private static func space(_ rest: inout ArraySlice<Unicode.Scalar>) -> String {
        var space = ""
        while let next = rest.first, " \t\r\n".unicodeScalars.contains(next) {
            space.unicodeScalars.append(rest.removeFirst())
        }
        return space
    }

    private static func value(_ rest: inout ArraySlice<Unicode.Scalar>) -> SpelledTree {
        switch rest.first {
        case "{": return object(&rest)
        case "[": return array(&rest)
        case "\"": return .scalar(string(&rest))
        default:
            var word = ""
            while let next = rest.first, !" \t\r\n,]}".unicodeScalars.contains(next) {
                word.unicodeScalars.append(rest.removeFirst())
            }
            return .scalar(word)
        }
    }

    private static func string(_ rest: inout ArraySlice<Unicode.Scalar>) -> String {
        var string = "\""
        rest.removeFirst()
        while let next = rest.popFirst() {
            string.unicodeScalars.append(next)
            if next == "\"" { break }
            if next == "\\", let escaped = rest.popFirst() { string.unicodeScalars.append(escaped) }
        }
        return string
    }

    private static func array(_ rest: inout ArraySlice<Unicode.Scalar>) -> SpelledTree {
        rest.removeFirst()
        var elements: [Element] = []
        while true {
            let before = space(&rest)
            if elements.isEmpty, rest.first == "]" {
                rest.removeFirst()
                return .array([], inside: before)
            }
            let value = value(&rest)
            elements.append(Element(before: before, value: value, after: space(&rest)))
            if rest.removeFirst() == "]" { return .array(elements, inside: "") }
        }
    }

    private static func object(_ rest: inout ArraySlice<Unicode.Scalar>) -> SpelledTree {
        rest.removeFirst()
        var members: [Member] = []
        while true {
            let before = space(&rest)
            if members.isEmpty, rest.first == "}" {
                rest.removeFirst()
                return .object([], inside: before, name: nil)
            }
            let literal = string(&rest)
            var between = space(&rest)
            between.unicodeScalars.append(rest.removeFirst())
            between += space(&rest)
            let value = value(&rest)
            members.append(
                Member(before: before, literal: literal, between: between, value: value, after: space(&rest))
            )
            if rest.removeFirst() == "}" { return .object(members, inside: "", name: nil) }
        }
    }

    // MARK: Asking

    var members: [Member] { if case .object(let members, _, _) = self { members } else { [] } }

    var elements: [Element] { if case .array(let elements, _) = self { elements } else { [] } }

    var isObject: Bool { if case .object = self { true } else { false } }

    var isArray: Bool { if case .array = self { true } else { false } }

    /// Which object of a declared model it is.
    var objectName: String? { if case .object(_, _, let name) = self { name } else { nil } }

    /// The literal of a string or number.
    var literal: String? { if case .scalar(let literal) = self { literal } else { nil } }

    var isNumber: Bool { literal?.utf8.first.map { $0 == 0x2D || (0x30...0x39).contains($0) } ?? false }

    /// The text by which a string or number names an object.
    var identity: String? {
        guard let literal else { return nil }
        if isNumber { return Self.decimal(literal) }
        guard literal.hasPrefix("\""), let text = Self.unescaped(literal), !text.isEmpty else { return nil }
        return text
    }

    /// Equal for values that JSON has as equal: exact decimals, code points, members in any order.
    ///
    /// An object of a declared model is known by its name.
    var canonical: String {
        switch self {
        case .scalar(let literal):
            if isNumber { return "number " + Self.decimal(literal) }
            guard literal.hasPrefix("\"") else { return literal }
            return "string " + Self.units(literal).map { String($0) }.joined(separator: " ")
        case .array(let elements, _):
            return "[" + elements.map(\.value.canonical).joined(separator: ", ") + "]"
        case .object(let members, _, let name):
            if let name { return "object " + name }
            let named = members.enumerated().map {
                (Self.units($1.literal).map { String($0) }.joined(separator: " "), $0, $1)
            }
            return "{"
                + named.sorted { ($0.0, $0.1) < ($1.0, $1.1) }.map { "\($0.0): \($0.2.value.canonical)" }
                .joined(separator: ", ") + "}"
        }
    }

    /// The bytes, with names in the place of objects of declared models within.
    var outline: String {
        switch self {
        case .scalar(let literal): literal
        case .array(let elements, let inside):
            "[" + inside + elements.map { $0.before + $0.value.asPart + $0.after }.joined(separator: ",") + "]"
        case .object(let members, let inside, _):
            "{" + inside
                + members.map { $0.before + $0.literal + $0.between + $0.value.asPart + $0.after }
                .joined(separator: ",") + "}"
        }
    }

    private var asPart: String { objectName.map { "<\($0)>" } ?? outline }

    /// The names of the members in order, those of all objects within included.
    var shape: String {
        members.map { $0.name + ($0.value.isObject ? "{\($0.value.shape)}" : "") }.joined(separator: ",")
    }

    // MARK: Literals

    /// A decimal without insignificant zeros, plain where it is an integer of moderate size.
    private static func decimal(_ literal: String) -> String {
        var mantissa = literal
        var exponent = 0
        if let mark = literal.firstIndex(where: { $0 == "e" || $0 == "E" }) {
            mantissa = String(literal[..<mark])
            exponent = Int(literal[literal.index(after: mark)...]) ?? 0
        }
        let isNegative = mantissa.hasPrefix("-")
        if isNegative { mantissa.removeFirst() }
        if let point = mantissa.firstIndex(of: ".") {
            exponent -= mantissa[point...].count - 1
            mantissa.remove(at: point)
        }
        var digits = String(mantissa.drop { $0 == "0" })
        while digits.hasSuffix("0") {
            digits.removeLast()
            exponent += 1
        }
        guard !digits.isEmpty else { return "0" }
        let isPlain = exponent >= 0 && exponent < 20
        let magnitude = isPlain ? digits + String(repeating: "0", count: exponent) : "\(digits)e\(exponent)"
        return (isNegative ? "-" : "") + magnitude
    }

    /// The UTF-16 code units of a string literal.
    private static func units(_ literal: String) -> [UInt16] {
        var units: [UInt16] = []
        var rest = literal.unicodeScalars.dropFirst().dropLast()
        let plain: [Unicode.Scalar: UInt16] = ["n": 10, "t": 9, "r": 13, "b": 8, "f": 12]
        while let next = rest.popFirst() {
            guard next == "\\", let escaped = rest.popFirst() else {
                units += Array(String(next).utf16)
                continue
            }
            if escaped == "u" {
                units.append(UInt16(String(String.UnicodeScalarView(rest.prefix(4))), radix: 16) ?? 0)
                rest = rest.dropFirst(4)
            } else {
                units.append(plain[escaped] ?? UInt16(escaped.value))
            }
        }
        return units
    }

    /// The text of a string literal; nil if it is not Unicode.
    static func unescaped(_ literal: String) -> String? {
        let units = units(literal)
        let text = String(decoding: units, as: UTF16.self)
        return Array(text.utf16) == units ? text : nil
    }
}
