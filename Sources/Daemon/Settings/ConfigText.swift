/// Values in the spelling of YAML.
enum ConfigText {
    /// A text, quoted where it would be read as something else.
    static func scalar(_ text: String) -> String {
        let isPlain =
            !text.isEmpty
            && text.utf8.allSatisfy {
                ($0 | 0x20) &- 0x61 < 26 || $0 &- 0x30 < 10 || "-_./:".utf8.contains($0)
            } && !text.hasPrefix("-") && !text.hasSuffix(":")
        return isPlain ? text : "\"\(text)\""
    }

    /// A list on one line.
    static func list(_ texts: [String]) -> String {
        "[\(texts.map(scalar).joined(separator: ", "))]"
    }
}
