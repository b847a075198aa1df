import Glibc

/// The type of a JSON value.
public enum JSONKind: String, Sendable { case object, array, string, number, boolean, null }

/// One value of a valid JSON text, with the text.
struct JSONSlice: Sendable {
    let text: [UInt8]
    let range: Range<Int>

    init(_ text: [UInt8], _ range: Range<Int>) { (self.text, self.range) = (text, range) }

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

    /// Recognised by the first byte.
    var kind: JSONKind {
        switch text[range.lowerBound] {
        case UInt8(ascii: "{"): .object
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "\""): .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean
        case UInt8(ascii: "n"): .null
        default: .number
        }
    }

    var isNull: Bool { text[range.lowerBound] == UInt8(ascii: "n") }

    var bytes: ArraySlice<UInt8> { text[range] }

    func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        text.withUnsafeBufferPointer { body(UnsafeBufferPointer(rebasing: $0[range])) }
    }

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
    @inline(__always)
    func forEachMember(_ body: (UnsafeBufferPointer<UInt8>, Range<Int>, Range<Int>) -> Void) {
        guard kind == .object else { return }
        text.withUnsafeBufferPointer { buffer in
            let scanner = JSONScanner(buffer, allowsReferences: true)
            _ = scanner.scanMembers(range.lowerBound, depth: 0) { nameStart, name, start in
                let end = scanner.scanValue(start, depth: 0)
                if end >= 0 {
                    let name = nameStart..<name.end
                    body(UnsafeBufferPointer(rebasing: buffer[name]), name, start..<end)
                }
                return end
            }
        }
    }

    /// The elements of an array in order; empty for other values.
    var elements: [JSONSlice] {
        guard kind == .array else { return [] }
        var elements: [JSONSlice] = []
        text.withUnsafeBufferPointer { buffer in
            let scanner = JSONScanner(buffer, allowsReferences: true)
            _ = scanner.scanElements(range.lowerBound, depth: 0) { start in
                let end = scanner.scanValue(start, depth: 0)
                if end >= 0 { elements.append(JSONSlice(text, start..<end)) }
                return end
            }
        }
        return elements
    }

    /// Whether two values are equal as JSON (law 7): numbers as exact decimals, strings by unescaped code points,
    /// members in any order.
    ///
    /// If an object repeats a member, the repeated values are compared in order. In the value of a relation, a reference
    /// to an object equals the object's bare identity.
    func isEqual(to other: JSONSlice, as link: ObservedMember.Link? = nil) -> Bool {
        func compares(_ areSame: (UnsafeBufferPointer<UInt8>, UnsafeBufferPointer<UInt8>) -> Bool) -> Bool {
            withBytes { mine in other.withBytes { areSame(mine, $0) } }
        }
        if compares({ $0.hasSameBytes(as: $1) }) { return true }
        if let link, let mine = target(isStrict: link.isStrict), let theirs = other.target(isStrict: link.isStrict) {
            return mine.isSame(as: theirs)
        }
        guard kind == other.kind else { return false }
        switch kind {
        case .boolean, .null:
            return false
        case .number:
            return compares { JSONNumber($0) == JSONNumber($1) }
        case .string:
            return compares { mine, theirs in
                let isEscaped = mine.contains(UInt8(ascii: "\\")) || theirs.contains(UInt8(ascii: "\\"))
                return isEscaped && JSONString.codePoints(mine) == JSONString.codePoints(theirs)
            }
        case .array:
            let (mine, theirs) = (elements, other.elements)
            let one = link?.arity == .many ? link?.one : nil
            return mine.count == theirs.count && zip(mine, theirs).allSatisfy { $0.isEqual(to: $1, as: one) }
        case .object:
            let (mine, theirs) = (members, other.members)
            let one = link?.arity == .keyed ? link?.one : nil
            guard mine.count == theirs.count else { return false }
            // The order is nearly always the same.
            if zip(mine, theirs).allSatisfy({ $0.name == $1.name }) {
                return zip(mine, theirs).allSatisfy { $0.value.isEqual(to: $1.value, as: one) }
            }
            let values = Dictionary(grouping: theirs, by: \.name)
            return Dictionary(grouping: mine, by: \.name).allSatisfy { name, members in
                guard let others = values[name], others.count == members.count else { return false }
                return zip(members, others).allSatisfy { $0.value.isEqual(to: $1.value, as: one) }
            }
        }
    }

    /// The object that a value of a relation refers to.
    struct Target {
        /// The canonical text; compared byte by byte.
        var identity: String
        /// The object's name from a reference literal; nil for a bare identity, which does not show the model.
        var name: ObjectName?

        func isSame(as other: Target) -> Bool {
            identity.utf8.elementsEqual(other.identity.utf8) && (name == nil || other.name == nil || name == other.name)
        }
    }

    /// The object that a value of a relation refers to, by a reference literal or a bare identity.
    func target(isStrict: Bool = false) -> Target? {
        withBytes { bytes in
            if Reference.isReference(bytes, at: 0) {
                return Reference.name(at: 0..<bytes.count, in: bytes).map { Target(identity: $0.identity, name: $0) }
            }
            guard kind == .string || kind == .number, case .text(let text) = Identity.read(bytes, isStrict: isStrict)
            else { return nil }
            return Target(identity: text)
        }
    }

    var isReference: Bool { withBytes { Reference.isReference($0, at: 0) } }

    var containsReference: Bool { withBytes { Reference.next(in: $0, from: 0) != nil } }
}

extension UnsafeBufferPointer<UInt8> {
    /// Whether two buffers contain the same bytes; `elementsEqual` compares them one by one.
    func hasSameBytes(as other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count == other.count, let start = baseAddress, let otherStart = other.baseAddress else {
            return count == other.count
        }
        return memcmp(start, otherStart, count) == 0
    }
}
