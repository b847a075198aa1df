import CachePolicy
package import HTTPSemantics
import HTTPServer
import Settings
package import Store

/// What a worker has found out about a request before it hands it over.
package struct IncomingRequest: Sendable {
    package let upstream: ProxiedUpstream
    /// Path and query as they go upstream.
    package let target: String
    /// The path that routes are matched against.
    package let route: String
    package let parts: CacheKeyParts
    /// The digest by which the hit path asks for the principal; nil where it will not.
    let quickDigest: Digest128?
    package let view: View
    /// What `Larder-Live` asks for; nil where the response is a plain one.
    package let live: LiveMode?
    let base: ClientAuthority
    /// What notes how it is answered; nil where nobody wants to know, as for a request that is only imagined.
    var note: RequestNote?
}

extension IncomingRequest {
    /// Reads a request that is not for the hit path; throws what it is to be answered instead.
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
        // What routes capture is stored.
        route = String(decoding: upstream.principal.redacted(target: normalised.routePath), as: UTF8.self)

        var fields = request.owned().fields
        live = try LiveMode(request, fields, parameters: parameters)
        if live != nil { fields = LiveMode.plain(fields) }
        // `Guard` knows the usual spellings.
        if let field = fields.lines.first(where: UpstreamFields.overridesMethod) {
            throw .guarded(.methodOverride(String(decoding: field.name, as: UTF8.self)))
        }
        guard !Via.isLoop(fields) else { throw .loop }
        parts = try CacheKeyParts(normalised, fields, upstream)
        let view = try Self.view(fields)
        // What the upstream sends is the mapped view then, to be served as it came.
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
