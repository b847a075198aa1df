import CachePolicy
package import HTTPSemantics
import HTTPServer
import Settings
package import Store

/// A request as the worker parsed it, handed to `ProxyCore`.
package struct IncomingRequest: Sendable {
    package let upstream: ProxiedUpstream
    /// Path and query as they go upstream.
    package let target: String
    /// The path that routes are matched against.
    package let route: String
    package let parts: CacheKeyParts
    /// The digest by which the hit path finds the principal; nil if it will not look.
    let quickDigest: Digest128?
    package let view: View
    /// The mode that `Larder-Live` asks for; nil for a plain response.
    package let live: LiveMode?
    let base: ClientAuthority
    /// Notes how it is served; nil if nothing is noted, as for an imagined request.
    var note: RequestNote?
}

extension IncomingRequest {
    /// Reads a request that is not for the hit path; throws the problem to respond with.
    package init(_ request: borrowing RequestHead, _ upstream: ProxiedUpstream, quickDigest: Digest128?)
        throws(ProblemDocument)
    {
        self.upstream = upstream
        self.quickDigest = quickDigest
        var query = request.query.map { Array($0) }
        let parameters = LiveMode.takeParameters(from: &query)
        let normalised: TargetNormaliser.Target
        do {
            normalised = try upstream.normaliser.normalise(path: Array(request.path), query: query)
        } catch {
            throw .badTarget(error.message)
        }
        guard let target = String(validating: normalised.upstream, as: UTF8.self) else { throw .notUTF8 }
        self.target = target
        // Captures of routes are stored, so they must not contain credentials.
        route = String(decoding: upstream.principal.redacted(target: normalised.routePath), as: UTF8.self)

        var fields = request.owned().fields
        live = try LiveMode(request, fields, parameters: parameters)
        if live != nil { fields = LiveMode.plain(fields) }
        // `Guard` knows only the usual spellings.
        if let field = fields.lines.first(where: UpstreamFields.overridesMethod) {
            throw .guarded(.methodOverride(String(decoding: field.name, as: UTF8.self)))
        }
        guard !Via.isLoop(fields) else { throw .loop }
        parts = try CacheKeyParts(normalised, fields, upstream)
        let view = try Self.view(fields)
        // The upstream then sends the mapped view itself, which is served as it comes.
        self.view = upstream.passesView && view == .mapped ? .wire : view
        base = ClientAuthority(authority: request.authority.map { String(decoding: $0, as: UTF8.self) } ?? "localhost")
    }

    private static func view(_ fields: Fields) throws(ProblemDocument) -> View {
        switch fields.text("larder-view") {
        case nil, "wire": return .wire
        case "raw": return .raw
        case "mapped": return .mapped
        case let other?: throw .badView(other)
        }
    }
}
