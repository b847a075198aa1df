/// Parses key paths: member names separated by dots; `\.` is a dot within a name, `\\` a backslash.
enum KeyPathSyntax {
    /// The maximum number of steps; JSON is not read any deeper, so a longer path leads nowhere.
    static let maximumLength = JSONScanner.maximumDepth

    /// The member names of a path; nil if it is empty, has an empty component, ends in a lone backslash or is too long.
    static func components(of path: String) -> [String]? {
        var components: [String] = []
        var name = String.UnicodeScalarView()
        var isEscaped = false
        for scalar in path.unicodeScalars {
            if isEscaped {
                // A backslash escapes dots, backslashes, and at the start of a name the characters of foreign path
                // syntaxes. Before anything else it stands for itself.
                let isSpecial = scalar == "." || scalar == "\\" || name.isEmpty && "$/{".unicodeScalars.contains(scalar)
                if !isSpecial { name.append("\\") }
                name.append(scalar)
                isEscaped = false
            } else if scalar == "\\" {
                isEscaped = true
            } else if scalar == "." {
                components.append(String(name))
                guard components.count < maximumLength else { return nil }
                name = String.UnicodeScalarView()
            } else {
                name.append(scalar)
            }
        }
        components.append(String(name))
        return isEscaped || components.contains("") ? nil : components
    }

    /// The SQLite JSON path to a member: `$."user"."login"`.
    ///
    /// SQLite compares labels byte by byte with the spelling in the JSON, and ends a quoted label at the next quote. So
    /// it cannot address names that contain a quote, or names that the body spells with escapes.
    static func sqlitePath(_ components: some Collection<String>) -> String {
        "$" + components.map { ".\"\($0)\"" }.joined()
    }
}

/// Detects paths of other languages, which would be read as names that no JSON has.
extension KeyPathSyntax {
    /// What is wrong with a malformed key path, and what to write instead; nil for a valid one.
    static func complaint(about path: String) -> String? {
        if let complaint = foreign(path) { return complaint }
        guard isMalformed(path) else { return nil }
        let plain = path.drop { $0 == "." }
        let hint =
            plain.count < path.count && !plain.isEmpty && !isMalformed(String(plain)) ? ", as in \"\(plain)\"" : ""
        return "write member names separated by dots\(hint), \\. for a dot within a name"
            + (path.utf8.count > maximumLength ? ", \(maximumLength) steps at most" : "")
    }

    /// The same for paths of other languages: JSONPath, JSON pointers, jq, templates.
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
        guard let bracket = path.utf8.firstIndex(of: UInt8(ascii: "[")) else { return nil }
        var rest = path[bracket...]
        while let open = rest.utf8.firstIndex(of: UInt8(ascii: "[")) {
            let inner = rest[rest.utf8.index(after: open)...]
            let isEscaped = open > path.startIndex && path[..<open].hasSuffix("\\")
            if !isEscaped, !inner.hasPrefix("]") { return Self.complaint(aboutBracket: inner, after: path[..<open]) }
            rest = inner
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

    private static func isMalformed(_ path: String) -> Bool { steps(of: path) == nil }
}

/// One step of a key path: into a member, or to every element of an array.
enum PathStep: Hashable, Sendable {
    /// Into the member with this unescaped name.
    case name(String)
    /// To each element of the array (`tags[]`).
    case elements

    // Steps are compared byte by byte: canonically equivalent names are equal as Swift strings, but not in JSON.

    static func == (left: PathStep, right: PathStep) -> Bool {
        switch (left, right) {
        case (.name(let mine), .name(let theirs)): mine.utf8.elementsEqual(theirs.utf8)
        case (.elements, .elements): true
        default: false
        }
    }

    func hash(into hasher: inout Hasher) {
        guard case .name(var name) = self else { return hasher.combine(0 as UInt8) }
        name.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(0xFF as UInt8)
    }
}

extension [PathStep] {
    /// The member names; nil if the path crosses an array.
    var names: [String]? {
        var names: [String] = []
        for step in self {
            guard case .name(let name) = step else { return nil }
            names.append(name)
        }
        return names
    }
}

extension KeyPathSyntax {
    /// The steps of a path; `name[]` counts as two.
    ///
    /// Nil if the path is malformed. `\[` is a bracket within a name.
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

    /// The path to the list whose elements a path ends in; nil if it ends elsewhere.
    static func list(ofElements path: String) -> String? {
        guard case .elements? = steps(of: path)?.last else { return nil }
        return String(path.dropLast(2))
    }
}
