/// All keys, as a tree; the tests write `config/larder.yaml` and its schema from it.
enum ConfigReference {
    static var root: [ConfigFacts] { ConfigDraft.keys.map(\.facts) }

    /// Where a key belongs, such as `under "store"` or `at the top of the file`; nil if nowhere or in several places.
    static func home(of name: String) -> String? {
        // A key both at the top and under an upstream is described at the top only.
        let homes = Set(
            sections(root, at: []).filter { $0.facts.contains { $0.name == name } }
                .map {
                    $0.path.starts(with: ["upstreams", "NAME"]) && $0.path.count > 2 && $0.path[2] != "credential"
                        ? Array($0.path.dropFirst(2)) : $0.path
                }
        )
        let top = "at the top of the file"
        guard homes.count == 1, let home = homes.first else { return homes.contains([]) ? top : nil }
        return home.isEmpty ? top : "under \"\(home.joined(separator: "."))\""
    }

    private static func sections(_ facts: [ConfigFacts], at path: [String]) -> [(path: [String], facts: [ConfigFacts])]
    { [(path, facts)] + facts.flatMap { inner($0.kind, at: path + [$0.name]) } }

    private static func inner(_ kind: ConfigKind, at path: [String]) -> [(path: [String], facts: [ConfigFacts])] {
        switch kind {
        case .section(let facts): sections(facts, at: path)
        case .named(let kind, _): inner(kind, at: path + ["NAME"])
        case .list(let kind), .strictList(let kind): inner(kind, at: path)
        case .either(let kinds): kinds.flatMap { inner($0, at: path) }
        default: []
        }
    }
}

/// Values in YAML syntax.
enum ConfigText {
    /// A text, quoted if it would otherwise be read as something else.
    static func scalar(_ text: String) -> String {
        let isPlain = !text.isEmpty && text.utf8.isAlphanumeric(or: "-_./:")
        return isPlain && !text.hasPrefix("-") && !text.hasSuffix(":") ? text : "\"\(text)\""
    }

    /// A list on one line.
    static func list(_ texts: [String]) -> String { "[\(texts.map(scalar).joined(separator: ", "))]" }
}
