extension ConfigReference {
    /// The text of `config/larder.yaml`: every key, documented, at its default, commented out.
    ///
    /// Lines that begin with `# ` are text. Taking the `#` off all others gives a
    /// config with every key in it; those that end in the word example have no
    /// default.
    static var sample: String {
        var lines = header
        for fact in root {
            lines.append("")
            lines += entry(fact, indentation: "").map { $0.hasPrefix("# ") ? $0 : "#" + $0 }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Ends the lines of keys that are shown with an example, because leaving them out is the default.
    static let exampleMark = "  # example"

    private static let header = [
        "# yaml-language-server: $schema=larder.schema.json",
        "#",
        "# The configuration of Larder. Every key is listed with its default, commented out: remove",
        "# the # before what you want to change. Lines that end in \"example\" show a possible value;",
        "# without the key there is none, or what its text says.",
        "#",
        "# Durations are written 500ms, 30s, 5m, 1h30m, 1d, forever; sizes 512KiB, 64MiB, 1GiB",
        "# (powers of 1024) or 1MB (powers of 1000). \"${NAME}\" is the environment variable NAME,",
        "# \"$${\" a literal \"${\". A list of one value may be written without brackets.",
        "# Flags on the command line override this file, and this file overrides the defaults.",
        "#",
        "# `larder check --config FILE` names every mistake with its line, and what to write instead.",
    ]

    /// A key with its text above it and what stands under it.
    private static func entry(_ fact: ConfigFacts, indentation: String, isExample: Bool = false) -> [String] {
        let prose = wrapped(fact.text + range(of: fact.kind), width: 96 - indentation.count).map {
            "\(indentation)# \($0)"
        }
        let isExample = !isExample && fact.fallback == nil && !fact.isRequired
        let mark = isExample && fact.name != "upstreams" && !fact.isPlainSection ? exampleMark : ""
        return prose + value(fact, indentation: indentation, mark: mark)
    }

    private static func value(_ fact: ConfigFacts, indentation: String, mark: String) -> [String] {
        let key = "\(indentation)\(fact.name):"
        if let fallback = fact.fallback, fact.sample.isEmpty { return ["\(key) \(fallback)\(mark)"] }
        if let example = fact.example, fact.sample.isEmpty { return ["\(key) \(example)\(mark)"] }
        let inner = indentation + "  "
        var lines = [key + mark]
        switch fact.kind {
        case .section(let facts):
            lines += facts.flatMap { entry($0, indentation: inner) }
        case .named(.section(let facts), let name):
            lines.append("\(inner)\(name):")
            lines += facts.flatMap { entry($0, indentation: inner + "  ") }
        case .strictList(.section(let facts)):
            lines.append("\(inner)-")
            lines += facts.flatMap { entry($0, indentation: inner + "  ") }
        default: break
        }
        return lines + fact.sample.map { inner + $0 }
    }

    /// The bounds of a number, for people.
    private static func range(of kind: ConfigKind) -> String {
        switch kind {
        case .integer(let range): " From \(range.lowerBound) to \(range.upperBound)."
        default: ""
        }
    }

    /// The text broken at spaces.
    static func wrapped(_ text: String, width: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.count + 1 + word.count <= width {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }
}

extension ConfigFacts {
    /// Whether it is a section whose own keys have defaults.
    fileprivate var isPlainSection: Bool {
        guard case .section(let facts) = kind else { return false }
        return !facts.contains(where: \.isRequired)
    }
}
