/// The path to a member within one object: names as in a JSON pointer, without the leading slash.
///
/// Paths are compared byte by byte: canonically equivalent names are equal as Swift `String`s, but not in JSON.
struct MemberPath: Hashable, Sendable {
    let text: String
    /// The hash of the text; a path is looked up much more often than it is created.
    private let digest: Int

    static let root = MemberPath(pointer: "")

    init(pointer: String) {
        text = pointer
        var (hasher, text) = (Hasher(), pointer)
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        digest = hasher.finalize()
    }

    /// A path from unescaped names.
    init(_ components: [String]) { self.init(pointer: components.map(JSONPointer.escaped).joined(separator: "/")) }

    /// The path of a single name, given as a valid literal.
    init(literal: UnsafeBufferPointer<UInt8>) {
        if let name = JSONString.text(literal) {
            self.init(pointer: JSONPointer.escaped(name))
        } else {
            // A name that is not Unicode matches no declared name, but such names must still differ from each other.
            self.init(pointer: JSONString.codePoints(literal).map { "~" + String($0, radix: 16) }.joined())
        }
    }

    /// The path of a member of the value at this path.
    func appending(_ name: MemberPath) -> MemberPath { text.isEmpty ? name : .init(pointer: text + "/" + name.text) }

    /// Whether this path is somewhere within `other`.
    func isWithin(_ other: MemberPath) -> Bool {
        text.utf8.count > other.text.utf8.count && text.utf8.starts(with: other.text.utf8)
            && text.utf8.dropFirst(other.text.utf8.count).first == UInt8(ascii: "/")
    }

    /// The name, if the path is one plain name.
    var name: String? { text.utf8.contains(UInt8(ascii: "/")) ? nil : Self.unescaped(text[...]) }

    /// The unescaped names on the path; nil if one is not Unicode.
    var names: [String]? {
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let names = parts.compactMap { Self.unescaped(Substring($0)) }
        return names.count == parts.count ? names : nil
    }

    private static func unescaped(_ text: Substring) -> String? {
        guard text.utf8.contains(UInt8(ascii: "~")) else { return String(text) }
        let parts = text.unicodeScalars.split(separator: "~", omittingEmptySubsequences: false)
        var name = String(parts[0])
        for part in parts.dropFirst() {
            guard let escape = part.first, escape == "0" || escape == "1" else { return nil }
            name += (escape == "0" ? "~" : "/") + String(part.dropFirst())
        }
        return name
    }

    static func == (left: MemberPath, right: MemberPath) -> Bool {
        guard left.digest == right.digest else { return false }
        var (mine, theirs) = (left.text, right.text)
        return mine.withUTF8 { mine in theirs.withUTF8 { mine.hasSameBytes(as: $0) } }
    }

    func hash(into hasher: inout Hasher) { hasher.combine(digest) }

    var parent: MemberPath {
        text.utf8.lastIndex(of: UInt8(ascii: "/")).map { MemberPath(pointer: String(text[..<$0])) } ?? .root
    }

    /// The member's own name; nil for names that are not Unicode.
    var lastName: String? {
        let slash = text.utf8.lastIndex(of: UInt8(ascii: "/"))
        return Self.unescaped(text[(slash.map(text.utf8.index(after:)) ?? text.startIndex)...])
    }
}

enum JSONPointer {
    /// A name escaped as a component of a JSON pointer (RFC 6901).
    static func escaped(_ name: String) -> String {
        guard name.utf8.contains(UInt8(ascii: "~")) || name.utf8.contains(UInt8(ascii: "/")) else { return name }
        return name.unicodeScalars.map { $0 == "~" ? "~0" : $0 == "/" ? "~1" : "\($0)" }.joined()
    }
}
