import HTTPSemantics

extension LinkRewriter {
    /// The JSON text with the absolute upstream URLs in its strings pointing at this server; nil when there are none.
    ///
    /// Rewritten are string values (not names of members) that *begin* with the upstream's base URL, followed by the end
    /// of the string, `/`, `?`, `#`, or the `{` of a URI template. URLs in the middle of a text are prose, and stay. `\/` is
    /// read as `/`, and where the base was spelled with it, the new one is too. Anything else keeps its bytes. The scan is
    /// one pass and does not check the JSON: whatever is no string passes through.
    package func rewritten(body: [UInt8]) -> [UInt8]? {
        var result: [UInt8] = []
        var copied = 0
        body.withUnsafeBufferPointer { body in
            var index = 0
            while index < body.count {
                guard body[index] == 0x22 else {
                    index += 1
                    continue
                }
                let start = index + 1
                let end = Self.endOfString(body, from: start)
                index = end + 1
                guard let match = matchedBase(body, from: start, to: end), !Self.isName(body, after: end) else {
                    continue
                }
                if result.isEmpty { result.reserveCapacity(body.count) }
                result += body[copied..<start]
                result += match.isEscaped ? Self.escapingSlashes(client) : client
                copied = match.end
            }
        }
        guard copied > 0 else { return nil }
        return result + body[copied...]
    }

    /// The position of the closing quote, or the end of an unfinished text.
    private static func endOfString(_ body: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        var index = start
        while index < body.count, body[index] != 0x22 {
            index += body[index] == 0x5C ? 2 : 1
        }
        return min(index, body.count)
    }

    /// Whether the string that ends here names a member: a colon follows.
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

    /// The position after the upstream's base, if the string begins with it.
    private func matchedBase(
        _ body: UnsafeBufferPointer<UInt8>,
        from start: Int,
        to end: Int
    ) -> (end: Int, isEscaped: Bool)? {
        // Nearly all strings differ in their first byte.
        guard start < end, body[start] | 0x20 == 0x68 else { return nil }
        for base in upstream {
            if let match = Self.match(base, body, from: start, to: end) { return match }
        }
        return nil
    }

    private static func match(
        _ base: [UInt8],
        _ body: UnsafeBufferPointer<UInt8>,
        from start: Int,
        to end: Int
    ) -> (end: Int, isEscaped: Bool)? {
        var index = start
        var isEscaped = false
        var slashes = 0
        for wanted in base {
            if wanted == 0x2F {
                slashes += 1
                if index < end, body[index] == 0x5C {
                    isEscaped = true
                    index += 1
                }
            }
            guard index < end else { return nil }
            // Scheme and host have no case, the base path has.
            let byte = slashes <= 2 ? asciiLowercased(body[index]) : body[index]
            guard byte == wanted else { return nil }
            index += 1
        }
        guard index < end else { return (index, isEscaped) }
        switch body[index] {
        case 0x2F, 0x3F, 0x23, 0x7B: return (index, isEscaped)
        case 0x5C where index + 1 < end && body[index + 1] == 0x2F: return (index, isEscaped)
        default: return nil
        }
    }

    private static func escapingSlashes(_ bytes: [UInt8]) -> [UInt8] {
        bytes.flatMap { $0 == 0x2F ? [0x5C, 0x2F] : [$0] }
    }
}
