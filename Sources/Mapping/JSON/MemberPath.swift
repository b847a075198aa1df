/// The way to a member within one object: names as in a JSON pointer, without the leading slash.
///
/// Compared byte by byte: to Swift's `String` canonically equivalent names are one, to JSON they are not.
struct MemberPath: Hashable, Sendable {
    let text: String
    /// Hash of the text: a path is looked up many times for each time it is made.
    private let digest: Int

    /// The object itself.
    static let root = MemberPath(text: "")

    private init(text: String) {
        self.text = text
        var (hasher, text) = (Hasher(), text)
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        digest = hasher.finalize()
    }

    /// A path as `text` spells it.
    init(pointer: String) {
        self.init(text: pointer)
    }

    /// A path of unescaped names.
    init(_ components: [String]) {
        self.init(text: components.map(JSONPointer.escaped).joined(separator: "/"))
    }

    /// The path of one name, given as a valid literal.
    init(literal: UnsafeBufferPointer<UInt8>) {
        if let name = JSONString.text(literal) {
            self.init(text: JSONPointer.escaped(name))
        } else {
            // Not Unicode: no declared name can be meant, but such names must still differ from each other.
            self.init(text: "~" + JSONString.codePoints(literal).map { String($0, radix: 16) }.joined(separator: "~"))
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

    static func == (left: MemberPath, right: MemberPath) -> Bool {
        guard left.digest == right.digest else { return false }
        var (mine, theirs) = (left.text, right.text)
        return mine.withUTF8 { mine in theirs.withUTF8 { mine.elementsEqual($0) } }
    }

    func hash(into hasher: inout Hasher) { hasher.combine(digest) }
}
