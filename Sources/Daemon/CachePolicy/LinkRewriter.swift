package import HTTPSemantics

/// Rewrites links to the upstream so that they lead to the address that the client used.
package struct LinkRewriter: Sendable, Equatable {
    /// Scheme, authority and base path of the upstream, without a trailing `/`; also with a default port written out.
    let upstream: [[UInt8]]
    /// `scheme://authority/prefix` of the client's side, without a trailing `/`.
    private(set) var client: [UInt8]
    private let base: URIReference
    /// Without a trailing `/`, as `clientPrefix`.
    let basePath: [UInt8]
    let clientPrefix: [UInt8]
    /// Whether all fields with links are rewritten, and not only those that clients follow by themselves.
    private let rewritesAll: Bool

    /// Whether a path at this server differs from that at the upstream.
    var hasOtherPaths: Bool { basePath != clientPrefix }

    /// - Parameters:
    ///   - upstream: The base URL, such as `https://api.github.com/v3`.
    ///   - rewritesAll: Whether all fields with links are rewritten, and not only those that clients follow by themselves.
    package init(
        upstream: String,
        authority: String,
        prefix: String,
        scheme: String = "http",
        rewritesAll: Bool = false
    ) {
        self.rewritesAll = rewritesAll
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
    func rewritten(reference: [UInt8]) -> [UInt8]? {
        let parsed = URIReference(reference)
        if parsed.authority != nil {
            var absolute = parsed
            if absolute.scheme == nil { absolute.scheme = base.scheme }
            guard absolute.origin == base.origin, let rest = Self.rest(of: absolute.path, under: basePath)
            else { return nil }
            return client + rest + Self.tail(parsed)
        }
        // An absolute path: its host is now this server, where the paths have another prefix.
        guard parsed.scheme == nil, parsed.path.first == 0x2F, hasOtherPaths else { return nil }
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

    static func rest(of path: [UInt8], under base: [UInt8]) -> ArraySlice<UInt8>? {
        guard path.starts(with: base) else { return nil }
        let rest = path[base.count...]
        return rest.isEmpty || rest.first == 0x2F ? rest : nil
    }

    private static func tail(_ reference: URIReference) -> [UInt8] {
        (reference.query.map { [0x3F] + $0 } ?? []) + (reference.fragment.map { [0x23] + $0 } ?? [])
    }

    /// Rewrites `Location`, the targets of `Link`, and what `Set-Cookie` says of host and path; with `rewritesAll` also the other
    /// fields that are links by their names, such as `Content-Location` and `Next-Page`.
    package func rewrite(_ fields: inout Fields) {
        guard concerns(fields) else { return }
        for (index, line) in fields.enumerated() {
            let new: [UInt8]?
            switch line.known {
            case .location: new = rewritten(reference: Array(line.value))
            case .link: new = rewritten(link: Array(line.value))
            case .setCookie: new = rewritten(cookie: Array(line.value))
            default:
                guard rewritesAll, LinkNames.contain(field: line.lowercasedName) else { continue }
                new = rewritten(reference: Array(line.value))
            }
            if let new, !line.value.elementsEqual(new) { fields.replaceValue(at: index, by: new) }
        }
    }

    /// Whether the fields may contain links that are rewritten.
    package func concerns(_ fields: Fields) -> Bool { rewritesAll || fields.contains(oneOf: Self.rewritten) }

    /// The fields that are rewritten in any case.
    private static let rewritten: KnownFields = [.location, .link, .setCookie]

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
                result += [0x3C] + (rewritten(reference: target) ?? target) + [0x3E]
                index = close + 1
            } else {
                result.append(value[index])
                index += 1
            }
        }
        return result
    }
}
