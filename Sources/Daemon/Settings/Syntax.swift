import HTTPSemantics

/// A complete message on what is wrong with a value, and what to write instead.
package struct InvalidValue: Error, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

extension Sequence<UInt8> {
    /// Whether it consists of ASCII's letters and digits, and of these characters.
    package func isAlphanumeric(or others: String) -> Bool {
        allSatisfy { FieldSyntax.isLetter($0) || FieldSyntax.isDigit($0) || others.utf8.contains($0) }
    }
}

/// The rules for a field's name (RFC 9110 §5.1).
package enum FieldName {
    package static func complaint(_ name: String) -> String? {
        FieldSyntax.isToken(name.utf8) ? nil : "is not a header field's name"
    }

    /// The same for a pattern with a `*` at its beginning or end, which stands for any text.
    static func patternComplaint(_ pattern: String) -> String? {
        var name = Substring(pattern)
        if name.hasPrefix("*") { name = name.dropFirst() } else if name.hasSuffix("*") { name = name.dropLast() }
        guard complaint(String(name)) == nil, !name.contains("*") else {
            return "is not a header field's name, nor one with a \"*\" at its beginning or end such as \"*-Version\""
        }
        return nil
    }
}

/// The words of `principal:`, which are names of fields, or of query parameters with a `?` before them.
///
/// Plain names replace the recognised ones; `+NAME` and `-NAME` modify them.
package enum PrincipalWords {
    /// The fields and parameters recognised by name.
    static let auto = "auto"
    /// Every field that is not known to be harmless.
    package static let all = "all"

    /// Whether a word is `auto` or `all`, in any case.
    package static func isBase(_ word: String) -> Bool { word.lowercased() == auto || word.lowercased() == all }

    /// The name in a word, without its sign.
    package static func name(of word: String) -> String { isSigned(word) ? String(word.dropFirst()) : word }

    private static func isSigned(_ word: String) -> Bool { word.hasPrefix("+") || word.hasPrefix("-") }

    /// Whether a list of words is complete and replaces the recognised names.
    package static func replaces(_ words: [String]) -> Bool { !words.contains { isBase($0) || isSigned($0) } }

    /// Whether a query parameter identifies the principal by its name, so that its value is redacted.
    static func count(parameter: String, in words: [String]) -> Bool {
        let name = "?" + parameter.lowercased()
        if let word = words.last(where: { self.name(of: $0).lowercased() == name }) { return !word.hasPrefix("-") }
        guard !replaces(words), case .credential = NameMeaning.ofParameter(Array(parameter.utf8)) else { return false }
        return true
    }

    static func complaint(_ word: String) -> String? {
        let name = name(of: word)
        if name.hasPrefix("?") { return name.count > 1 ? nil : "names no query parameter" }
        return FieldName.complaint(name)
    }

    /// The problem with a word that removes a name which does not count anyway, if any.
    static func vain(in words: [String]) -> String? {
        let added = words.filter { !$0.hasPrefix("-") }.map { name(of: $0).lowercased() }
        for word in words where word.hasPrefix("-") && !added.contains(name(of: word).lowercased()) {
            let name = name(of: word)
            if name.hasPrefix("?") {
                let parameter = Array(name.dropFirst().utf8)
                guard NameMeaning.ofParameter(parameter) == .unknown, WeighedName(parameter) == nil else { continue }
                return "\"\(word)\" removes nothing: the parameter \(name.dropFirst()) does not count anyway; "
                    + "correct the name, or remove the word"
            }
            let known = ["Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "X-Auth-Token"]
            switch NameMeaning.ofField(Array(name.utf8)) {
            case .credential, .identity: continue
            case .harmless:
                return "\"\(word)\" removes nothing: the field \(name) does not count anyway; remove the word"
            case .unknown:
                // Removing an unknown field has a meaning; misspelling a known one does not.
                guard let meant = Suggestion.nearest(to: name, among: known) else { continue }
                return "\"\(word)\" removes nothing that is recognised; did you mean \"-\(meant)\"?"
            }
        }
        return nil
    }

    /// The problem with the words together, if any.
    static func contradiction(in words: [String]) -> String? {
        guard !replaces(words), let plain = words.first(where: { !isBase($0) && !isSigned($0) }) else { return nil }
        return """
            "\(plain)" beside words with a sign leaves open what counts; write "+\(plain)" to add it to what is recognised, \
            or plain names only, which replace that
            """
    }
}

/// The name of a query parameter, for `key: { ignore: [] }`.
enum ParameterName {
    /// The problem with a name or a pattern of names, if any.
    static func complaint(_ name: String) -> String? {
        let isName = !name.isEmpty && name.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && !"&=#?".utf8.contains($0) }
        return isName ? nil : "is not a query parameter's name; write it without \"?\", \"=\" and \"&\""
    }
}

/// A name for `hosts:`, with or without a port, and `https://` before it.
package enum HostName {
    /// Reads several, separated by commas.
    package static func list(_ text: String) throws(InvalidValue) -> [String] {
        let words = text.split { $0 == "," || $0.isWhitespace }.map(String.init)
        for word in words {
            if let complaint = complaint(word) { throw InvalidValue("\"\(word)\" \(complaint)") }
        }
        return words
    }

    static func complaint(_ word: String) -> String? {
        let host = word.hasPrefix("https://") ? word.dropFirst("https://".count) : Substring(word)
        let parts = host.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard !parts[0].isEmpty, parts[0].utf8.isAlphanumeric(or: "-._"), parts.count == 1 || UInt16(parts[1]) != nil
        else {
            return """
                is not a host name; write it as in a Host field, for example "larder.internal" or "larder.internal:8787", or \
                "https://larder.internal" if a proxy in front of Larder serves it by HTTPS
                """
        }
        return nil
    }
}

/// An origin as browsers send it (RFC 6454 §7).
enum WebOrigin {
    static func complaint(_ origin: String) -> String? {
        if origin == "*" { return "would let in every page on the web; name the origins that may ask" }
        if origin == "null" { return "is the origin of any sandboxed page; it cannot be let in" }
        guard let mark = origin.firstRange(of: "://"), mark.lowerBound > origin.startIndex else {
            return "is not an origin; write it with its scheme, for example \"https://\(origin)\""
        }
        let host = origin[mark.upperBound...]
        guard !host.isEmpty, !host.contains(where: { "/?#@".contains($0) || $0.isWhitespace }) else {
            return "is more than an origin; write scheme, host and port only, without a \"/\" at the end"
        }
        guard origin == origin.lowercased() else { return "has capitals; browsers send origins in small letters" }
        return nil
    }
}

package enum PathPrefix {
    /// Reads a prefix such as `/github` into its canonical form, empty for the root.
    package static func read(_ text: String) throws(InvalidValue) -> String {
        guard text.hasPrefix("/") else { throw InvalidValue("\"\(text)\" begins with no slash; write \"/\(text)\"") }
        var prefix = Substring(text)
        while prefix.hasSuffix("/") { prefix = prefix.dropLast() }
        for piece in prefix.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
            guard !piece.isEmpty, piece != ".", piece != "..", piece.utf8.isAlphanumeric(or: "-._~") else {
                throw InvalidValue("\"\(text)\" is not a prefix; use letters, digits and -._~ between single slashes")
            }
        }
        return String(prefix)
    }

    /// The prefixes that a canonical one lies within, the longest first: those of `/a/b` are `/a` and the root.
    static func outer(_ prefix: String) -> [String] {
        var outer: [String] = []
        var rest = Substring(prefix)
        while let slash = rest.lastIndex(of: "/") {
            rest = rest[..<slash]
            outer.append(String(rest))
        }
        return outer
    }
}
