/// Derives member names from property names without a key path (Milk).
///
/// `catID` is read from `catID` and `cat_id`, and written back as the latter; `cat_id` is read from both, too.
struct MemberNaming: Sendable {
    /// Acronyms that count as one word in names, whatever letters are beside them.
    static let knownAcronyms = [
        "API", "CSS", "CSV", "DNS", "GPS", "HTML", "HTTP", "HTTPS", "ID", "IP", "ISO", "JSON", "JWT", "MIME", "PDF",
        "RSS", "SDK", "SHA", "SMS", "SQL", "SSH", "SSL", "TLS", "TTL", "UI", "URI", "URL", "UTC", "UUID", "VAT", "XML",
        "YAML",
    ]

    private let naming: Naming
    /// In capitals, and as declared, longest first.
    private let acronyms: [[UInt8]]
    /// Those with small letters among the declared ones, by their capitals.
    private let mixed: [String: String]

    init(_ naming: Naming) {
        self.naming = naming
        guard case .snakeCase(let further) = naming else {
            (acronyms, mixed) = ([], [:])
            return
        }
        let capitals = further.map { $0.uppercased() }
        mixed = Dictionary(zip(capitals, further).filter { $0 != $1 && $1 != $1.lowercased() }) { first, _ in first }
        acronyms = Set(Self.knownAcronyms + capitals + mixed.values).map { Array($0.utf8) }
            .sorted { $0.count != $1.count ? $0.count > $1.count : $0.lexicographicallyPrecedes($1) }
    }

    /// The members that a property is read from, the exact spelling first.
    func members(for property: String) -> [String] {
        guard case .snakeCase = naming else { return [property] }
        let other = [snakeCase(property), camelCase(property)].first { $0 != property }
        return [property] + [other].compactMap(\.self)
    }

    /// The member that a property is written back to.
    func output(for property: String) -> String {
        if case .snakeCase = naming { snakeCase(property) } else { property }
    }

    private func snakeCase(_ name: String) -> String {
        let name = Array(name.utf8)
        var words: [String] = []
        var start = 0
        while start < name.count {
            let end = name[start] == UInt8(ascii: "_") ? start : wordEnd(in: name, from: start)
            if end > start { words.append(String(decoding: name[start..<end], as: UTF8.self)) }
            start = max(end, start + 1)
        }
        return words.joined(separator: "_").lowercased()
    }

    private func camelCase(_ name: String) -> String {
        var result = ""
        for word in name.split(separator: "_") {
            let stem = word.prefix { !$0.isNumber }.uppercased()
            let digits = word.dropFirst(stem.count)
            if result.isEmpty {
                result = String(word)
            } else if let acronym = acronym(stem) {
                result += acronym + digits
            } else if stem.hasSuffix("S"), let acronym = acronym(String(stem.dropLast())) {
                // A plural: `user_ids` is `userIDs`.
                result += acronym + "s" + digits
            } else {
                result += word.prefix(1).uppercased() + word.dropFirst()
            }
        }
        return result
    }

    /// The acronym with these capitals, as it is written.
    private func acronym(_ capitals: String) -> String? {
        acronyms.contains { $0.elementsEqual(capitals.utf8) } ? mixed[capitals] ?? capitals : nil
    }

    /// The end of a word in either spelling.
    private func wordEnd(in name: [UInt8], from start: Int) -> Int {
        if let end = acronymEnd(in: name, from: start) { return end }
        var end = start
        // Capitals in a row are one word, but the last of them begins the next word if lower-case letters follow.
        while end < name.count, isUpper(name[end]) { end += 1 }
        if end - start > 1, end < name.count, isLower(name[end]) { return end - 1 }
        while end < name.count, !isUpper(name[end]), name[end] != UInt8(ascii: "_") { end += 1 }
        return end
    }

    private func acronymEnd(in name: [UInt8], from start: Int) -> Int? {
        for acronym in acronyms where name[start...].starts(with: acronym) {
            var end = start + acronym.count
            if end < name.count, name[end] == UInt8(ascii: "s") { end += 1 }
            // Digits belong to the word before them.
            while end < name.count, name[end].isDigit { end += 1 }
            // A lower-case letter after it belongs to a word that merely begins like the acronym.
            if end == name.count || !isLower(name[end]) { return end }
        }
        return nil
    }

    private func isUpper(_ byte: UInt8) -> Bool { byte &- 0x41 < 26 }
    private func isLower(_ byte: UInt8) -> Bool { byte &- 0x61 < 26 }
}
