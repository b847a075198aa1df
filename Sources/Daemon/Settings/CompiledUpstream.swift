package import CachePolicy
package import Mapping

/// An upstream with its models and route tables compiled.
///
/// A class, because every request uses one: a value would be copied for each.
package final class CompiledUpstream: Sendable {
    package let settings: Configuration.Upstream
    package let models: Models
    private let routes: RouteTable
    private let errors: RouteTable

    /// The content of a body, by the rule that matched.
    package struct BodyMatch: Sendable, Equatable {
        package var rule: BodyRule
        /// Members of the object taken from the path, by name of the identity, key or property.
        package var bound: [String: String]
        package var captures: [String: String] = [:]
        var route = ""
    }

    /// Compiles models and routes; throws if they contradict each other.
    package init(_ settings: Configuration.Upstream) throws(MappingError) {
        self.settings = settings
        models = try Models(settings.models)
        routes = try RouteTable(settings.routes.map(\.declaration))
        errors = try RouteTable(settings.errors.map(\.declaration))
    }

    /// The content of a response's body; nil if none is declared.
    package func body(_ subject: RouteSubject) -> BodyMatch? {
        if let match = routes.match(subject) { return Self.body(settings.routes[match.index], match) }
        guard let status = subject.status, !(200..<300).contains(status), let match = errors.match(subject)
        else { return nil }
        return Self.body(settings.errors[match.index], match)
    }

    /// The caching settings of a path's route, before there is a response.
    package func overrides(method: String, path: String, query: String? = nil) -> CacheOverrides {
        rule(method: method, path: path, query: query)?.overrides ?? CacheOverrides()
    }

    /// What a POST to a path reads by; nil if it is a write.
    package func reading(path: String, query: String?) -> ReadingPost? {
        rule(method: "POST", path: path, query: query)?.read
    }

    /// The rule for a request, or for its response once there is a status.
    package func rule(method: String, path: String, query: String?, status: Int? = nil) -> Configuration.Route? {
        route(method: method, path: path, query: query, status: status).map { settings.routes[$0.index] }
    }

    /// The paths that a write invalidates besides its own, with the captures of its path filled in.
    ///
    /// - Parameter status: nil before the response: then rules for 2xx match.
    package func invalidated(method: String, path: String, query: String?, status: Int?) -> [RoutePattern] {
        guard let match = route(method: method, path: path, query: query, status: status),
            !settings.routes[match.index].invalidates.isEmpty
        else { return [] }
        let captures = match.captures
        return settings.routes[match.index].invalidates.map { $0.filled(with: captures) }
    }

    /// Whether a DELETE of a path deletes the object there, by `deletes:` of its route; if not, it only changes the object.
    ///
    /// - Parameter status: nil before the response, and for an error: then rules for 2xx match.
    package func deletes(path: String, query: String?, status: Int?) -> Bool {
        rule(method: "DELETE", path: path, query: query, status: status)?.deletes ?? true
    }

    /// The match of a rule; its index refers to `settings.routes`.
    package func route(method: String, path: String, query: String?, status: Int?) -> RouteMatch? {
        routes.match(RouteSubject(method: method, path: path, query: query, status: status))
    }

    /// Each rule with the reason why it applies to a request or does not; rules for errors only if the status is one.
    package func verdicts(on subject: RouteSubject) -> (routes: [RouteVerdict], errors: [RouteVerdict]) {
        let isError = subject.status.map { !(200..<300).contains($0) } ?? false
        return (routes.verdicts(on: subject), isError ? errors.verdicts(on: subject) : [])
    }

    private static func body(_ route: Configuration.Route, _ match: RouteMatch) -> BodyMatch? {
        guard let rule = route.body else { return nil }
        let captures = match.captures
        var bound: [String: String] = [:]
        for binding in route.object { bound[binding.key] = captures[binding.capture] }
        return BodyMatch(rule: rule, bound: bound, captures: captures, route: route.declaration.path)
    }
}
