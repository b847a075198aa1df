/// What an unsafe request that succeeded makes stale (RFC 9111 §4.4).
enum InvalidationTargets {
    /// The targets at the upstream (path and query), each once, the request's own first; empty when nothing is
    /// invalidated: a safe method, or an answer other than 2xx and 3xx.
    ///
    /// - Parameters:
    ///   - url: the absolute URL at the upstream that the request went to.
    ///   - fields: of the answer as the upstream sent it. `Location` and `Content-Location` count where they have the same
    ///     origin as the request; another origin's word about this one's answers would be an attack.
    static func find(method: String, url: String, status: Int, fields: Fields) -> [[UInt8]] {
        guard !MethodFacts.isSafe(method), (200...399).contains(status) else { return [] }
        let base = URIReference(url)
        var targets = [base.target]
        for line in fields.all("location") + fields.all("content-location") {
            let reference = URIReference(line).resolved(against: base)
            guard reference.origin == base.origin, reference.origin != nil else { continue }
            if !targets.contains(reference.target) { targets.append(reference.target) }
        }
        return targets
    }
}
