/// One value of a valid JSON text, with the text.
struct JSONSlice: Sendable {
    let text: [UInt8]
    let range: Range<Int>

    init(_ text: [UInt8], _ range: Range<Int>) {
        self.text = text
        self.range = range
    }

    /// The value of a whole text; nil if it is not JSON.
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

    /// The kind of a value, recognised by its first byte.
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
        /// The range of the quoted name.
        var nameRange: Range<Int>
        var value: JSONSlice
    }

    /// The members of an object in order, repeated ones included; empty for other values.
    var members: [Member] {
        var members: [Member] = []
        forEachMember { name, nameRange, value in
            members.append(Member(name: MemberPath(literal: name), nameRange: nameRange, value: JSONSlice(text, value)))
        }
        return members
    }

    /// Visits the members of an object in order: the quoted name, its range, and the value's range.
    func forEachMember(_ body: (UnsafeBufferPointer<UInt8>, Range<Int>, Range<Int>) -> Void) {
        guard kind == .object else { return }
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
                body(UnsafeBufferPointer(rebasing: buffer[position..<nameEnd]), position..<nameEnd, start..<end)
                position = scanner.skipSpace(end)
                guard scanner.byte(position) == UInt8(ascii: ",") else { return }
                position = scanner.skipSpace(position + 1)
            }
        }
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
