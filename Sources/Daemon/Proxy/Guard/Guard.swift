package import HTTPSemantics

/// Decides, before any look-up, whether a request may be served at all (DESIGN: Guard).
///
/// A web page in the user's browser can send requests to any port of this machine. It is recognised by the `Host` that it must
/// name (a rebound name is not ours), and by the `Origin` and `Sec-Fetch-Site` that the browser adds. A browser sends
/// `Sec-Fetch-Site` only over TLS and to this machine's own names; elsewhere `Referer` and other browser fields decide.
///
/// A class, because every request uses one: a value would be copied, list by list, for each.
package final class Guard: Sendable {
    /// The address that requests come in at.
    package enum Listener: Sendable, Equatable {
        /// As bound: a wildcard address listens on every address of the machine.
        case tcp(host: String, port: UInt16)
        /// No browser can reach it.
        case unix
    }

    package enum Verdict: Sendable, Equatable {
        /// Not from a browser, or from a page of our own.
        case allowed
        /// A page whose origin `cors:` allows; the response gets `CORS.fields(for:)`.
        case allowedOrigin([UInt8])
        /// A preflight, to respond to with `CORS.preflightFields` and nothing else.
        case preflight([UInt8])
        case refused(Refusal)
    }

    package enum Refusal: Sendable, Equatable {
        /// 421
        case misdirected(authority: String)
        /// 403
        case foreignOrigin(String)
        /// 403
        case foreignSite(String)
        /// 403
        case foreignReferrer(String)
        /// 403
        case unattributed(authority: String)
        /// 403
        case prefetch
        /// 400
        case methodOverride(String)

        package var status: Int {
            switch self {
            case .misdirected: 421
            case .foreignOrigin, .foreignSite, .foreignReferrer, .unattributed, .prefetch: 403
            case .methodOverride: 400
            }
        }

        /// The title of the problem document.
        var title: String {
            switch self {
            case .misdirected: "Not this server"
            case .foreignOrigin, .foreignSite, .foreignReferrer, .unattributed: "Not for this page"
            case .prefetch: "Not ahead of time"
            case .methodOverride: "One method, not two"
            }
        }

        /// The detail of the problem document, for people.
        package var message: String {
            switch self {
            case .misdirected(let authority):
                "The request is addressed to \"\(authority)\", which is not this server. "
                    + "Use its listen address or localhost, or add the name to `hosts:`."
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
        /// Whether there is an `Access-Control-Request-Method`.
        var asksForMethod = false
        /// Whether it is a prefetch: `Sec-Purpose`, or its predecessors in browsers.
        var isPrefetch = false
        /// The field that names another method, if any.
        var methodOverride: KnownField?
        var userAgent: UnsafeRawBufferPointer?
        var hasLanguage = false
        /// Whether it has a field of Larder's own, which a page may send only to a server that allows it.
        var hasOwnField = false
    }

    private let listeners: [Listener]
    private let hosts: [OwnHost]
    package let cors: CORS
    /// Whether every request except health and metrics needs a token, which no page can supply for another site.
    private let wantsToken: Bool
    /// The usual spellings of `Host`, for which a comparison of bytes suffices.
    private let usualHosts: [(text: [UInt8], isLoopback: Bool)]

    /// Where an authority leads.
    private enum Place { case loopback, elsewhere, foreign }

    /// - Parameters:
    ///   - hosts: further names, each with a port or, without, for all our ports and the schemes' own; `https://` before one
    ///     leaves only the port of HTTPS.
    package init(listeners: [Listener], hosts: [String] = [], cors: CORS = CORS(), wantsToken: Bool = false) {
        self.listeners = listeners
        self.hosts = hosts.compactMap { OwnHost($0) }
        self.cors = cors
        self.wantsToken = wantsToken
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
            return place == .loopback ? .allowed : checkUntold(facts)
        }
        return checkBrowser(facts)
    }

    /// Decides on a request to a name for which browsers send no `Sec-Fetch-Site`.
    private func checkUntold(_ facts: Facts) -> Verdict {
        if let referer = facts.referer {
            guard !facts.isRepeated else { return .refused(.foreignReferrer(Self.text(facts.referer) + ", …")) }
            let bytes = Array(referer)
            let page = URIReference(bytes)
            let origin = page.scheme.map { Array($0) + [0x3A, 0x2F, 0x2F] + (page.authority.map { Array($0) } ?? []) }
            guard let origin, isSameOrigin(origin, facts.authority) || cors.allows(origin) else {
                return .refused(.foreignReferrer(Self.text(facts.referer)))
            }
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
            guard isSameOrigin(bytes, facts.authority) else {
                return .refused(.foreignOrigin(Self.text(facts.origin)))
            }
        }
        guard let site = facts.secFetchSite else { return .allowed }
        let isOwn = FieldSyntax.equalsIgnoringCase(site, "none") || FieldSyntax.equalsIgnoringCase(site, "same-origin")
        return isOwn ? .allowed : .refused(.foreignSite(Self.text(facts.secFetchSite)))
    }

    /// Whether the authority is one of this server's, and whether browsers take it for this machine.
    private func place(of authority: UnsafeRawBufferPointer?) -> Place {
        guard let authority, !authority.isEmpty else {
            // HTTP/1.0 has no `Host`, and no browser uses it.
            return .loopback
        }
        for usual in usualHosts where FieldSyntax.isSame(authority, usual.text) {
            return usual.isLoopback ? .loopback : .elsewhere
        }
        guard let parsed = Authority(authority), listeners.contains(where: { accepts(parsed, at: $0) }) else {
            return .foreign
        }
        return parsed.isLoopback ? .loopback : .elsewhere
    }

    private func accepts(_ authority: Authority, at listener: Listener) -> Bool {
        switch listener {
        case .unix:
            return authority.isLoopback || hosts.contains { $0.authority.host == authority.host }
        case .tcp(let host, let port):
            // A person typed a loopback name without a port: no name server can rebind it.
            if authority.isLoopback, authority.port == nil || authority.port == port { return true }
            let isOwnPort = (authority.port ?? 80) == port
            if isOwnPort {
                if authority.host == Authority(host: host, port: nil).host { return true }
                // Bound to every address: an address is no name, so it cannot be rebound.
                if Guard.isWildcard(host), authority.isAddress { return true }
            }
            return hosts.contains { known in
                if known.isSecure { return known.isSecure(for: authority) }
                guard known.authority.host == authority.host else { return false }
                guard let knownPort = known.authority.port else {
                    return isOwnPort || authority.port == nil || authority.port == 443
                }
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

    private static func text(_ bytes: UnsafeRawBufferPointer?) -> String {
        // It goes into a message, so it is cut to a readable length.
        String(decoding: (bytes.map { Array($0.prefix(200)) } ?? []), as: UTF8.self)
    }
}

extension Guard.Facts {
    /// The facts of a parsed request, without a copy.
    @inline(__always)
    package init(_ head: borrowing RequestHead, authority: UnsafeRawBufferPointer?) {
        self.init(
            authority: authority,
            origin: head[.origin],
            secFetchSite: head[.secFetchSite],
            referer: head[.referer],
            isOptions: head.method == .options,
            asksForMethod: head.has(.accessControlRequestMethod)
        )
        if origin != nil || secFetchSite != nil || referer != nil {
            isRepeated =
                head.count(of: .origin) > 1 || head.count(of: .secFetchSite) > 1 || head.count(of: .referer) > 1
        }
        if head.has(.secPurpose) || head.has(.purpose) || head.has(.xMoz) { isPrefetch = Self.isPrefetch(head) }
        if head.has(.httpMethodOverride) { methodOverride = .httpMethodOverride }
        if head.has(.httpMethod) { methodOverride = .httpMethod }
        if head.has(.methodOverride) { methodOverride = .methodOverride }
        userAgent = head[.userAgent]
        hasLanguage = head.has(.acceptLanguage)
        hasOwnField = head.has(.larderView) || head.has(.larderLive)
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
            for member in FieldSyntax.members(Array(field.value)) {
                let purpose = FieldSyntax.essence(of: member)
                if FieldSyntax.equalsIgnoringCase(purpose, "prefetch".utf8)
                    || FieldSyntax.equalsIgnoringCase(purpose, "prerender".utf8)
                {
                    return true
                }
            }
        }
        return false
    }
}
