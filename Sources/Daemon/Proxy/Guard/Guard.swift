package import HTTPSemantics

/// Decides, before any look-up, whether a request may be served at all.
///
/// A web page in the user's browser can send requests to any port of this machine. It is recognised by the `Host` that it must
/// name (a rebound name is not ours), and by the `Origin` and `Sec-Fetch-Site` that the browser adds. A browser sends
/// `Sec-Fetch-Site` only over TLS and to this machine's own names; elsewhere `Referer` and other browser fields decide.
///
/// A class, because every request uses one: a value would be copied, list by list, for each.
package final class Guard: Sendable {
    package enum Verdict: Sendable, Equatable {
        /// Not from a browser, or from a page of our own.
        case allowed
        /// A page whose origin `cors:` allows; the response gets `CORS.fields(for:)`.
        case allowedOrigin([UInt8])
        /// A preflight, to respond to with `CORS.preflightFields` and nothing else.
        case preflight([UInt8])
        case refused(Refusal)
    }

    /// Why a request is refused; contains what it named, cut to a readable length.
    package enum Refusal: Sendable, Equatable {
        case misdirected(authority: String)
        case foreignOrigin(String)
        case foreignSite(String)
        case foreignReferrer(String)
        case unattributed(authority: String)
        case prefetch
        case methodOverride(String)

        package var status: Int { kind.status }
        var kind: (status: Int, title: String) {
            switch self {
            case .misdirected: (421, "Not this server")
            case .foreignOrigin, .foreignSite, .foreignReferrer, .unattributed: (403, "Not for this page")
            case .prefetch: (403, "Not ahead of time")
            case .methodOverride: (400, "One method, not two")
            }
        }

        package var message: String {
            switch self {
            case .misdirected(let authority):
                "The request is addressed to \"\(authority)\", which is not this server. "
                    + "Use its listen address or localhost, or add the name to `hosts:`, or to LARDER_HOSTS."
            case .foreignOrigin(let origin):
                "Pages of the origin \"\(origin)\" may not use this server. Add the origin to `cors:` to let them."
            case .foreignSite(let site):
                "A browser sent this request for another site's page (Sec-Fetch-Site: \(site)). "
                    + "Add the page's origin to `cors:` and let it send an Origin."
            case .foreignReferrer(let referrer):
                "A page at \"\(referrer)\" sent this request (Referer), and it may not use this server. "
                    + "Add the page's origin to `cors:` to let it."
            case .unattributed(let authority):
                "A browser sent this request to \"\(authority)\" without saying for which page: over plain HTTP it says so only to "
                    + "localhost. Use localhost or HTTPS. A program that looks like a browser adds the field `Larder-View: wire`."
            case .prefetch:
                "A browser asked for this before anyone wanted it (Sec-Purpose: prefetch), and a page of any site can make it "
                    + "do so. Ask when it is wanted."
            case .methodOverride(let name):
                "The field \(name) asks for another method than the request line names. Send the request with the method that is "
                    + "meant, and without the field."
            }
        }
    }

    /// The request's fields that decide.
    package struct Facts {
        /// The authority of an absolute-form target if there is one, else `Host`; nil without either.
        var authority: UnsafeRawBufferPointer?
        var origin: UnsafeRawBufferPointer?
        var secFetchSite: UnsafeRawBufferPointer?
        var referer: UnsafeRawBufferPointer?
        /// Whether one of these has several lines, which no browser sends.
        var isRepeated = false
        var isOptions = false
        var asksForMethod = false
        /// Whether it is a prefetch: `Sec-Purpose`, or its predecessors in browsers.
        var isPrefetch = false
        var methodOverride: KnownField?
        var userAgent: UnsafeRawBufferPointer?
        var hasLanguage = false
        /// Whether it has a field of Larder's own, which a page may send only to a server that allows it.
        var hasOwnField = false
    }

    /// The addresses that requests come in at, as bound.
    ///
    /// A wildcard address listens on every address of the machine. No browser can reach a Unix socket.
    private let listeners: [Address]
    private let hosts: [OwnHost]
    let cors: CORS
    /// Whether every request except health and metrics needs a token, which no page can supply for another site.
    private let wantsToken: Bool
    /// The usual spellings of `Host`, for which a comparison of bytes suffices.
    private let usualHosts: [(text: [UInt8], isLoopback: Bool)]

    /// Where an authority leads.
    private enum Place { case loopback, elsewhere, foreign }

    /// - Parameters:
    ///   - hosts: further names, each with a port or, without, for all our ports and the schemes' own; `https://` before one
    ///     leaves only the port of HTTPS.
    package init(listeners: [Address], hosts: [String] = [], cors: CORS = CORS(), wantsToken: Bool = false) {
        self.listeners = listeners
        self.hosts = hosts.compactMap { OwnHost($0) }
        (self.cors, self.wantsToken) = (cors, wantsToken)
        usualHosts = listeners.flatMap { listener -> [(text: [UInt8], isLoopback: Bool)] in
            guard case .tcp(let host, let port) = listener else { return [(Array("localhost".utf8), true)] }
            let loopback = ["localhost:\(port)", "127.0.0.1:\(port)", "[::1]:\(port)"]
                .map { (text: Array($0.utf8), isLoopback: true) }
            let bound = Authority(host: host, port: port)
            return Guard.isWildcard(host) ? loopback : [(Array(bound.text.utf8), bound.isLoopback)] + loopback
        }
    }

    /// Decides on one request; takes a comparison or two if it is not from a browser.
    @inline(__always)
    package func check(_ facts: Facts) -> Verdict {
        let place = place(of: facts.authority)
        if place == .foreign { return .refused(.misdirected(authority: Self.text(facts.authority))) }
        if facts.isPrefetch { return .refused(.prefetch) }
        if let field = facts.methodOverride { return .refused(.methodOverride("\(field.name)")) }
        if facts.origin == nil, facts.secFetchSite == nil {
            return place == .loopback ? .allowed : checkReferrer(facts)
        }
        return checkBrowser(facts)
    }

    /// Decides on a request to a name for which browsers send no `Sec-Fetch-Site`.
    private func checkReferrer(_ facts: Facts) -> Verdict {
        if let referer = facts.referer {
            guard !facts.isRepeated else { return .refused(.foreignReferrer(Self.text(facts.referer) + ", …")) }
            let bytes = Array(referer)
            let page = URIReference(bytes)
            let origin = page.scheme.map { Array($0) + [0x3A, 0x2F, 0x2F] + (page.authority.map { Array($0) } ?? []) }
            guard let origin, isSameOrigin(origin, facts.authority) || cors.allows(origin)
            else { return .refused(.foreignReferrer(Self.text(facts.referer))) }
            return .allowed
        }
        guard facts.isOfBrowser, !wantsToken else { return .allowed }
        return .refused(.unattributed(authority: Self.text(facts.authority)))
    }

    private func checkBrowser(_ facts: Facts) -> Verdict {
        if facts.isRepeated { return .refused(.foreignOrigin(Self.text(facts.origin ?? facts.secFetchSite) + ", …")) }
        if let origin = facts.origin {
            let bytes = Array(origin)
            if cors.allows(bytes) {
                return facts.isOptions && facts.asksForMethod ? .preflight(bytes) : .allowedOrigin(bytes)
            }
            guard isSameOrigin(bytes, facts.authority)
            else { return .refused(.foreignOrigin(Self.text(facts.origin))) }
        }
        guard let site = facts.secFetchSite else { return .allowed }
        let isOwn = FieldSyntax.equalsIgnoringCase(site, "none") || FieldSyntax.equalsIgnoringCase(site, "same-origin")
        return isOwn ? .allowed : .refused(.foreignSite(Self.text(facts.secFetchSite)))
    }

    /// Whether the authority is one of this server's, and whether browsers take it for this machine.
    private func place(of authority: UnsafeRawBufferPointer?) -> Place {
        // HTTP/1.0 has no `Host`, and no browser uses it.
        guard let authority, !authority.isEmpty else { return .loopback }
        for usual in usualHosts where FieldSyntax.isSame(authority, usual.text) {
            return usual.isLoopback ? .loopback : .elsewhere
        }
        guard let parsed = Authority(authority), listeners.contains(where: { accepts(parsed, at: $0) })
        else { return .foreign }
        return parsed.isLoopback ? .loopback : .elsewhere
    }

    private func accepts(_ authority: Authority, at listener: Address) -> Bool {
        switch listener {
        case .unix: return authority.isLoopback || hosts.contains { $0.authority.host == authority.host }
        case .tcp(let host, let port):
            // A person typed a loopback name without a port: no name server can rebind it.
            if authority.isLoopback, authority.port == nil || authority.port == port { return true }
            let isOwnPort = (authority.port ?? 80) == port
            if isOwnPort, authority.host == host.lowercased() { return true }
            // Bound to every address: an address is no name, so it cannot be rebound.
            if isOwnPort, Guard.isWildcard(host), authority.isIPv4 || authority.isIPv6 { return true }
            return hosts.contains { known in
                if known.isSecure { return known.isSecure(for: authority) }
                guard known.authority.host == authority.host else { return false }
                guard let knownPort = known.authority.port
                else { return isOwnPort || authority.port == nil || authority.port == 443 }
                return (authority.port ?? 80) == knownPort
            }
        }
    }

    /// Whether a page was loaded from the same authority that it now requests, which is ours.
    private func isSameOrigin(_ origin: [UInt8], _ authority: UnsafeRawBufferPointer?) -> Bool {
        guard let authority, let own = Authority(authority) else { return false }
        let reference = URIReference(origin)
        guard let scheme = reference.scheme, let name = reference.authority.flatMap({ Authority($0) }),
            reference.path.isEmpty, reference.query == nil, reference.fragment == nil
        else { return false }
        // `https`, if the user's own proxy stands in front and is configured as a host.
        let isHTTPS = scheme.elementsEqual("https".utf8)
        guard isHTTPS || scheme.elementsEqual("http".utf8) else { return false }
        let defaultPort: UInt16 = isHTTPS ? 443 : 80
        return name.host == own.host && (name.port ?? defaultPort) == (own.port ?? defaultPort)
    }

    private static func isWildcard(_ host: String) -> Bool {
        host == "0.0.0.0" || host == "::" || host == "[::]" || host == "*" || host.isEmpty
    }

    /// The text for a message, cut to a readable length.
    private static func text(_ bytes: UnsafeRawBufferPointer?) -> String {
        String(decoding: (bytes.map { Array($0.prefix(200)) } ?? []), as: UTF8.self)
    }
}

extension Guard.Facts {
    /// The facts of a parsed request, without a copy.
    @inline(__always)
    package init(_ head: borrowing RequestHead, authority: UnsafeRawBufferPointer?) {
        self.init(authority: authority, origin: head[.origin])
        (secFetchSite, referer) = (head[.secFetchSite], head[.referer])
        (isOptions, asksForMethod) = (head.method == .options, head.has(.accessControlRequestMethod))
        isRepeated =
            origin != nil && head.count(of: .origin) > 1 || secFetchSite != nil && head.count(of: .secFetchSite) > 1
            || referer != nil && head.count(of: .referer) > 1
        if head.has(.secPurpose) || head.has(.purpose) || head.has(.xMoz) { isPrefetch = Self.isPrefetch(head) }
        if head.has(.httpMethodOverride) { methodOverride = .httpMethodOverride }
        if head.has(.httpMethod) { methodOverride = .httpMethod }
        if head.has(.methodOverride) { methodOverride = .methodOverride }
        (userAgent, hasLanguage) = (head[.userAgent], head.has(.acceptLanguage))
        hasOwnField = head.has(.larderView) || head.has(.larderLive) || head.has(.larderPosition)
    }

    /// Whether a browser could have sent the request for any page: all browsers send these two by themselves.
    fileprivate var isOfBrowser: Bool {
        guard hasLanguage, !hasOwnField, let userAgent else { return false }
        return userAgent.starts(with: "Mozilla/".utf8) || userAgent.starts(with: "Opera/".utf8)
    }

    /// Whether it is a prefetch: `Sec-Purpose: prefetch;prerender`, formerly `Purpose` and `X-Moz`.
    private static func isPrefetch(_ head: borrowing RequestHead) -> Bool {
        for index in 0..<head.fieldCount {
            let field = head.field(at: index)
            guard let known = field.known, [.secPurpose, .purpose, .xMoz].contains(known) else { continue }
            let purposes = FieldSyntax.members(Array(field.value)).map { FieldSyntax.essence(of: $0) }
            let isPrefetch = purposes.contains { purpose in
                ["prefetch", "prerender"].contains { FieldSyntax.equalsIgnoringCase(purpose, $0.utf8) }
            }
            if isPrefetch { return true }
        }
        return false
    }
}

/// A host with its port as `Host`, a URL or an `Origin` spells it (RFC 3986 §3.2).
struct Authority: Sendable, Equatable {
    /// In lower case, without a trailing dot; an IPv6 address without its brackets.
    var host: String
    var port: UInt16?
    var isIPv6 = false

    /// - Parameter host: In any case; an IPv6 address without its brackets.
    init(host: String, port: UInt16?) {
        let lowercased = host.lowercased()
        isIPv6 = lowercased.contains(":")
        (self.host, self.port) = (lowercased, port)
    }

    /// Reads `host`, `host:port`, `[v6]` or `[v6]:port`; nil for anything else, user information and paths included.
    init?(_ bytes: some Collection<UInt8>) {
        var rest = FieldSyntax.lowercased(bytes)[...]
        if rest.first == 0x5B {
            guard let close = rest.firstIndex(of: 0x5D) else { return nil }
            let address = rest[(rest.startIndex + 1)..<close]
            guard !address.isEmpty,
                address.allSatisfy({ FieldSyntax.hexDigit($0) != nil || $0 == 0x3A || $0 == 0x2E })
            else { return nil }
            (host, isIPv6) = (String(decoding: address, as: UTF8.self), true)
            rest = rest[(close + 1)...]
        } else {
            let end = rest.firstIndex(of: 0x3A) ?? rest.endIndex
            var name = rest[..<end]
            if name.last == 0x2E { name.removeLast() }
            guard !name.isEmpty, name.allSatisfy(Self.isHostByte) else { return nil }
            host = String(decoding: name, as: UTF8.self)
            rest = rest[end...]
        }
        guard let colon = rest.popFirst() else { return }
        guard colon == 0x3A else { return nil }
        // An empty port is the scheme's (RFC 3986 §3.2.3).
        guard !rest.isEmpty else { return }
        port = UInt16(String(decoding: rest, as: UTF8.self))
        guard rest.count <= 5, rest.allSatisfy(FieldSyntax.isDigit), port != nil else { return nil }
    }

    init?(_ text: String) { self.init(text.utf8) }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        byte &- 0x61 < 26 || FieldSyntax.isDigit(byte) || byte == 0x2D || byte == 0x2E || byte == 0x5F
    }

    /// Whether the host always means this machine, whatever a name server says (RFC 6761 §6.3).
    var isLoopback: Bool {
        host == "localhost" || host.hasSuffix(".localhost") || isIPv6 && (host == "::1" || host == "0:0:0:0:0:0:0:1")
            || isIPv4 && host.hasPrefix("127.")
    }

    fileprivate var isIPv4: Bool {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4
            && parts.allSatisfy { $0.count <= 3 && UInt8($0) != nil && $0.utf8.allSatisfy(FieldSyntax.isDigit) }
    }

    var text: String { (isIPv6 ? "[\(host)]" : host) + (port.map { ":\($0)" } ?? "") }
}

/// A further name of this server, as in `hosts:`.
struct OwnHost: Sendable, Equatable {
    let authority: Authority
    /// Whether a proxy in front of this server serves the name by HTTPS, written as `https://` before it.
    let isSecure: Bool

    /// Parses a word of `hosts:`; nil if it is not a host.
    init?(_ word: String) {
        isSecure = word.hasPrefix("https://")
        guard let authority = Authority(isSecure ? String(word.dropFirst("https://".count)) : word) else { return nil }
        self.authority = authority
    }

    /// Whether a request to this authority came by HTTPS under this name.
    func isSecure(for other: Authority) -> Bool {
        isSecure && authority.host == other.host && (authority.port ?? 443) == (other.port ?? 443)
    }
}

/// The address that a client used for Larder, for rewritten links.
struct ClientAuthority: Sendable, Equatable {
    /// As in the client's `Host`.
    let authority: String

    var bytes: [UInt8] { Array(authority.utf8) }

    func isNamed(_ bytes: UnsafeRawBufferPointer?) -> Bool {
        guard let bytes else { return false }
        var text = authority
        return text.withUTF8 { $0.elementsEqual(bytes) }
    }
}
