import CachePolicy
import HTTPSemantics
import Mapping
import Settings
import Store

/// The routes' rules on writes.
extension ProxiedUpstream {
    /// The object that a request's path names: by the route for its own method, else by that for retrievals.
    func bound(_ request: ProxyRequest) -> BoundObject? {
        let query = Self.query(ofURL: request.target)
        return (request.read == nil ? [request.message.method, "GET"] : ["POST"]).lazy.compactMap { method in
            self.rules.body(RouteSubject(method: method, path: request.route, query: query)).flatMap(self.object)
        }.first
    }

    /// The path, as it goes upstream, of the object that a write acts on: `/orders/5` for `POST /orders/5/cancel`; nil if there is none.
    ///
    /// An action's path is one segment below the path of an object, and no route says what is there.
    func actionPath(_ request: ProxyRequest) -> String? {
        guard !settings.models.isEmpty, !MethodFacts.isSafe(request.message.method),
            let path = WriteOutcome.parent(of: request.target, base: settings.url.basePath)
        else { return nil }
        let query = Self.query(ofURL: request.target)
        let isKnown = [request.message.method, "GET"].contains { method in
            rules.body(RouteSubject(method: method, path: request.route, query: query)) != nil
        }
        return isKnown || object(at: path) == nil && supposed(at: path, "GET").isEmpty ? nil : path
    }

    /// The objects that a write may change, unless its response shows them: the one that its path names or acts on.
    func written(_ request: ProxyRequest) -> [BoundObject] {
        (bound(request) ?? actionPath(request).flatMap(object)).map { [$0] } ?? supposed(request)
    }

    /// The object that a path names by the route for retrievals.
    func object(at path: String) -> BoundObject? {
        rules.body(RouteSubject(method: "GET", path: route(ofURL: path))).flatMap(object)
    }

    /// The objects that the path of a write, or that of the object it acts on, may name where its route does not say what the
    /// captures are.
    func supposed(_ request: ProxyRequest) -> [BoundObject] {
        let path = actionPath(request) ?? request.target
        return [request.message.method, "GET"].lazy.map { self.supposed(at: path, $0) }.first { !$0.isEmpty } ?? []
    }

    /// The last part of a path is mostly the object's identity or a key.
    private func supposed(at path: String, _ method: String) -> [BoundObject] {
        guard let match = rules.body(RouteSubject(method: method, path: route(ofURL: path))), match.rule.arity == .one,
            match.bound.isEmpty, let last = route(ofURL: path).beforeQuery.split(separator: "/").last,
            let value = PercentEncoding.decode(String(last)), match.captures.values.contains(value)
        else { return [] }
        return rules.models.objects(perhapsNamed: value, of: match.rule.model)
    }

    private func object(_ match: CompiledUpstream.BodyMatch) -> BoundObject? {
        guard match.rule.arity == .one else { return nil }
        return rules.models.object(boundBy: match.bound, captures: match.captures, of: match.rule.model)
    }

    /// Whether a DELETE deletes the object at its target, by `deletes:` of its route; if not, it only changes the object, and a
    /// 404 or 410 does not say that the object is absent.
    ///
    /// - Parameter status: of its response; for an error the route for a success counts.
    func routeDeletes(_ request: ProxyRequest, status: Int) -> Bool {
        let query = Self.query(ofURL: request.target)
        return rules.deletes(path: request.route, query: query, status: (200..<300).contains(status) ? status : nil)
    }

    /// The path of the route of a request, as the config writes it; nil if none matches.
    func routePath(method: String, path: String, query: String?) -> String? {
        rules.rule(method: method, path: path, query: query)?.declaration.path
    }

    /// Further targets that a write of this path invalidates by its route: paths, and patterns of paths.
    ///
    /// - Parameter status: of its response; nil before the response, or if it never came.
    func routeInvalidations(by request: ProxyRequest, status: Int?)
        -> (paths: [String], patterns: [InvalidationPattern])
    {
        var (paths, patterns): ([String], [InvalidationPattern]) = ([], [])
        let (method, query, base) = (request.message.method, Self.query(ofURL: request.target), settings.url.basePath)
        let success = status.flatMap { (200..<300).contains($0) ? $0 : nil }
        var invalidated = rules.invalidated(method: method, path: request.route, query: query, status: success)
        if let path = actionPath(request).map(route(ofURL:)) {
            // A route to the object itself is seldom for POST.
            for method in [method, "PATCH", "PUT"] {
                invalidated += rules.invalidated(method: method, path: path, query: nil, status: success)
                    .filter { !invalidated.contains($0) }
            }
        }
        for pattern in invalidated + graphQLPaths.filter({ !invalidated.contains($0) }) {
            if let path = pattern.onlyPath {
                paths += [base + path] + (path == "/" ? [] : ["\(base)\(path)/"])
            } else {
                patterns.append(InvalidationPattern(base: base, pattern: pattern))
            }
        }
        return (paths, patterns)
    }
}
