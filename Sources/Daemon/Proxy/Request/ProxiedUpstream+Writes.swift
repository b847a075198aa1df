import HTTPServer
import Mapping
import Settings
import Store

/// What the routes say of writes.
extension ProxiedUpstream {
    /// The object that a request's path names: by the route of its own method, else by that of retrievals.
    func bound(_ request: ProxyRequest) -> BoundObject? {
        for method in [request.message.method, "GET"] {
            let subject = RouteSubject(method: method, path: request.route, query: Self.query(ofURL: request.target))
            guard let match = rules.body(subject), match.rule.shape == .one else { continue }
            let object = rules.models.object(boundBy: match.bound, captures: match.captures, of: match.rule.model)
            if let object { return object }
        }
        return nil
    }

    /// Whether a DELETE has deleted its target, as far as its response says that it was carried out.
    func deletes(_ request: ProxyRequest, status: Int) -> Bool {
        rules.deletes(
            path: request.route,
            query: Self.query(ofURL: request.target),
            status: (200..<300).contains(status) ? status : nil
        )
    }

    /// What else a write of this path invalidates, as its route says: paths, and patterns where there are many.
    ///
    /// - Parameter status: of its response; nil before it, or where it never came.
    func invalidated(by request: ProxyRequest, status: Int?) -> (paths: [String], patterns: [InvalidationPattern]) {
        var (paths, patterns): ([String], [InvalidationPattern]) = ([], [])
        let base = settings.url.basePath
        for pattern in rules.invalidated(
            method: request.message.method,
            path: request.route,
            query: Self.query(ofURL: request.target),
            status: status.flatMap { (200..<300).contains($0) ? $0 : nil }
        ) {
            if let path = pattern.onlyPath {
                paths += [base + path] + (path == "/" ? [] : ["\(base)\(path)/"])
            } else {
                patterns.append(InvalidationPattern(upstream: storeKey, base: base, pattern: pattern))
            }
        }
        return (paths, patterns)
    }
}
