package import HTTPSemantics

/// The URLs that a successful unsafe request makes stale (RFC 9111 §4.4).
package enum InvalidationTargets {
    /// The targets at the upstream (path and query), without duplicates, the request's own first.
    ///
    /// Nothing is invalidated by a safe method, or by a response other than 2xx and 3xx.
    ///
    /// - Parameters:
    ///   - fields: The fields of the response as the upstream sent it. `Location` and `Content-Location` count only with the
    ///     same origin as the request; another origin could otherwise invalidate this one's responses.
    ///   - linkRewriter: Maps the address used by the client to the upstream: to the client that address is the origin, and many
    ///     upstreams know their public name.
    package static func find(
        method: String,
        url: String,
        status: Int,
        fields: Fields,
        linkRewriter: LinkRewriter? = nil
    )
        -> [[UInt8]]
    {
        guard !MethodFacts.isSafe(method), (200...399).contains(status) else { return [] }
        let base = URIReference(url)
        var targets = [base.target]
        for line in fields.all("location") + fields.all("content-location") {
            guard let target = target(of: line, at: base, linkRewriter: linkRewriter) else { continue }
            if !targets.contains(target) { targets.append(target) }
        }
        return targets
    }

    /// The target at the upstream that a reference in a response names; nil if it leads to another origin.
    package static func target(of reference: [UInt8], at base: URIReference, linkRewriter: LinkRewriter?) -> [UInt8]? {
        let resolved = URIReference(reference).resolved(against: base)
        guard let origin = resolved.origin else { return nil }
        return origin == base.origin ? resolved.target : linkRewriter?.target(ofClient: resolved)
    }
}
