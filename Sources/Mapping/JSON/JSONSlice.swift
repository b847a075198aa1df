/// One value of a valid JSON text, together with the text.
struct JSONSlice: Sendable {
    let text: [UInt8]
    let range: Range<Int>

    init(_ text: [UInt8], _ range: Range<Int>) {
        self.text = text
        self.range = range
    }

    /// The value that a whole text is; nil if it is not JSON.
    init?(_ text: [UInt8]) {
        let range: Range<Int>? = text.withUnsafeBufferPointer { buffer in
            let scanner = JSONScanner(buffer, allowsReferences: true)
            let start = scanner.skipSpace(0)
            let end = scanner.scanValue(start, depth: 0)
            return end >= 0 ? start..<end : nil
        }
        guard let range else { return nil }
        self.init(text, range)
    }

    /// What a value begins with tells what it is.
    enum Kind { case object, array, string, number, word }

    var kind: Kind {
        switch text[range.lowerBound] {
        case UInt8(ascii: "{"): .object
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "\""): .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"), UInt8(ascii: "n"): .word
        default: .number
        }
    }

    var isNull: Bool { text[range.lowerBound] == UInt8(ascii: "n") }

    var bytes: ArraySlice<UInt8> { text[range] }

    /// Calls `body` with the value's bytes.
    func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        text.withUnsafeBufferPointer { body(UnsafeBufferPointer(rebasing: $0[range])) }
    }

    /// One member of an object.
    struct Member {
        var name: MemberPath
        /// The quoted name.
        var nameRange: Range<Int>
        var value: JSONSlice
    }

    /// The members of an object in order, repeated ones included; empty for other values.
    var members: [Member] {
        guard kind == .object else { return [] }
        var members: [Member] = []
        text.withUnsafeBufferPointer { buffer in
            let scanner = JSONScanner(buffer, allowsReferences: true)
            var position = scanner.skipSpace(range.lowerBound + 1)
            while scanner.byte(position) == UInt8(ascii: "\"") {
                let nameEnd = scanner.scanString(position)
                guard nameEnd >= 0 else { return }
                let start = scanner.skipColon(nameEnd)
                guard start >= 0 else { return }
                let end = scanner.scanValue(start, depth: 0)
                guard end >= 0 else { return }
                let name = MemberPath(literal: UnsafeBufferPointer(rebasing: buffer[position..<nameEnd]))
                members.append(
                    Member(name: name, nameRange: position..<nameEnd, value: JSONSlice(text, start..<end))
                )
                position = scanner.skipSpace(end)
                guard scanner.byte(position) == UInt8(ascii: ",") else { return }
                position = scanner.skipSpace(position + 1)
            }
        }
        return members
    }

    /// The elements of an array in order; empty for other values.
    var elements: [JSONSlice] {
        guard kind == .array else { return [] }
        var elements: [JSONSlice] = []
        text.withUnsafeBufferPointer { buffer in
            let scanner = JSONScanner(buffer, allowsReferences: true)
            var position = scanner.skipSpace(range.lowerBound + 1)
            guard scanner.byte(position) != UInt8(ascii: "]") else { return }
            while true {
                let end = scanner.scanValue(position, depth: 0)
                guard end >= 0 else { return }
                elements.append(JSONSlice(text, position..<end))
                position = scanner.skipSpace(end)
                guard scanner.byte(position) == UInt8(ascii: ",") else { return }
                position = scanner.skipSpace(position + 1)
            }
        }
        return elements
    }
}

/// The way to a member within one object: names as in a JSON pointer, without the leading slash.
///
/// Compared byte by byte: to Swift's `String` canonically equivalent names are one, to JSON they are not.
struct MemberPath: Hashable, Sendable {
    let text: String

    /// The object itself.
    static let root = MemberPath(text: "")

    private init(text: String) {
        self.text = text
    }

    /// A path as `text` spells it.
    init(pointer: String) {
        text = pointer
    }

    /// A path of unescaped names.
    init(_ components: [String]) {
        text = components.map(Self.escaped).joined(separator: "/")
    }

    /// The path of one name, given as a valid literal.
    init(literal: UnsafeBufferPointer<UInt8>) {
        if let name = JSONString.text(literal) {
            text = Self.escaped(name)
        } else {
            // Not Unicode: no declared name can be meant, but such names must still differ from each other.
            text = "~" + JSONString.codePoints(literal).map { String($0, radix: 16) }.joined(separator: "~")
        }
    }

    /// The path of a member of what is here.
    func appending(_ name: MemberPath) -> MemberPath {
        text.isEmpty ? name : MemberPath(text: text + "/" + name.text)
    }

    /// Whether this lies somewhere within `other`.
    func isWithin(_ other: MemberPath) -> Bool {
        text.utf8.count > other.text.utf8.count && text.utf8.starts(with: other.text.utf8)
            && text.utf8[text.utf8.index(text.startIndex, offsetBy: other.text.utf8.count)] == UInt8(ascii: "/")
    }

    /// The name, if the path is one plain name.
    var name: String? {
        guard text.utf8.contains(UInt8(ascii: "~")) || text.utf8.contains(UInt8(ascii: "/")) else { return text }
        guard !text.utf8.contains(UInt8(ascii: "/")) else { return nil }
        var name = String.UnicodeScalarView()
        var isEscaped = false
        for scalar in text.unicodeScalars {
            if isEscaped {
                guard scalar == "0" || scalar == "1" else { return nil }
                name.append(scalar == "0" ? "~" : "/")
                isEscaped = false
            } else if scalar == "~" {
                isEscaped = true
            } else {
                name.append(scalar)
            }
        }
        return isEscaped ? nil : String(name)
    }

    private static func escaped(_ name: String) -> String {
        guard name.utf8.contains(UInt8(ascii: "~")) || name.utf8.contains(UInt8(ascii: "/")) else { return name }
        var result = ""
        for scalar in name.unicodeScalars {
            switch scalar {
            case "~": result += "~0"
            case "/": result += "~1"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    static func == (left: MemberPath, right: MemberPath) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8)
    }

    func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
