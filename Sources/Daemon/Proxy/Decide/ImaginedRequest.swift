package import HTTPSemantics
import HTTPServer
package import Settings

extension IncomingRequest {
    /// A request that no client sent, read like those of clients, by the same parser and guard.
    ///
    /// So an explanation shows what would happen to a real request.
    ///
    /// - Parameters:
    ///   - text: a URL at Larder's own address or at the upstream's, or a path alone.
    ///   - fields: as `Name: value`, in the order in which they would be sent; `Accept: */*` is added if there is no Accept.
    ///   - name: of the upstream, if several match the URL.
    package init(
        imagined method: String,
        _ text: String,
        fields: [String] = [],
        of upstreams: [ProxiedUpstream],
        named name: String? = nil,
        _ settings: Configuration
    ) throws(ImaginedRequestError) {
        let (upstream, target, authority) = try Self.place(of: text, among: upstreams, at: settings.listen, named: name)
        guard FieldName.complaint(method) == nil else { throw .unreadable("\"\(method)\" is not a method") }
        var lines: [String] = []
        for field in fields {
            guard let colon = field.firstIndex(of: ":") else {
                throw .unreadable("\"\(field)\" is not a header field; write it as Name: value")
            }
            let name = field[..<colon]
            guard FieldName.complaint(String(name)) == nil,
                !field.utf8.contains(where: { $0 == 0x0D || $0 == 0x0A || $0 == 0 })
            else { throw .unreadable("\"\(name)\" is not the name of a header field that could be sent") }
            lines.append(field)
        }
        // Nearly every client sends one, and a response's `Vary` may ask for it.
        if !lines.contains(where: { $0.lowercased().hasPrefix("accept:") }) { lines.append("Accept: */*") }
        let namesHost = lines.contains { $0.lowercased().hasPrefix("host:") }
        if !namesHost { lines.insert("Host: \(authority)", at: 0) }
        var head = Array("\(method) \(target) HTTP/1.1\r\n".utf8)
        for line in lines { head += Array(line.utf8) + [0x0D, 0x0A] }
        head += [0x0D, 0x0A]

        let parser = RequestParser(limits: settings.limits.http)
        let door = Self.door(of: upstream, settings.listen)
        self = try head.withUnsafeMutableBufferPointer { (buffer) throws(ImaginedRequestError) -> Self in
            guard let base = buffer.baseAddress else { throw .unreadable("it is empty") }
            switch parser.parse(base, count: buffer.count) {
            case .incomplete: throw .unreadable("its head does not end")
            case .refused(let fault): throw .refused(fault.problem)
            case .complete: break
            }
            guard !parser.head.hasBody else {
                throw .unreadable(
                    "a request with a body cannot be explained; leave out Content-Length and Transfer-Encoding"
                )
            }
            if let refusal = Self.refusal(of: parser.head, by: door, namesHost: namesHost) {
                throw .refused(.guarded(refusal))
            }
            if parser.head.method == .trace { throw .refused(.traceRefused) }
            do throws(ProblemDocument) {
                return try IncomingRequest(parser.head, upstream)
            } catch { throw .refused(error) }
        }
    }

    private static func door(of upstream: ProxiedUpstream, _ listen: [Address]) -> Guard {
        let addresses = upstream.settings.listen.isEmpty ? listen : upstream.settings.listen
        return Guard(listeners: addresses, hosts: upstream.settings.hosts, cors: upstream.cors)
    }

    private static func refusal(of head: borrowing RequestHead, by door: Guard, namesHost: Bool) -> Guard.Refusal? {
        // Without a Host field the address does not matter, so that users need not know it.
        let facts = Guard.Facts(head, authority: namesHost ? head.authority : nil)
        if case .refused(let refusal) = door.check(facts) { return refusal }
        return nil
    }
}

/// Why there is nothing to explain.
package enum ImaginedRequestError: Error, CustomStringConvertible {
    /// The request is malformed, or its URL matches no upstream.
    case unreadable(String)
    /// It would be refused before any look-up.
    case refused(ProblemDocument)

    package var description: String {
        switch self {
        case .unreadable(let reason): reason
        case .refused(let problem):
            "such a request is refused with \(problem.status) before anything is looked up: \(problem.detail ?? problem.title)"
        }
    }
}

// MARK: The URL

extension IncomingRequest {
    private static let urlLimit = 64 << 10

    /// The upstream that a URL belongs to, the target that a client would send to Larder, and its `Host`.
    ///
    /// - Parameters:
    ///   - listen: the addresses of upstreams that have none of their own.
    ///   - name: of the upstream, if several match the URL.
    static func place(
        of text: String,
        among upstreams: [ProxiedUpstream],
        at listen: [Address],
        named name: String? = nil
    ) throws(ImaginedRequestError) -> (upstream: ProxiedUpstream, target: String, authority: String) {
        guard text.utf8.count <= urlLimit else { throw .unreadable("the URL is longer than \(urlLimit) bytes") }
        // As clients do with a URL that a person has typed.
        let text = PercentEncoding.encode(text) { $0 < 0x80 }
        if let byte = text.utf8.first(where: { $0 <= 0x20 || $0 == 0x7F }) {
            let escape = PercentEncoding.escape(byte)
            throw .unreadable("the URL contains the byte 0x\(escape.dropFirst()); write it as \(escape)")
        }
        guard !text.utf8.contains(0x23) else {
            throw .unreadable("the URL has a fragment, which is never sent; leave out what follows \"#\"")
        }
        let candidates = upstreams.filter { name == nil || $0.name == name }
        guard !candidates.isEmpty else {
            throw .unreadable("there is no upstream \"\(name ?? "")\"; the upstreams are \(names(upstreams))")
        }
        if text.hasPrefix("/") {
            let common = candidates.filter(\.settings.listen.isEmpty)
            return (try owner(of: text, among: common.isEmpty ? candidates : common), text, "localhost")
        }
        guard let mark = text.firstRange(of: "://") else {
            throw .unreadable("\"\(text)\" is not a URL; write a path such as \"/users/1\", or a URL with its scheme")
        }
        let scheme = text[..<mark.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else {
            throw .unreadable("\"\(scheme)\" is not supported; a URL begins with http:// or https://")
        }
        let rest = text[mark.upperBound...]
        let host = rest.prefix { $0 != "/" && $0 != "?" }
        let path = rooted(rest[host.endIndex...])
        guard let asked = Authority(String(host)) else {
            throw .unreadable("\"\(host)\" is not a host with an optional port; a URL here has no user name either")
        }
        if let (upstream, target) = try self.upstream(at: scheme, asked, path, among: candidates) {
            return (upstream, target, "localhost")
        }
        let served = served(at: asked, candidates, listen)
        guard !served.isEmpty else {
            throw .unreadable(
                "neither Larder nor an upstream is at \(scheme)://\(host); upstreams are \(names(upstreams))"
            )
        }
        return (try owner(of: path, among: served), path, String(host))
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
        let below = path.dropFirst(upstream.settings.url.basePath.count)
        return (upstream, upstream.settings.prefix.isEmpty ? rooted(below) : upstream.settings.prefix + below)
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
            throw .unreadable("no upstream is configured for this path; prefixes are \(prefixes)")
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
