import CachePolicy
package import HTTPSemantics
import Settings
import Store

/// A request as the worker read it, on its way to `ProxyCore`: its upstream, its cache key but for the principal, and how it wants
/// to be served.
package struct IncomingRequest: Sendable {
    package var message: Request
    package let upstream: ProxiedUpstream
    /// Path and query as they go upstream, spelled as the client did.
    package let target: String
    /// The path that routes are matched against: without prefix, base path and query.
    package let route: String
    package var query: String? { ProxiedUpstream.query(ofURL: target) }
    /// The URL of the cache key: with redacted credentials, in its canonical spelling.
    package private(set) var url: String
    /// The canonical text of the request fields that select a representation.
    package let context: String
    /// The lines of the request fields that are neither in the key nor known to be harmless: see `OtherFields`.
    let otherLines: [UInt8]
    /// The digest by which the principal is found in memory; nil for an anonymous request.
    let credentialsDigest: Digest128?
    package let view: View
    /// The mode that `Larder-Live` asks for; nil for a plain response.
    package let live: LiveMode?
    let base: ClientAuthority
    /// Notes how it is served; nil if nothing is noted, as for an imagined request.
    var note: RequestNote?
    /// The number of the clients among whom entity tags stand for content; nil if there are none.
    var group: Int64?
    /// The body of a POST that reads; the message is then that of a GET.
    private(set) var read: ReadBody?
    /// Why a POST whose route says that it reads is a write nonetheless.
    var notRead: NotReadReason?
}

extension IncomingRequest {
    /// The method as the client sent it, by which routes are found.
    package var sentMethod: String { read == nil ? message.method : "POST" }

    /// The POST that reads, as it is served: as a GET whose URL has the body's digest.
    ///
    /// A `Range` has no meaning for a POST (RFC 9110 §14.2).
    func reading(_ body: ReadBody) -> IncomingRequest {
        var request = self
        (request.read, request.message.method, request.message.body) = (body, "GET", nil)
        for name in ["range", "if-range"] { request.message.fields.remove(name) }
        let url = String(decoding: upstream.keyURL(ofTarget: Array(target.utf8), method: "POST"), as: UTF8.self)
        request.url = body.url(of: url)
        return request
    }

    /// Makes it of a request that the builder has just read; throws the problem to respond with.
    init(
        _ request: borrowing RequestHead,
        _ upstream: ProxiedUpstream,
        _ key: CacheKeyBuilder,
        _ hasher: KeyHasher
    ) throws(ProblemDocument) {
        let (target, url) = (String(decoding: key.target, as: UTF8.self), String(decoding: key.url, as: UTF8.self))
        // What is no UTF-8 is replaced, and so differs; to have it validated takes three times as long.
        guard target.utf8.elementsEqual(key.target), url.utf8.elementsEqual(key.url) else { throw .notUTF8 }
        (self.upstream, self.target, self.url) = (upstream, target, url)
        message = request.owned()
        route = upstream.redactedRoute(ofURL: target)
        live = try LiveMode(request, message.fields, parameters: key.liveParameters)
        guard !Via.isLoop(message.fields) else { throw .loop }
        context = String(decoding: key.context, as: UTF8.self)
        otherLines = key.otherLines
        credentialsDigest = key.credentialsDigest(upstream, hasher)
        let view = try Self.view(message.fields)
        // The upstream then sends the mapped view itself, which is served as it comes.
        self.view = upstream.passesView && view == .mapped ? .wire : view
        base = ClientAuthority(authority: request.authority.map { String(decoding: $0, as: UTF8.self) } ?? "localhost")
    }

    /// Makes it of a request that is not served, so that its principal need not be found quickly.
    init(_ request: borrowing RequestHead, _ upstream: ProxiedUpstream) throws(ProblemDocument) {
        var key = CacheKeyBuilder()
        let hasher = KeyHasher(secret: (0, 0))
        try key.read(request, upstream, hasher)
        try self.init(request, upstream, key, hasher)
    }

    /// A recorded request, as if a client had just sent it; nil if its target is not the upstream's.
    ///
    /// - Parameter target: path and query as they went upstream.
    package init?(recorded method: String, _ target: String, fields: Fields, _ upstream: ProxiedUpstream) {
        let parts = target.utf8.split(separator: 0x3F, maxSplits: 1, omittingEmptySubsequences: false).map { Array($0) }
        let (prefix, base) = (upstream.targetNormaliser.prefix, upstream.targetNormaliser.basePath)
        let query = parts.dropFirst().first
        guard let path = parts.first, path.starts(with: base),
            let normalised = try? upstream.targetNormaliser.normalise(
                path: prefix + path.dropFirst(base.count),
                query: query
            )
        else { return nil }
        message = Request(method: method, target: target, fields: fields)
        (self.upstream, self.target) = (upstream, target)
        route = upstream.redactedRoute(ofURL: String(decoding: normalised, as: UTF8.self))
        url = String(decoding: upstream.keyURL(ofTarget: normalised), as: UTF8.self)
        context = upstream.context.canonical(fields)
        (otherLines, credentialsDigest, view, live) = ([], nil, .wire, nil)
        self.base = ClientAuthority(authority: "localhost")
    }

    private static func view(_ fields: Fields) throws(ProblemDocument) -> View {
        guard fields.contains(.larderView) else { return .wire }
        switch fields.text("larder-view") {
        case nil, "wire": return .wire
        case "raw": return .raw
        case "mapped": return .mapped
        case let other?: throw .badView(other)
        }
    }

    /// The canonical text of the client's own credentials; nil for an anonymous request.
    package var clientCredentials: [UInt8]? {
        let fields = live == nil ? message.fields : LiveMode.plain(message.fields)
        return upstream.credentials(target: target, fields: fields)
    }

    /// The text that identifies the principal; nil for an anonymous request.
    var credentials: [UInt8]? {
        guard let credential = upstream.settings.credential else { return clientCredentials }
        // Responses to the upstream's credential belong to its principal, whoever the client is.
        return Array("credential:\(credential.name)".utf8) + [0] + (clientCredentials ?? [])
    }

    /// Turns a response's links for the client's address back into the upstream's.
    package func withUpstreamLinks(_ fields: Fields, body: [UInt8]) -> (fields: Fields, body: [UInt8]) {
        let url = upstream.settings.url
        let back = LinkRewriter(
            upstream: "\(upstream.scheme(for: base))://\(base.authority)\(upstream.settings.prefix)",
            authority: String(url.origin.dropFirst(url.scheme.count + 3)),
            prefix: url.basePath,
            scheme: url.scheme,
            rewritesAll: upstream.settings.rewriteLinks
        )
        var fields = fields
        back.rewrite(&fields)
        guard upstream.settings.rewriteLinks, view != .raw, upstream.isJSON(fields) else { return (fields, body) }
        return (fields, back.rewritten(body: body) ?? body)
    }
}

extension ProxiedUpstream {
    /// The canonical credentials in a request; nil for an anonymous one.
    package func credentials(target: String, fields: Fields) -> [UInt8]? {
        principal.canonical(target: TargetNormaliser.normalisingEscapes(Array(target.utf8)), fields: fields)
    }
}
