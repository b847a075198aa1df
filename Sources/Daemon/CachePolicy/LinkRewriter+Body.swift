import HTTPSemantics

/// Links in JSON bodies.
extension LinkRewriter {
    /// The JSON text with the upstream's links in its strings rewritten to this server; nil if there are none.
    ///
    /// It rewrites string values (not member names) that *begin* with the upstream's base URL, followed by the end of the
    /// string, `/`, `?`, `#`, or the `{` of a URI template. Where the paths differ, it also rewrites absolute paths below the base
    /// path in members whose names are those of links. URLs inside a text stay unchanged. `\/` and `\u002f` are read as `/`; if the
    /// base was spelled so, the new URL is too. All other bytes are kept. The scan is one pass and does not validate the JSON.
    package func rewritten(body: [UInt8]) -> [UInt8]? {
        var result: [UInt8] = []
        var copied = 0
        body.withUnsafeBufferPointer { body in
            var index = 0
            var isLink = false
            while index < body.count {
                guard body[index] == 0x22 else {
                    index += 1
                    continue
                }
                let start = index + 1
                let end = Self.endOfString(body, from: start)
                index = end + 1
                if Self.isName(body, after: end) {
                    isLink = Self.isNameOfLink(body[start..<end])
                    continue
                }
                guard let link = replacement(in: body, from: start, to: end, isLink: isLink) else { continue }
                if result.isEmpty { result.reserveCapacity(body.count) }
                result += body[copied..<start]
                result += link.text
                copied = link.end
            }
        }
        guard copied > 0 else { return nil }
        return result + body[copied...]
    }

    /// What a string's beginning is replaced by, up to a position; nil if it is no link to the upstream.
    private func replacement(
        in body: UnsafeBufferPointer<UInt8>,
        from start: Int,
        to end: Int,
        isLink: Bool
    ) -> (text: [UInt8], end: Int)? {
        guard start < end else { return nil }
        // Nearly all strings differ in their first byte.
        if body[start] | 0x20 == 0x68 {
            for base in upstream {
                if let match = Self.match(base, body, from: start, to: end) {
                    return (match.spelled(client), match.end)
                }
            }
            return nil
        }
        guard isLink, hasOtherPaths, body[start] == 0x2F || body[start] == 0x5C,
            let match = Self.match(basePath, body, from: start, to: end, isPath: true)
        else { return nil }
        let next = match.end < end ? Self.character(of: body, at: match.end, before: end) : nil
        // Two slashes name a host.
        if let next, next.byte == 0x2F, basePath.isEmpty,
            Self.character(of: body, at: match.end + next.length, before: end)?.byte == 0x2F
        {
            return nil
        }
        let isRooted = !clientPrefix.isEmpty || next?.byte == 0x2F
        return (match.spelled(isRooted ? clientPrefix : [0x2F], like: next), match.end)
    }

    /// Whether a member with this name contains a link: `next`, `href`, `html_url`, `nextPage` and the like.
    private static func isNameOfLink(_ name: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        let letters = name.filter { ($0 | 0x20) &- 0x61 < 26 }.map { $0 | 0x20 }
        return LinkNames.endings.contains { letters.suffix($0.count).elementsEqual($0) }
    }

    /// The position of the closing quote, or the end of an unfinished text.
    private static func endOfString(_ body: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        var index = start
        while index < body.count, body[index] != 0x22 { index += body[index] == 0x5C ? 2 : 1 }
        return min(index, body.count)
    }

    /// Whether the string that ends here is a member name, because a colon follows.
    private static func isName(_ body: UnsafeBufferPointer<UInt8>, after end: Int) -> Bool {
        var index = end + 1
        while index < body.count {
            switch body[index] {
            case 0x20, 0x09, 0x0A, 0x0D: index += 1
            case 0x3A: return true
            default: return false
            }
        }
        return false
    }

    /// The position after a base that a string begins with, and how its slashes are spelled; nil for a plain `/`.
    private struct Match {
        var end: Int
        var slash: [UInt8]?

        /// A text with its slashes spelled in the same way.
        ///
        /// - Parameter next: The character after the base, which decides if the base has no slash.
        func spelled(_ text: [UInt8], like next: Character? = nil) -> [UInt8] {
            let escaped = slash ?? next.flatMap { $0.byte == 0x2F && $0.length > 1 ? $0.bytes : nil }
            guard let escaped else { return text }
            return text.flatMap { $0 == 0x2F ? escaped : [$0] }
        }
    }

    /// One character of a JSON string, escaped or not.
    private struct Character {
        var byte: UInt8
        var bytes: [UInt8]
        var length: Int { bytes.count }
    }

    /// The character at a position; nil if it is none of those that URLs consist of.
    private static func character(of body: UnsafeBufferPointer<UInt8>, at index: Int, before end: Int) -> Character? {
        guard index < end else { return nil }
        guard body[index] == 0x5C else { return Character(byte: body[index], bytes: [body[index]]) }
        if index + 1 < end, body[index + 1] == 0x2F { return Character(byte: 0x2F, bytes: [0x5C, 0x2F]) }
        guard index + 5 < end, body[index + 1] == 0x75, body[index + 2] == 0x30, body[index + 3] == 0x30,
            let high = FieldSyntax.hexDigit(body[index + 4]), high < 8, let low = FieldSyntax.hexDigit(body[index + 5])
        else { return nil }
        return Character(byte: high << 4 | low, bytes: Array(body[index...(index + 5)]))
    }

    /// - Parameter isPath: whether the base is a path, which counts capitals.
    private static func match(
        _ base: [UInt8],
        _ body: UnsafeBufferPointer<UInt8>,
        from start: Int,
        to end: Int,
        isPath: Bool = false
    ) -> Match? {
        var match = Match(end: start)
        var slashes = isPath ? 3 : 0
        for wanted in base {
            guard let character = character(of: body, at: match.end, before: end) else { return nil }
            if wanted == 0x2F {
                slashes += 1
                if character.length > 1 { match.slash = match.slash ?? character.bytes }
            }
            // Scheme and host are case-insensitive, the base path is not.
            guard (slashes <= 2 ? asciiLowercased(character.byte) : character.byte) == wanted else { return nil }
            match.end += character.length
        }
        guard match.end < end else { return match }
        let next = character(of: body, at: match.end, before: end)?.byte
        return [0x2F, 0x3F, 0x23, 0x7B].contains(next) ? match : nil
    }
}

/// The names of what contains a link.
enum LinkNames {
    /// How the names of JSON members end, in small letters and without anything else.
    static let endings = [
        "url", "uri", "href", "link", "links", "location", "next", "prev", "previous", "first", "last", "self",
        "nextpage",
        "prevpage", "previouspage", "firstpage", "lastpage",
    ].map { Array($0.utf8) }

    private static let words: Set<String> = [
        "url", "uri", "href", "link", "links", "location", "next", "prev", "previous", "first", "last", "self",
    ]

    /// Whether a header field contains a link, by one of the words in its name: `Content-Location`, `X-Next-Page`.
    static func contain(field name: String) -> Bool {
        name.split(separator: "-").contains { words.contains(String($0)) }
    }
}
