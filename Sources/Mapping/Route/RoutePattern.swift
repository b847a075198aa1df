/// A path pattern such as `repos/*/*/issues/{n:#}`.
///
/// A pattern is a list of components between slashes; leading and trailing slashes mean nothing. A component is a
/// literal, `#` (digits only), `*` (any one component), or `**` (all remaining components, last only). `{name}` and
/// `{name:#}` are `*` and `#` that capture what they match. Literal text may follow these: `{name}.json`. The pattern
/// `/` is the root itself.
public struct RoutePattern: Sendable, Equatable {
    /// The requirement on one component of a path.
    public enum Component: Sendable, Hashable {
        /// Exactly this text, after percent-decoding; case-sensitive.
        case literal(String)
        /// One or more ASCII digits, followed by this text.
        case digits(suffix: String = "")
        /// Anything, followed by this text.
        case any(suffix: String = "")
        case rest

        /// The part of a component of a path that a wildcard stands for, or the whole; nil if this does not match it.
        func match(_ text: String) -> Substring? {
            switch self {
            case .literal(let literal): literal.utf8.elementsEqual(text.utf8) ? text[...] : nil
            case .digits(let suffix):
                Self.start(of: text, before: suffix).flatMap { $0.utf8.allSatisfy(\.isDigit) ? $0 : nil }
            case .any(let suffix): Self.start(of: text, before: suffix)
            case .rest: text[...]
            }
        }

        /// The text without its suffix; nil if it has another, or nothing before it.
        private static func start(of text: String, before suffix: String) -> Substring? {
            let count = text.utf8.count - suffix.utf8.count
            guard count > 0, text.utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8) else { return nil }
            return text[..<text.utf8.index(text.startIndex, offsetBy: count)]
        }

        var text: String {
            switch self {
            case .literal(let text): Self.escaped(text)
            // A letter after a star would not be read as text.
            case .digits(let suffix): "#" + Self.escaped(suffix, isSuffix: true)
            case .any(let suffix): "*" + Self.escaped(suffix, isSuffix: true)
            case .rest: "**"
            }
        }

        /// Whether it matches one text, which has one spelling.
        var isPlain: Bool { if case .literal(let text) = self { text.utf8.allSatisfy(Self.isPlain) } else { false } }

        /// Whether a byte needs no escape in a path (RFC 3986 §2.3).
        private static func isPlain(_ byte: UInt8) -> Bool {
            byte.isLetter || byte.isDigit || "-._~".utf8.contains(byte)
        }

        private static func escaped(_ text: String, isSuffix: Bool = false) -> String {
            text.utf8.enumerated().map { place, byte in
                if isPlain(byte), !(isSuffix && place == 0 && byte.isLetter) { return String(UnicodeScalar(byte)) }
                return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }.joined()
        }

        /// The order in which components are tried; of two that match the same text, the more specific one is first.
        var precedence: (rank: Int, length: Int) {
            switch self {
            case .literal: (0, 0)
            case .digits(let suffix): (suffix.isEmpty ? 3 : 1, -suffix.utf8.count)
            case .any(let suffix): (suffix.isEmpty ? 4 : 2, -suffix.utf8.count)
            case .rest: (5, 0)
            }
        }
    }

    /// The components in order, without names.
    public private(set) var components: [Component] = []
    /// The names of components, with the position of each.
    public private(set) var names: [(position: Int, name: String)] = []

    /// Parses a pattern; throws `.invalidPattern` with advice on what to write instead.
    public init(_ text: String) throws(MappingError) {
        do throws(Advice) {
            self = try Self(parsing: text)
        } catch {
            throw .invalidPattern(text, reason: error.reason)
        }
    }

    private init(parsing text: String) throws(Advice) {
        try Self.check(text)
        let parts = PathComponents.split(text)
        for (position, part) in parts.enumerated() {
            guard !part.isEmpty else {
                throw Advice("it has two slashes in a row, and an empty component matches nothing")
            }
            let (component, name) = try Self.component(String(Substring(part)))
            if component == .rest, position != parts.count - 1 {
                throw Advice("\"**\" must be the last component; nothing after it would be looked at")
            }
            if let name {
                if names.contains(where: { $0.name == name }) {
                    throw Advice("it captures \"\(name)\" twice; give each capture its own name")
                }
                names.append((position, name))
            }
            components.append(component)
        }
    }

    /// The pattern with the values of captures of the same names; a capture without a value stays a wildcard.
    public func filled(with captures: [String: String]) -> RoutePattern {
        var pattern = self
        pattern.names = []
        for (position, name) in names {
            guard let value = captures[name] else { continue }
            switch components[position] {
            case .digits(let suffix), .any(let suffix): pattern.components[position] = .literal(value + suffix)
            case .literal, .rest: break
            }
        }
        return pattern
    }

    /// The one path that the pattern matches, without a trailing slash; nil if there are several, or several spellings.
    public var onlyPath: String? {
        components.allSatisfy(\.isPlain) ? "/" + components.map(\.text).joined(separator: "/") : nil
    }

    /// The common prefix of all paths that the pattern matches, except paths that begin with several slashes.
    public var plainStart: String { onlyPath ?? components.prefix(while: \.isPlain).reduce("/") { $0 + $1.text + "/" } }

    /// The pattern as text that parses to the same pattern, without the names of captures.
    public var text: String { components.isEmpty ? "/" : components.map(\.text).joined(separator: "/") }

    /// Whether the pattern matches a path as sent: percent-encoded, without prefix, base path and query.
    public func matches(path: String) -> Bool {
        guard let path = PathComponents.decoded(path) else { return false }
        if components == [.rest] { return true }
        let isLongEnough = path.count == components.count || components.last == .rest && path.count > components.count
        return isLongEnough && matchingPrefix(of: path) == components.count
    }

    /// How many components match, counted from the start.
    func matchingPrefix(of path: [String]) -> Int { zip(components, path).prefix { $0.match($1) != nil }.count }

    /// Whether both have the same components and the same names at the same places.
    public static func == (left: RoutePattern, right: RoutePattern) -> Bool {
        left.components == right.components
            && left.names.elementsEqual(right.names) { $0.position == $1.position && $0.name == $1.name }
    }

    private static func component(_ part: String) throws(Advice) -> (Component, name: String?) {
        if part == "**" { return (.rest, nil) }
        // A name after a star is a wildcard of other routers.
        if part.hasPrefix("**") || part.hasPrefix("{*")
            || part.hasPrefix("*") && part.dropFirst().first?.isLetter == true
        {
            throw Advice("\"\(part)\" is not a wildcard; what follows as a whole is \"**\", which has no name")
        }
        if part.hasPrefix("{"), !part.contains("}") {
            throw Advice("\"\(part)\" has \"{\" without \"}\"; write {name} or {name:#}")
        }
        let wildcard =
            switch part.first {
            case "#", "*": part.prefix(1)
            case "{": part.firstIndex(of: "}").map { part[...$0] } ?? ""
            default: Substring()
            }
        let suffix = try literal(part.dropFirst(wildcard.count), in: part)
        switch wildcard {
        case "#": return (.digits(suffix: suffix), nil)
        case "*": return (.any(suffix: suffix), nil)
        case "" where suffix == "." || suffix == "..":
            throw Advice("paths are looked at without dot segments; write the path that \"\(part)\" leads to")
        case "": return (.literal(suffix), nil)
        case let capture:
            let (name, isDigits) = try Self.capture(capture.dropFirst().dropLast())
            return (isDigits ? .digits(suffix: suffix) : .any(suffix: suffix), name)
        }
    }

    /// The decoded text of a component, or of what follows its wildcard.
    private static func literal(_ rest: Substring, in part: String) throws(Advice) -> String {
        if let wild = rest.first(where: { "*{}".contains($0) }) {
            throw Advice(
                "\"\(part)\" has \"\(wild)\" after other text; a component has one wildcard or capture, at its beginning"
            )
        }
        if rest.utf8.contains(UInt8(ascii: "#")) {
            throw Advice(
                "\"#\" (digits) must be at the beginning of a component; one that is part of a name is written %23"
            )
        }
        guard let literal = PathComponents.decode(rest.utf8) else {
            throw Advice("\"\(part)\" is not valid percent-encoded UTF-8")
        }
        return literal
    }

    private static func capture(_ inner: Substring) throws(Advice) -> (name: String, isDigits: Bool) {
        let pieces = inner.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(pieces[0])
        if name.hasPrefix("*") || name.hasSuffix("+") || pieces.count == 2 && pieces[1].hasPrefix("**") {
            throw Advice("\"{\(inner)}\" is not a capture; what follows as a whole is \"**\", which has no name")
        }
        guard let first = name.utf8.first, first.isLetter,
            name.utf8.allSatisfy({ $0.isLetter || $0.isDigit || $0 == UInt8(ascii: "_") })
        else {
            throw Advice(
                "\"{\(inner)}\" is not a capture; write {name} or {name:#}, the name being letters, digits and \"_\""
            )
        }
        guard pieces.count == 1 || pieces[1] == "#" else {
            throw Advice(
                "\"{\(inner)}\" is not a capture; after the colon only \"#\" (digits) is allowed; write {\(name):#} for digits, "
                    + "{\(name)} for anything"
            )
        }
        return (name, pieces.count == 2)
    }

    /// Rejects what is no path below the upstream's URL, the syntax of other routers, and regular expressions.
    private static func check(_ text: String) throws(Advice) {
        if text.isEmpty { throw Advice("it is empty; write \"/\" for the root itself or \"**\" for every path") }
        if let space = text.firstIndex(of: " "), text[..<space].allSatisfy({ $0.isASCII && $0.isUppercase }) {
            throw Advice("a pattern is the path alone; the method is a key of its own, as in method: \(text[..<space])")
        }
        // These never occur in a path unless percent-encoded (RFC 3986 §3.3).
        if text.hasPrefix("^") || ["\\", "[", "(?"].contains(where: text.contains) {
            throw Advice(
                "it is not a regular expression; \"#\" is a component of digits, \"*\" any one, \"**\" all that follow"
            )
        }
        for part in text.split(separator: "/") { try check(part) }
        if let wrong = text.first(where: { $0.isWhitespace || "<>\"^`|".contains($0) }) {
            throw Advice(
                wrong.isWhitespace
                    ? "it has a blank; in a path that is %20"
                    : "\"\(wrong)\" is not allowed in a path; write it percent-encoded"
            )
        }
        if text.utf8.contains(UInt8(ascii: "?")) {
            throw Advice("a pattern matches the path only; leave out what follows \"?\"")
        }
        if let mark = text.firstRange(of: "://") {
            let path = text[mark.upperBound...].drop { $0 != "/" }
            throw Advice("a pattern is a path below the upstream's URL; leave out \"\(text[..<path.startIndex])\"")
        }
        if text.hasPrefix("//") {
            throw Advice("what begins with two slashes names a host; a pattern is a path, with one or none")
        }
    }

    /// Rejects a component in the syntax of another router.
    private static func check(_ part: Substring) throws(Advice) {
        let name = part.drop { !$0.isLetter }.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
        if part.hasPrefix("{"), part.hasSuffix("?}") || part.hasPrefix("{?") {
            throw Advice("no component is optional; write two rules, one with it and one without")
        }
        if part.hasPrefix(":"), part.count > 1 {
            throw Advice(
                "\"\(part)\" is a literal; a capture is written {\(name)}, or {\(name):#} for digits "
                    + "(and a colon at the beginning %3A)"
            )
        }
        if part.hasPrefix("<"), part.hasSuffix(">") {
            let name = part.dropLast().split(separator: ":").last.map { $0.drop { $0 == "<" } } ?? name
            throw Advice("\"\(part)\" is a literal; a capture is written {\(name)}, or {\(name):#} for digits")
        }
        if part.hasSuffix("(") || part.hasPrefix(")") || part.contains("(") != part.contains(")") {
            throw Advice(
                "no part of a path is optional; write two rules, one with it and one without "
                    + "(and a parenthesis %28 or %29)"
            )
        }
    }

    /// What is wrong with a pattern, and what to write instead.
    private struct Advice: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }
}
