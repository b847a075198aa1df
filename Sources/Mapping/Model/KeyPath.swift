/// Parses key paths: member names separated by dots; `\.` is a dot within a name, `\\` a backslash.
enum KeyPathSyntax {
    /// The maximum number of steps; JSON is not read any deeper, so a longer path leads nowhere.
    static let maximumLength = JSONScanner.maximumDepth

    /// The member names of a path; nil if it is empty, has an empty component, ends in a lone backslash or is too long.
    static func components(of path: String) -> [String]? {
        var names = [String.UnicodeScalarView()]
        var scalars = path.unicodeScalars.makeIterator()
        while let scalar = scalars.next() {
            let last = names.count - 1
            switch scalar {
            case ".":
                guard names.count < maximumLength else { return nil }
                names.append(String.UnicodeScalarView())
            case "\\":
                // A backslash escapes dots, backslashes, and at the start of a name the characters of foreign path
                // syntaxes. Before anything else it stands for itself.
                guard let next = scalars.next() else { return nil }
                let isForeign = names[last].isEmpty && "$/{".unicodeScalars.contains(next)
                names[last] += next == "." || next == "\\" || isForeign ? [next] : [scalar, next]
            default: names[last].append(scalar)
            }
        }
        return names.contains(where: \.isEmpty) ? nil : names.map { String($0) }
    }

    /// The SQLite JSON path to a member: `$."user"."login"`.
    ///
    /// SQLite compares labels byte by byte with the spelling in the JSON, and ends a quoted label at the next quote. So
    /// it cannot address names that contain a quote, or names that the body spells with escapes.
    static func sqlitePath(_ components: some Collection<String>) -> String {
        "$" + components.map { ".\"\($0)\"" }.joined()
    }

    /// The steps of a path, of which `name[]` is two and `\[` a bracket within a name; nil if the path is malformed.
    static func steps(of path: String) -> [PathStep]? {
        guard foreign(path) == nil, let components = components(of: path) else { return nil }
        var steps: [PathStep] = []
        for component in components {
            var name = component[...]
            var arrays = 0
            while name.utf8.count >= 2, name.hasSuffix("[]"), !name.hasSuffix("\\[]"), arrays <= maximumLength {
                name = name.dropLast(2)
                arrays += 1
            }
            guard !name.isEmpty, steps.count + arrays < maximumLength else { return nil }
            steps.append(.name(String(name.replacing("\\[", with: "["))))
            steps += Array(repeating: .elements, count: arrays)
        }
        return steps
    }

    /// The steps of a declared path; throws if it is malformed.
    static func steps(of path: String, usedBy use: String, model: String) throws(MappingError) -> [PathStep] {
        guard let steps = steps(of: path) else { throw .invalidKeyPath(path, usedBy: use, model: model) }
        return steps
    }

    /// A member name as a component of a path.
    static func escaped(_ name: String) -> String {
        let isForeign = name == "$" || name.hasPrefix("/") || name.hasPrefix("{")
        return (isForeign ? "\\" : "")
            + name.replacing("\\", with: "\\\\").replacing(".", with: "\\.").replacing("[", with: "\\[")
    }

    /// The steps for a person to read.
    static func text(of path: [PathStep]) -> String {
        path.reduce("") { text, step in text + (step.name.map { text.isEmpty ? $0 : "." + $0 } ?? "[]") }
    }

    /// The path to the list whose elements a path ends in; nil if it ends elsewhere.
    static func list(ofElements path: String) -> String? {
        guard case .elements? = steps(of: path)?.last else { return nil }
        return String(path.dropLast(2))
    }

    // MARK: Mistakes

    /// What is wrong with a malformed key path, and what to write instead; nil for a valid one.
    static func complaint(about path: String) -> String? {
        if let complaint = foreign(path) { return complaint }
        guard steps(of: path) == nil else { return nil }
        let plain = path.drop { $0 == "." }
        let hint = plain.count < path.count && steps(of: String(plain)) != nil ? ", as in \"\(plain)\"" : ""
        return "write member names separated by dots\(hint), \\. for a dot within a name"
            + (path.utf8.count > maximumLength ? ", \(maximumLength) steps at most" : "")
    }

    /// The same for paths of other languages (JSONPath, JSON pointers, jq, templates): no JSON has such names.
    static func foreign(_ path: String) -> String? {
        if path == "$" || path.hasPrefix("$.") || path.hasPrefix("$[") {
            return "a key path begins at the object itself; leave out \"$\", or write \\$ for a member of that name"
        }
        if path.hasPrefix("/") {
            let dotted = path.split(separator: "/").joined(separator: ".")
            return
                "names are separated by dots; write \"\(dotted)\", or \\/ for a member whose name begins with a slash"
        }
        if path.hasPrefix("{") {
            return "a key path is written without braces; write \\{ for a member whose name begins with one"
        }
        for open in path.utf8.indices where path.utf8[open] == UInt8(ascii: "[") {
            let (before, inner) = (path[..<open], path[path.utf8.index(after: open)...])
            if !before.hasSuffix("\\"), !inner.hasPrefix("]") { return complaint(aboutBracket: inner, after: before) }
        }
        return nil
    }

    private static func complaint(aboutBracket inner: Substring, after before: Substring) -> String {
        let content = inner.prefix { $0 != "]" }
        if content.hasPrefix("'") || content.hasPrefix("\"") {
            let name = content.dropFirst().dropLast()
            return "names are separated by dots; write \"\(before.isEmpty ? "" : "\(before).")\(name)\""
        }
        if content == "*" { return "the elements of a list are written \"\(before)[]\"" }
        return "a list's elements are not told apart by their place; \"\(before)[]\" takes each of them, and \\[ is a "
            + "bracket within a name"
    }
}

/// One step of a key path: into a member, or to every element of an array.
enum PathStep: Hashable, Sendable {
    /// Into the member with this unescaped name.
    case name(String)
    /// To each element of the array (`tags[]`).
    case elements

    var name: String? { if case .name(let name) = self { name } else { nil } }

    // Steps are compared byte by byte: canonically equivalent names are equal as Swift strings, but not in JSON.

    static func == (left: PathStep, right: PathStep) -> Bool {
        guard let mine = left.name, let theirs = right.name else { return left.name == right.name }
        return mine.utf8.elementsEqual(theirs.utf8)
    }

    func hash(into hasher: inout Hasher) { hasher.combine(name.map { Array($0.utf8) }) }
}

extension Collection<PathStep> {
    /// The member names; nil if the path crosses an array.
    var names: [String]? { contains(.elements) ? nil : compactMap(\.name) }

    /// The names of the leading steps, up to the first step over an array.
    var leadingNames: [String] { prefix { $0 != .elements }.compactMap(\.name) }

    /// The steps after the leading names.
    var tail: SubSequence { drop { $0 != .elements } }

    /// The proper prefixes of the path, shortest first.
    var outer: [[PathStep]] { indices.dropFirst().map { Array(self[..<$0]) } }
}

/// A value from an object's surroundings; it is written with `@` in place of a key path.
public enum ContextValue: Sendable, Equatable {
    /// `@url`: the path and query of the request.
    case url
    /// `@url.owner`: the value of a capture of the route.
    case capture(String)
    /// `@query.page`: the value of a query parameter of the request, the first one with this name.
    case query(String)
    /// `@header.etag`: a header field of the response, by its name in lower case.
    case header(String)
    /// `@parent.id`: a key path in the nearest enclosing object of a declared model (or an envelope whose model the route names).
    case parent(String)
    /// `@root.id`: a key path in the outermost object, the envelope included.
    case root(String)
    /// `@index`: the position in the list, from 0.
    case index
    /// `@key`: the name of the member whose value the object is.
    case key
    /// `@self`: the object itself; with a relation to one object, a child made of its parent's own members.
    case itself

    /// Parses the spelling with `@`; nil if there is no such value.
    public init?(_ text: String) {
        guard text.hasPrefix("@") else { return nil }
        let parts = text.dropFirst().split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        switch (parts[0], parts.dropFirst().first.map(String.init)) {
        case (_, ""?): return nil
        case ("url", nil): self = .url
        case ("url", let name?): self = .capture(name)
        case ("query", let name?): self = .query(name)
        case ("header", let name?): self = .header(name.lowercased())
        case ("parent", let path?): self = .parent(path)
        case ("root", let path?): self = .root(path)
        case ("index", nil): self = .index
        case ("key", nil): self = .key
        case ("self", nil): self = .itself
        default: return nil
        }
    }

    /// The key path in an outer object.
    var keyPath: String? {
        switch self {
        case .parent(let path), .root(let path): path
        default: nil
        }
    }

    /// The names on its key path, none without one; nil if it is malformed or crosses an array.
    var names: [String]? { keyPath.map { KeyPathSyntax.steps(of: $0)?.names } ?? [] }

    /// Whether a declaration's text names a part of the surroundings rather than a member.
    public static func isSpelled(_ text: String) -> Bool { text.hasPrefix("@") }
}

/// The surroundings of a body.
public struct MappingContext: Sendable, Equatable {
    /// The path and query of the request, with credentials redacted.
    public var url: String
    /// The decoded values of the route's captures.
    public var captures: [String: String]
    /// The captures that the route binds to members of the outermost object (`object:`), by member.
    public var bound: [String: String]
    /// The header fields of the response, with names in lower case.
    public var fields: [String: String]

    /// The surroundings; parts that are left out are empty.
    public init(
        url: String = "",
        captures: [String: String] = [:],
        bound: [String: String] = [:],
        fields: [String: String] = [:]
    ) {
        (self.url, self.captures, self.bound, self.fields) = (url, captures, bound, fields)
    }

    public static let none = MappingContext()

    /// A value that the request or the response gives; nil if there is none, or if it is from elsewhere.
    func text(of value: ContextValue) -> String? {
        switch value {
        case .url: url.isEmpty ? nil : url
        case .capture(let name): captures[name]
        case .query(let name): QueryParameters(ofURL: url)[name]
        case .header(let name): fields[name]
        case .parent, .root, .index, .key, .itself: nil
        }
    }
}
