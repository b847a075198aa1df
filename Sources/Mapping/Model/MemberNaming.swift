/// How the name of a property corresponds to names of members where no key path is given (Milk).
///
/// `catID` is filled by `catID` and by `cat_id`, and written back as the latter; `cat_id` is filled by `cat_id` and `catID`.
struct MemberNaming: Sendable {
    /// Abbreviations that are one word in names, whatever letters stand beside them.
    static let knownAcronyms = [
        "API", "CSS", "CSV", "DNS", "GPS", "HTML", "HTTP", "HTTPS", "ID", "IP", "ISO", "JSON", "JWT", "MIME", "PDF",
        "RSS",
        "SDK", "SHA", "SMS", "SQL", "SSH", "SSL", "TLS", "TTL", "UI", "URI", "URL", "UTC", "UUID", "VAT", "XML", "YAML",
    ]

    private let naming: Naming
    /// Longest first, in capitals.
    private let acronyms: [[UInt8]]

    init(_ naming: Naming) {
        self.naming = naming
        guard case .snakeCase(let further) = naming else {
            acronyms = []
            return
        }
        acronyms = Set(Self.knownAcronyms + further.map { $0.uppercased() }).map { Array($0.utf8) }
            .sorted { $0.count != $1.count ? $0.count > $1.count : $0.lexicographicallyPrecedes($1) }
    }

    /// The members that fill a property, the exact spelling first.
    func members(for property: String) -> [String] {
        guard case .snakeCase = naming else { return [property] }
        let snake = snakeCase(property)
        let other = snake == property ? camelCase(property) : snake
        return other == property ? [property] : [property, other]
    }

    /// The member that a property is written back to.
    func output(for property: String) -> String {
        guard case .snakeCase = naming else { return property }
        return snakeCase(property)
    }

    private func snakeCase(_ name: String) -> String {
        words(of: Array(name.utf8)).map { String(decoding: $0, as: UTF8.self).lowercased() }.joined(separator: "_")
    }

    private func camelCase(_ name: String) -> String {
        var result = ""
        for word in name.split(separator: "_") {
            let capitals = word.uppercased()
            if result.isEmpty {
                result = String(word)
            } else if isAcronym(capitals) {
                result += capitals
            } else if capitals.hasSuffix("S"), isAcronym(String(capitals.dropLast())) {
                // A plural: user_ids is userIDs.
                result += capitals.dropLast() + "s"
            } else {
                result += capitals.prefix(1) + word.dropFirst()
            }
        }
        return result
    }

    private func isAcronym(_ capitals: String) -> Bool { acronyms.contains { $0.elementsEqual(capitals.utf8) } }

    /// The words of a name in either spelling.
    private func words(of name: [UInt8]) -> [ArraySlice<UInt8>] {
        var words: [ArraySlice<UInt8>] = []
        var start = 0
        while start < name.count {
            if name[start] == UInt8(ascii: "_") {
                start += 1
                continue
            }
            let end = wordEnd(in: name, from: start)
            words.append(name[start..<end])
            start = end
        }
        return words
    }

    private func wordEnd(in name: [UInt8], from start: Int) -> Int {
        if let end = acronymEnd(in: name, from: start) { return end }
        var end = start
        // Capitals in a row are one word, but the last of them begins the next if small letters follow it.
        while end < name.count, isUpper(name[end]) { end += 1 }
        if end - start > 1, end < name.count, isLower(name[end]) { return end - 1 }
        while end < name.count, !isUpper(name[end]), name[end] != UInt8(ascii: "_") { end += 1 }
        return end
    }

    private func acronymEnd(in name: [UInt8], from start: Int) -> Int? {
        for acronym in acronyms where name[start...].starts(with: acronym) {
            var end = start + acronym.count
            if end < name.count, name[end] == UInt8(ascii: "s") { end += 1 }
            // A small letter behind it belongs to a word that only begins like the acronym.
            if end == name.count || !isLower(name[end]) { return end }
        }
        return nil
    }

    private func isUpper(_ byte: UInt8) -> Bool { byte &- 0x41 < 26 }
    private func isLower(_ byte: UInt8) -> Bool { byte &- 0x61 < 26 }
}

extension Naming {
    /// The members that a property is read from where no key path is given, the preferred one last.
    ///
    /// What is spelled exactly as the property wins over what is derived from it (Milk).
    func members(for property: String) -> [String] { MemberNaming(self).members(for: property).reversed() }
}
