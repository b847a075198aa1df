package import HTTPSemantics
import Settings

/// What a URL names that a person has written: the client's path, the upstream's path, or a whole URL of either.
package struct NamedURL: Sendable {
    /// What a text was taken for.
    package enum Reading: String, Sendable {
        /// A path as programs send it to Larder.
        case client
        /// A path as it goes upstream.
        case upstream
        /// A URL of Larder or of an upstream.
        case url

        package var text: String {
            switch self {
            case .client: "a client's path"
            case .upstream: "the upstream's path"
            case .url: "a URL"
            }
        }
    }

    package let upstream: ProxiedUpstream
    /// The target that a client would send to Larder.
    let target: String
    /// The `Host` that a client would send.
    let authority: String
    package let reading: Reading
    /// The digest of a POST's body, if the URL has one, as `larder documents` shows it.
    let body: String?

    private static let byteLimit = 64 << 10

    /// Reads a URL or a path.
    ///
    /// Of all prefixes and base paths that a path begins with, the longest decides whose path it is. In doubt it is the client's.
    ///
    /// - Parameters:
    ///   - listen: the addresses of upstreams that have none of their own.
    ///   - name: of the upstream, if several match the URL.
    package init(
        _ text: String,
        among upstreams: [ProxiedUpstream],
        at listen: [Address],
        upstream name: String? = nil
    ) throws(ImaginedRequestError) {
        guard text.utf8.count <= Self.byteLimit else {
            throw .unreadable("the URL is longer than \(Self.byteLimit) bytes")
        }
        // As clients do with a URL that a person has typed.
        let posted = ReadBody.split(text)
        body = posted?.digest
        let text = PercentEncoding.encode(posted?.url ?? text) { $0 < 0x80 }
        if let byte = text.utf8.first(where: { $0 <= 0x20 || $0 == 0x7F }) {
            let escape = PercentEncoding.escape(byte)
            throw .unreadable("the URL contains the byte 0x\(escape.dropFirst()); write it as \(escape)")
        }
        guard !text.utf8.contains(0x23) else {
            throw .unreadable("the URL has a fragment, which is never sent; leave out what follows \"#\"")
        }
        let candidates = upstreams.filter { name == nil || $0.name == name }
        guard !candidates.isEmpty else {
            throw .unreadable("there is no upstream \"\(name ?? "")\"; the upstreams are \(Self.names(upstreams))")
        }
        if text.hasPrefix("/") {
            if let (upstream, target) = Self.upstreamPath(text, of: candidates) {
                (self.upstream, self.target, authority, reading) = (upstream, target, "localhost", .upstream)
                return
            }
            let common = candidates.filter(\.settings.listen.isEmpty)
            upstream = try Self.owner(of: text, among: common.isEmpty ? candidates : common)
            (target, authority, reading) = (text, "localhost", .client)
            return
        }
        reading = .url
        guard let mark = text.firstRange(of: "://") else {
            throw .unreadable("\"\(text)\" is not a URL; write a path such as \"/users/1\", or a URL with its scheme")
        }
        let scheme = text[..<mark.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else {
            throw .unreadable("\"\(scheme)\" is not supported; a URL begins with http:// or https://")
        }
        let rest = text[mark.upperBound...]
        let host = rest.prefix { $0 != "/" && $0 != "?" }
        let path = Self.rooted(rest[host.endIndex...])
        guard let asked = Authority(String(host)) else {
            throw .unreadable("\"\(host)\" is not a host with an optional port; a URL here has no user name either")
        }
        if let (upstream, target) = try Self.upstream(at: scheme, asked, path, among: candidates) {
            (self.upstream, self.target, authority) = (upstream, target, "localhost")
            return
        }
        let served = Self.served(at: asked, candidates, listen)
        guard !served.isEmpty else {
            throw .unreadable(
                "neither Larder nor an upstream is at \(scheme)://\(host); upstreams are \(Self.names(upstreams))"
            )
        }
        upstream = try Self.owner(of: path, among: served)
        (target, authority) = (path, String(host))
    }

    /// Whether the paths of clients and of the upstream are the same.
    package var isPlain: Bool {
        upstream.settings.prefix == upstream.settings.url.basePath && upstream.settings.aliases.isEmpty
    }

    /// The upstream of a path as it goes upstream, and the client's path; nil if it is the client's already, or fits several.
    private static func upstreamPath(_ path: String, of upstreams: [ProxiedUpstream]) -> (ProxiedUpstream, String)? {
        func longest(_ folders: [String]) -> Int { folders.filter { isBelow(path, $0) }.map(\.utf8.count).max() ?? -1 }
        let length = longest(upstreams.map(\.settings.url.basePath))
        guard length > longest(upstreams.map(\.settings.prefix)) else { return nil }
        let found = upstreams.filter {
            let base = $0.settings.url.basePath
            return base.utf8.count == length && isBelow(path, base)
        }
        return found.count == 1 ? (found[0], found[0].clientURL(ofURL: path)) : nil
    }

    /// The upstream with a URL's origin and base path, and the target that Larder would receive.
    private static func upstream(
        at scheme: String,
        _ asked: Authority,
        _ path: String,
        among upstreams: [ProxiedUpstream]
    ) throws(ImaginedRequestError) -> (ProxiedUpstream, String)? {
        let there = upstreams.filter { upstream in
            let url = upstream.settings.url
            return url.scheme == scheme && url.host == asked.host
                && (url.port ?? standardPort(scheme)) == (asked.port ?? standardPort(scheme))
        }
        let found = there.filter { isBelow(path, $0.settings.url.basePath) }
        if found.isEmpty, let upstream = there.first {
            throw .unreadable(
                "\(path) is outside of the base path of \(upstream.name), \(upstream.settings.url); no upstream is asked for it"
            )
        }
        let longest = found.map(\.settings.url.basePath.utf8.count).max()
        let best = found.filter { $0.settings.url.basePath.utf8.count == longest }
        guard let upstream = best.first else { return nil }
        guard best.count == 1 else { throw ambiguous(best) }
        return (upstream, upstream.clientURL(ofURL: path))
    }

    /// The upstreams served at an address of Larder's; none if it is another address.
    private static func served(at asked: Authority, _ upstreams: [ProxiedUpstream], _ listen: [Address])
        -> [ProxiedUpstream]
    {
        func names(_ addresses: [Address], portToo: Bool) -> Bool {
            addresses.contains { address in
                guard case .tcp(let host, let port) = address else { return false }
                let isHost = Authority(host: host, port: nil).host == asked.host || asked.isLoopback
                return isHost && (!portToo || port == asked.port)
            }
        }
        let own = upstreams.filter { names($0.settings.listen, portToo: true) }
        if !own.isEmpty { return own }
        // The port is not compared: the kernel may have chosen it, or another one may lead here.
        return upstreams.filter { upstream in
            upstream.settings.listen.isEmpty
                && (asked.isLoopback || names(listen, portToo: false)
                    || upstream.settings.hosts.contains { OwnHost($0)?.authority.host == asked.host })
        }
    }

    /// The upstream with the longest prefix of a path.
    private static func owner(of path: String, among upstreams: [ProxiedUpstream]) throws(ImaginedRequestError)
        -> ProxiedUpstream
    {
        let found = upstreams.filter { isBelow(path, $0.settings.prefix) }
        let longest = found.map(\.settings.prefix.utf8.count).max()
        let best = found.filter { $0.settings.prefix.utf8.count == longest }
        guard let upstream = best.first else {
            let prefixes = upstreams.map { "\($0.settings.prefix) (\($0.name))" }.joined(separator: ", ")
            throw .unserved("no upstream is configured for this path; prefixes are \(prefixes)")
        }
        guard best.count == 1 else { throw ambiguous(best) }
        return upstream
    }

    private static func ambiguous(_ upstreams: [ProxiedUpstream]) -> ImaginedRequestError {
        .unreadable("the URL fits several upstreams: \(names(upstreams)); say which one")
    }

    private static func names(_ upstreams: [ProxiedUpstream]) -> String {
        upstreams.map { "\($0.name) (\($0.settings.url))" }.joined(separator: ", ")
    }

    private static func isBelow(_ path: String, _ folder: String) -> Bool {
        guard path.hasPrefix(folder) else { return false }
        let next = path.utf8.dropFirst(folder.utf8.count).first
        return folder.isEmpty || next == nil || next == 0x2F || next == 0x3F
    }

    private static func rooted(_ path: Substring) -> String { path.hasPrefix("/") ? String(path) : "/\(path)" }

    private static func standardPort(_ scheme: String) -> UInt16 { scheme == "https" ? 443 : 80 }
}

extension ProxiedUpstream {
    /// The path and query that a client sends, for those that go upstream.
    package func clientURL(ofURL url: String) -> String {
        let (base, prefix) = (settings.url.basePath, settings.prefix)
        guard base != prefix, url.utf8.starts(with: base.utf8) else { return url }
        let rest = url.dropFirst(base.count)
        return prefix.isEmpty && !rest.hasPrefix("/") ? "/\(rest)" : prefix + rest
    }
}
