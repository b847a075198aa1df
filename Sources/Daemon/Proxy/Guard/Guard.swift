/// Decides, before any look-up, whether a request may be answered at all (DESIGN: Guard).
///
/// A web page in the user's browser can send requests to any port of this machine. What gives it away is the `Host` it
/// must name (a rebound name is not ours), and the `Origin` and `Sec-Fetch-Site` that the browser adds.
///
/// A class, because every request asks one: a value would be copied, list by list, for each.
final class Guard: Sendable {
    /// Where requests come in.
    enum Listener: Sendable, Equatable {
        /// As bound: a wildcard address listens on every address of the machine.
        case tcp(host: String, port: UInt16)
        /// No browser can reach it.
        case unix
    }

    enum Verdict: Sendable, Equatable {
        /// Not a browser, or a page of our own.
        case allowed
        /// A page whose origin `cors:` allows; the answer takes `CORS.fields(for:)`.
        case allowedOrigin([UInt8])
        /// To be answered with `CORS.preflightFields`, nothing else.
        case preflight([UInt8])
        case refused(Refusal)
    }

    enum Refusal: Sendable, Equatable {
        /// 421
        case misdirected(authority: String)
        /// 403
        case foreignOrigin(String)
        /// 403
        case foreignSite(String)

        var status: Int {
            switch self {
            case .misdirected: 421
            case .foreignOrigin, .foreignSite: 403
            }
        }

        /// For the person who reads the problem document.
        var message: String {
            switch self {
            case .misdirected(let authority):
                "The request is addressed to \"\(authority)\", which is not this server. "
                    + "Use its listen address or localhost, or add the name to `hosts:`."
            case .foreignOrigin(let origin):
                "Pages of the origin \"\(origin)\" may not use this server. Add the origin to `cors:` to let them."
            case .foreignSite(let site):
                "A browser sent this request for another site's page (Sec-Fetch-Site: \(site)). "
                    + "Add the page's origin to `cors:` and let it send an Origin."
            }
        }
    }

    /// The fields that decide, as the request has them; several lines of one are joined, which no rule allows.
    struct Facts {
        /// The authority of an absolute-form target where there is one, else `Host`; nil without either.
        var authority: UnsafeRawBufferPointer?
        var origin: UnsafeRawBufferPointer?
        var secFetchSite: UnsafeRawBufferPointer?
        var isOptions = false
        /// Whether there is an `Access-Control-Request-Method`.
        var asksForMethod = false
    }

    private let listeners: [Listener]
    private let hosts: [Authority]
    let cors: CORS
    /// The spellings of `Host` that nearly all requests have, so that those are a comparison of bytes.
    private let usualHosts: [[UInt8]]

    /// - Parameters:
    ///   - hosts: further names, each with a port or, without, for all our ports and the schemes' own.
    init(listeners: [Listener], hosts: [String] = [], cors: CORS = CORS()) {
        self.listeners = listeners
        self.hosts = hosts.compactMap { Authority($0) }
        self.cors = cors
        usualHosts = listeners.flatMap { listener -> [[UInt8]] in
            guard case .tcp(let host, let port) = listener else { return ["localhost"].map { Array($0.utf8) } }
            let own = Guard.isWildcard(host) ? [] : [Authority(host: host, port: port).text]
            return (own + ["localhost:\(port)", "127.0.0.1:\(port)", "[::1]:\(port)"]).map { Array($0.utf8) }
        }
    }

    /// Decides on one request; costs a comparison or two where no browser is at work.
    @inline(__always)
    func check(_ facts: Facts) -> Verdict {
        guard isOurs(facts.authority) else {
            return .refused(.misdirected(authority: Self.text(facts.authority)))
        }
        if facts.origin == nil, facts.secFetchSite == nil { return .allowed }
        return checkBrowser(facts)
    }

    private func checkBrowser(_ facts: Facts) -> Verdict {
        guard let origin = facts.origin else {
            guard let site = facts.secFetchSite else { return .allowed }
            let isOwn =
                FieldSyntax.equalsIgnoringCase(site, "none") || FieldSyntax.equalsIgnoringCase(site, "same-origin")
            return isOwn ? .allowed : .refused(.foreignSite(Self.text(facts.secFetchSite)))
        }
        let bytes = Array(origin)
        if cors.allows(bytes) {
            return facts.isOptions && facts.asksForMethod ? .preflight(bytes) : .allowedOrigin(bytes)
        }
        guard isSameOrigin(bytes, facts.authority) else {
            return .refused(.foreignOrigin(Self.text(facts.origin)))
        }
        guard let site = facts.secFetchSite else { return .allowed }
        let isOwn = FieldSyntax.equalsIgnoringCase(site, "none") || FieldSyntax.equalsIgnoringCase(site, "same-origin")
        return isOwn ? .allowed : .refused(.foreignSite(Self.text(facts.secFetchSite)))
    }

    /// Whether the authority is one of this server's.
    private func isOurs(_ authority: UnsafeRawBufferPointer?) -> Bool {
        guard let authority, !authority.isEmpty else {
            // HTTP/1.0 has no `Host`, and no browser speaks it.
            return true
        }
        for usual in usualHosts where FieldSyntax.isSame(authority, usual) {
            return true
        }
        guard let parsed = Authority(authority) else { return false }
        return listeners.contains { accepts(parsed, at: $0) }
    }

    private func accepts(_ authority: Authority, at listener: Listener) -> Bool {
        switch listener {
        case .unix:
            return authority.isLoopback || hosts.contains { $0.host == authority.host }
        case .tcp(let host, let port):
            // A loopback name without a port is one that a person typed: no name server can rebind it.
            if authority.isLoopback, authority.port == nil || authority.port == port { return true }
            let isOwnPort = (authority.port ?? 80) == port
            if isOwnPort {
                if authority.host == Authority(host: host, port: nil).host { return true }
                // Bound to every address: none of them can be rebound, since it is no name.
                if Guard.isWildcard(host), authority.isAddress { return true }
            }
            return hosts.contains { known in
                guard known.host == authority.host else { return false }
                guard let knownPort = known.port else {
                    return isOwnPort || authority.port == nil || authority.port == 443
                }
                return (authority.port ?? 80) == knownPort
            }
        }
    }

    /// Whether a page was loaded from the very authority it now talks to, which is ours.
    private func isSameOrigin(_ origin: [UInt8], _ authority: UnsafeRawBufferPointer?) -> Bool {
        guard let authority, let own = Authority(authority) else { return false }
        let reference = URIReference(origin)
        guard let scheme = reference.scheme, let name = reference.authority.flatMap({ Authority($0) }),
            reference.path.isEmpty, reference.query == nil, reference.fragment == nil
        else { return false }
        // `https`, where a proxy of the user's own stands in front and is configured as a host.
        let isHTTPS = scheme.elementsEqual("https".utf8)
        guard isHTTPS || scheme.elementsEqual("http".utf8) else { return false }
        let defaultPort: UInt16 = isHTTPS ? 443 : 80
        return name.host == own.host && (name.port ?? defaultPort) == (own.port ?? defaultPort)
    }

    private static func isWildcard(_ host: String) -> Bool {
        host == "0.0.0.0" || host == "::" || host == "[::]" || host == "*" || host.isEmpty
    }

    private static func text(_ bytes: UnsafeRawBufferPointer?) -> String {
        // It goes into a message: no more of it than one can read.
        String(decoding: (bytes.map { Array($0.prefix(200)) } ?? []), as: UTF8.self)
    }
}
