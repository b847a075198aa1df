package import HTTPSemantics

/// Rewrites links to the upstream so that they lead to the address that the client used.
package struct LinkRewriter: Sendable, Equatable {
    /// Scheme, authority and base path of the upstream, without a trailing `/`; also with a default port written out.
    let upstream: [[UInt8]]
    /// `scheme://authority/prefix` of the client's side, without a trailing `/`.
    private(set) var client: [UInt8]
    private let base: URIReference
    private let basePath: [UInt8]
    private let clientPrefix: [UInt8]

    /// - Parameter upstream: The base URL, such as `https://api.github.com/v3`.
    package init(upstream: String, authority: String, prefix: String, scheme: String = "http") {
        base = URIReference(upstream)
        var path = base.path
        while path.last == 0x2F { path.removeLast() }
        basePath = path
        var prefixBytes = Array(prefix.utf8)
        while prefixBytes.last == 0x2F { prefixBytes.removeLast() }
        if let first = prefixBytes.first, first != 0x2F { prefixBytes.insert(0x2F, at: 0) }
        clientPrefix = prefixBytes
        client = Self.client(scheme, authority, prefixBytes)
        let origin = base.origin ?? ""
        let plain = Array(origin.utf8) + path
        // `origin` leaves out a default port, but a body may contain it.
        let host = URIReference(origin).authority ?? []
        let hasPort = (host.lastIndex(of: 0x3A) ?? -1) > (host.lastIndex(of: 0x5D) ?? -1)
        let defaultPort = origin.hasPrefix("http:") ? ":80" : ":443"
        self.upstream = hasPort ? [plain] : [plain, Array((origin + defaultPort).utf8) + path]
    }

    /// A copy for another address of this server.
    package func leading(to authority: String, by scheme: String) -> LinkRewriter {
        var other = self
        other.client = Self.client(scheme, authority, clientPrefix)
        return other
    }

    private static func client(_ scheme: String, _ authority: String, _ prefix: [UInt8]) -> [UInt8] {
        Array("\(scheme)://\(authority)".utf8) + prefix
    }

    /// The URL at this server for one at the upstream; nil if it is outside the upstream's base, or needs no change.
    func rewritten(_ reference: [UInt8]) -> [UInt8]? {
        let parsed = URIReference(reference)
        if parsed.authority != nil {
            var absolute = parsed
            if absolute.scheme == nil { absolute.scheme = base.scheme }
            guard absolute.origin == base.origin, let rest = Self.rest(of: absolute.path, under: basePath)
            else { return nil }
            return client + rest + Self.tail(parsed)
        }
        // An absolute path: its host is now this server, where the paths have another prefix.
        guard parsed.scheme == nil, parsed.path.first == 0x2F, basePath != clientPrefix else { return nil }
        if let rest = Self.rest(of: parsed.path, under: basePath) {
            let path = clientPrefix + rest
            return (path.isEmpty ? [0x2F] : path) + Self.tail(parsed)
        }
        // Paths outside the base path are not available at this server.
        return base.origin.map { Array($0.utf8) + reference }
    }

    /// The target at the upstream (path and query) for an absolute URL at this server; nil if it leads elsewhere.
    func target(ofClient url: URIReference) -> [UInt8]? {
        guard let origin = url.origin, origin == URIReference(client).origin,
            let rest = Self.rest(of: url.path, under: clientPrefix)
        else { return nil }
        let path = basePath + rest
        return (path.isEmpty ? [0x2F] : path) + (url.query.map { [0x3F] + $0 } ?? [])
    }

    private static func rest(of path: [UInt8], under base: [UInt8]) -> ArraySlice<UInt8>? {
        guard path.starts(with: base) else { return nil }
        let rest = path[base.count...]
        return rest.isEmpty || rest.first == 0x2F ? rest : nil
    }

    private static func tail(_ reference: URIReference) -> [UInt8] {
        (reference.query.map { [0x3F] + $0 } ?? []) + (reference.fragment.map { [0x23] + $0 } ?? [])
    }

    /// Rewrites `Location` and the targets of `Link`; all other fields stay unchanged.
    package func rewrite(_ fields: inout Fields) {
        for index in fields.lines.indices {
            if fields.lines[index].isNamed("location") {
                if let new = rewritten(fields.lines[index].value) { fields.lines[index].value = new }
            } else if fields.lines[index].isNamed("link") {
                fields.lines[index].value = rewritten(link: fields.lines[index].value)
            }
        }
    }

    /// Rewrites the targets between `<` and `>`, outside quoted strings (RFC 8288 §3).
    private func rewritten(link value: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var index = 0
        while index < value.count {
            if value[index] == 0x22, let end = FieldSyntax.endOfQuotedString(value[...], openedAt: index) {
                result += value[index..<min(end, value.count)]
                index = end
            } else if value[index] == 0x3C, let close = value[index...].firstIndex(of: 0x3E) {
                let target = Array(value[(index + 1)..<close])
                result += [0x3C] + (rewritten(target) ?? target) + [0x3E]
                index = close + 1
            } else {
                result.append(value[index])
                index += 1
            }
        }
        return result
    }

    /// The JSON text with absolute upstream URLs in its strings rewritten to this server; nil if there are none.
    ///
    /// It rewrites string values (not member names) that *begin* with the upstream's base URL, followed by the end of the
    /// string, `/`, `?`, `#`, or the `{` of a URI template. URLs inside a text stay unchanged. `\/` is read as `/`; if the base
    /// was spelled with it, the new URL is too. All other bytes are kept. The scan is one pass and does not validate the JSON.
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
                guard let match = matchedBase(body, from: start, to: end), !Self.isName(body, after: end)
                else { continue }
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

    /// The position after the upstream's base, if the string begins with it.
    private func matchedBase(_ body: UnsafeBufferPointer<UInt8>, from start: Int, to end: Int) -> BaseMatch? {
        // Nearly all strings differ in their first byte.
        guard start < end, body[start] | 0x20 == 0x68 else { return nil }
        for base in upstream {
            if let match = Self.match(base, body, from: start, to: end) { return match }
        }
        return nil
    }

    /// The position after the upstream's base, and whether its slashes are escaped.
    private typealias BaseMatch = (end: Int, isEscaped: Bool)

    private static func match(_ base: [UInt8], _ body: UnsafeBufferPointer<UInt8>, from start: Int, to end: Int)
        -> BaseMatch?
    {
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
            // Scheme and host are case-insensitive, the base path is not.
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
