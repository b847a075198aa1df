import HTTPSemantics

/// Finds values that look secret in what is recorded, by their names or their own looks, for a person to judge.
struct Lookalikes {
    /// What was found, by a name to show, with how often.
    private(set) var found: [String: Int] = [:]
    private static let maximumNames = 1_000

    private mutating func record(_ name: String) {
        if found[name] != nil || found.count < Self.maximumNames { found[name, default: 0] += 1 }
    }

    /// How well-known tokens begin.
    private static let beginnings = [
        "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-", "xapp-", "sk_live_",
        "sk_test_", "rk_live_", "sk-ant-", "sk-proj-", "AKIA", "ASIA", "AIza", "ya29.", "shpat_", "dop_v1_", "npm_",
        "pypi-", "hf_", "SG.",
    ].map { Array($0.utf8) }

    /// The name of a well-known kind of token, to show; nil for other text.
    private static func kind(ofToken text: some Collection<UInt8>) -> String? {
        guard text.count >= 20 else { return nil }
        // A JSON Web Token: three parts, the first of which is an object.
        if text.starts(with: "eyJ".utf8), text.count(where: { $0 == 0x2E }) == 2 { return "eyJ…" }
        return beginnings.first { text.starts(with: $0) }.map { String(decoding: $0, as: UTF8.self) + "…" }
    }

    // MARK: Paths

    /// Records the segments of a target's path that look like tokens.
    mutating func record(path target: String, isCounted: Bool) {
        guard isCounted else { return }
        let segments = target.prefix { $0 != "?" && $0 != "#" }.split(separator: "/", omittingEmptySubsequences: false)
        let shown = zip([""] + segments, segments).map { previous, segment in
            Self.isToken(Array(segment.utf8), after: Array(previous.utf8)) ? "…" : segment
        }
        if shown != segments { record("the path \(shown.joined(separator: "/").printable)") }
    }

    private static func isToken(_ segment: [UInt8], after previous: [UInt8]) -> Bool {
        guard segment.count >= 12, segment.firstRange(of: Redactor.mark) == nil else { return false }
        if kind(ofToken: segment) != nil { return true }
        let hasDigit = segment.contains(where: FieldSyntax.isDigit)
        if hasDigit, NameMeaning.isSecretField(previous) { return true }
        // As in `/bot123456:ABC-DEF/getMe`.
        if segment.starts(with: "bot".utf8), segment.contains(0x3A), segment.count >= 30 { return true }
        // Ids in hexadecimal are usual, and file names have a dot.
        let isHexadecimal = segment.allSatisfy { FieldSyntax.hexDigit($0) != nil || $0 == 0x2D }
        let isWord = segment.allSatisfy { isWordByte($0) && $0 != 0x2E }
        return segment.count >= 20 && isWord && !isHexadecimal && hasDigit
            && segment.contains { $0 &- 0x41 < 26 } && segment.contains { $0 &- 0x61 < 26 }
    }

    // MARK: Text

    /// Records what looks secret in a text: JSON, XML, HTML, GraphQL, scripts, settings.
    mutating func record(in text: [UInt8]) {
        text.withUnsafeBufferPointer { text in
            var place = 0
            while place < text.count {
                guard Self.isWordByte(text[place]) else {
                    place += 1
                    continue
                }
                let start = place
                while place < text.count, Self.isWordByte(text[place]) { place += 1 }
                let word = UnsafeBufferPointer(rebasing: text[start..<place])
                if let kind = Self.kind(ofToken: word) {
                    record(kind)
                } else if word.count <= 64, let value = Self.value(text, after: start..<place),
                    value.count >= KnownValues.shortest, !text[value].starts(with: Redactor.mark),
                    NameMeaning.isSecretField(Array(word))
                {
                    record(String(decoding: word, as: UTF8.self))
                    place = value.upperBound
                }
            }
        }
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        FieldSyntax.isLetter(byte) || FieldSyntax.isDigit(byte) || byte == 0x5F || byte == 0x2D || byte == 0x2E
    }

    /// The value that a word names: `word: "value"`, `word=value`, `<word>value<`, `name="word" value="value"`.
    private static func value(_ text: UnsafeBufferPointer<UInt8>, after word: Range<Int>) -> Range<Int>? {
        let before = word.lowerBound > 0 ? text[word.lowerBound - 1] : 0
        var place = word.upperBound
        // Bounded, so that no text takes long.
        let limit = min(text.count, place + 400)
        func skip(_ test: (UInt8) -> Bool) { while place < limit, test(text[place]) { place += 1 } }
        let isQuote: (UInt8) -> Bool = { $0 == 0x22 || $0 == 0x27 || $0 == 0x5C }
        let isTag = before == 0x3C || before == 0x3A
        if isTag, place < text.count, FieldSyntax.isWhitespace(text[place]) { skip { $0 != 0x3E && $0 != 0x3C } }
        let isQuoted = place < text.count && isQuote(text[place])
        skip(isQuote)
        skip(FieldSyntax.isWhitespace)
        guard place < text.count else { return nil }
        switch text[place] {
        case 0x3A, 0x3D: place += 1
        case 0x3E where isTag: place += 1
        case _ where isQuoted && isQuote(before):
            // HTML's way: the value is in an attribute of its own.
            let tag = UnsafeBufferPointer(rebasing: text[place..<limit].prefix { $0 != 0x3E && $0 != 0x3C })
            let ends = ["value=", "content="].lazy.compactMap { name in
                tag.place(of: Array(name.utf8), from: 0).map { $0 + name.utf8.count }
            }
            guard let end = ends.first else { return nil }
            place += end
        default: return nil
        }
        skip { FieldSyntax.isWhitespace($0) || $0 == 0x0A || $0 == 0x0D }
        skip(isQuote)
        let start = place
        func end() { skip { $0 > 0x20 && !isQuote($0) && ![0x3C, 0x2C, 0x26, 0x3B, 0x29, 0x7B, 0x5B].contains($0) } }
        end()
        // The scheme of a credential comes first.
        let scheme = FieldSyntax.lowercased(text[start..<place])
        if place < text.count, text[place] == 0x20,
            ["bearer", "basic", "token"].contains(where: { scheme.elementsEqual($0.utf8) })
        {
            place += 1
            end()
        }
        return start..<place
    }
}
