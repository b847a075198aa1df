/// Key paths as people write them: member names separated by dots; `\.` is a dot within a name, `\\` a backslash.
enum KeyPathSyntax {
    /// No JSON that is read is nested deeper, so that a longer path leads nowhere.
    static let maximumLength = JSONScanner.maximumDepth

    /// The member names of a path; nil if it is empty, has an empty component, ends in a lone backslash or is too long.
    static func components(of path: String) -> [String]? {
        var components: [String] = []
        var name = String.UnicodeScalarView()
        var isEscaped = false
        for scalar in path.unicodeScalars {
            if isEscaped {
                // A backslash before anything else is itself, so that only dots and backslashes are special.
                if scalar != ".", scalar != "\\" { name.append("\\") }
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
    /// SQLite compares labels byte by byte with what the JSON spells, and ends a quoted one at the next quote; a name
    /// that holds a quote cannot be addressed by it, nor can a name that a body spells with escapes.
    static func sqlitePath(_ components: some Collection<String>) -> String {
        "$" + components.map { ".\"\($0)\"" }.joined()
    }
}
