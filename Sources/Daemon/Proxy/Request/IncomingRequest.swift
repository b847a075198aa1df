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
    /// The URL of the cache key: credentials in it are redacted, and what means the same is spelled the same.
    package let keyURL: String
    package let context: String
    /// The text that `PrincipalKey` makes a principal of; nil for an anonymous request.
    package let credentials: [UInt8]?
    /// The lines that `OtherFields` makes a digest of; empty for none.
    let otherFields: [UInt8]
    /// The digest by which the hit path asks for the principal; nil where it will not.
    let quickDigest: Digest128?
    package let view: View
    /// What `Larder-Live` asks for; nil where the response is a plain one.
    package let live: LiveMode?
    let base: ClientAuthority
}

extension IncomingRequest {
    /// Reads a request that is not for the hit path; throws what it is to be answered instead.
    package init(_ request: borrowing RequestHead, _ upstream: ProxiedUpstream, quickDigest: Digest128?)
        throws(RequestRefusal)
    {
        self.upstream = upstream
        self.quickDigest = quickDigest
        var query = request.query.map { Array($0) }
        let parameters = LiveMode.takeParameters(from: &query)
        let normalised: TargetNormaliser.Target
        do {
            normalised = try upstream.normaliser.normalise(path: Array(request.path), query: query)
        } catch {
            throw RequestRefusal(problem: .badTarget(error.message))
        }
        guard let target = String(validating: normalised.upstream, as: UTF8.self),
            let key = String(validating: upstream.keyURL(of: normalised), as: UTF8.self)
        else { throw RequestRefusal(problem: .badTarget("It is not UTF-8; write such bytes as percent-escapes.")) }
        self.target = target
        keyURL = key
        // What routes capture is stored.
        route = String(decoding: upstream.principal.redacted(target: normalised.routePath), as: UTF8.self)

        var fields = request.owned().fields
        live = try LiveMode(request, fields, parameters: parameters)
        if live != nil { fields = LiveMode.plain(fields) }
        // `Guard` knows the usual spellings.
        if let field = fields.lines.first(where: UpstreamFields.overridesMethod) {
            throw RequestRefusal(problem: .guarded(.methodOverride(String(decoding: field.name, as: UTF8.self))))
        }
        guard !Via.isLoop(fields) else { throw RequestRefusal(problem: .loop) }
        // What `Connection` names does not go upstream, and selects nothing there (RFC 9110 §7.6.1).
        let forwarded = fields.withoutHopByHop()
        context = upstream.context.canonical(forwarded)
        otherFields = OtherFields.lines(of: forwarded, upstream)
        let own = upstream.principal.canonical(target: normalised.key, fields: fields)
        if let credential = upstream.settings.credential {
            guard !fields.lines.contains(where: { $0.isNamed(credential.header.lowercased()) }) else {
                throw RequestRefusal(problem: .credentialRefused(upstream: upstream.name))
            }
            // What the credential shows belongs to it, whoever asks.
            credentials = Array("credential:".utf8) + credential.value.bytes + [0] + (own ?? [])
        } else {
            credentials = own
        }
        let view = try Self.view(fields)
        // What the upstream sends is the mapped view then, to be served as it came.
        self.view = upstream.passesView && view == .mapped ? .wire : view
        base = ClientAuthority(authority: request.authority.map { String(decoding: $0, as: UTF8.self) } ?? "localhost")
    }

    private static func view(_ fields: Fields) throws(RequestRefusal) -> View {
        switch fields.text("larder-view") {
        case nil, "wire": return .wire
        case "raw": return .raw
        case "mapped": return .mapped
        case let other?: throw RequestRefusal(problem: .badView(other))
        }
    }
}

/// Why a request is not even looked up: what it is answered instead.
package struct RequestRefusal: Error {
    package let problem: ProblemDocument
}
