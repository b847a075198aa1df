extension Naming {
    /// The members that a property is read from where no key path is given, the preferred one last.
    ///
    /// What is spelled exactly as the property wins over what is derived from it (Milk).
    func members(for property: String) -> [String] {
        switch self {
        case .exact:
            return [property]
        case .snakeCase(let acronyms):
            let derived = Self.words(of: property, acronyms: acronyms).joined(separator: "_")
            return derived == property ? [property] : [derived, property]
        }
    }

    /// The words of a name in camel case, in small letters.
    private static func words(of name: String, acronyms: [String]) -> [String] {
        // The longest first: HTTPS before HTTP.
        let known = acronyms.sorted { $0.utf8.count > $1.utf8.count }.map { Array($0.utf8) }
        let bytes = Array(name.utf8)
        var words: [[UInt8]] = []
        var position = 0
        while position < bytes.count {
            var end = position + 1
            if let acronym = known.first(where: { begins(bytes[position...], with: $0) }) {
                end = position + acronym.count
            } else if isCapital(bytes[position]) {
                // A run of capitals that is no known acronym is one word, but for the capital that begins the next.
                while end < bytes.count, isCapital(bytes[end]) { end += 1 }
                if end - position > 1, end < bytes.count { end -= 1 }
            }
            while end < bytes.count, !isCapital(bytes[end]) { end += 1 }
            words.append(bytes[position..<end].map { isCapital($0) ? $0 | 0x20 : $0 })
            position = end
        }
        return words.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Whether the acronym stands here and is not the beginning of a longer word in capitals.
    private static func begins(_ bytes: ArraySlice<UInt8>, with acronym: [UInt8]) -> Bool {
        guard !acronym.isEmpty, bytes.starts(with: acronym) else { return false }
        let rest = bytes.dropFirst(acronym.count)
        // `IDs` is a plural, `Idea` a word.
        guard let next = rest.first, !isCapital(next) else { return true }
        return next == UInt8(ascii: "s") && (rest.count == 1 || isCapital(rest[rest.startIndex + 1]))
            || next &- UInt8(ascii: "0") < 10 || next == UInt8(ascii: "_")
    }

    private static func isCapital(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "A") < 26 }
}
