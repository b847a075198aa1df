import CachePolicy
package import HTTPSemantics
import Mapping
import Proxy
import Settings

/// What an answer is known by.
package struct KeyFacts {
    let upstream: String
    /// What goes upstream, as spelled, credentials replaced.
    let sent: String
    let key: String
    /// The fields that may take part, as configured, and what this request has of them.
    let contextFields: [String]
    let context: [String]
    let principalFields: [String]
    let principal: [(name: String, reason: String)]
    /// Fields that tell clients apart only where a response is private or must be revalidated.
    let otherFields: [String]
    let rules: [Configuration.Route]

    package init(_ imagined: ImaginedRequest) {
        let (arrival, upstream) = (imagined.arrival, imagined.arrival.upstream)
        self.upstream = upstream.name
        sent = upstream.url(of: upstream.principal.redacted(url: arrival.target))
        key = arrival.keyURL
        contextFields = upstream.settings.context
        context = arrival.context.split(separator: "\n").map(String.init)
        principalFields = upstream.settings.principal
        principal = upstream.credentials(in: imagined.request)
        otherFields = upstream.otherFields(in: imagined.request)
        // The one that speaks of caching, and the one that speaks of a good answer's body, which may be another.
        let matches = [nil, 200].compactMap { status in
            upstream.rules.route(method: "GET", path: arrival.route, status: status)?.index
        }
        rules = matches.enumerated().filter { !matches[..<$0.offset].contains($0.element) }
            .map { upstream.settings.routes[$0.element] }
    }

    package var document: JSONText {
        [
            "upstream": .string(upstream), "sent": .string(sent), "key": .string(key),
            "principal": ["fields": Self.list(principalFields), "given": Self.list(principal.map(\.name))],
            "counted": .array(principal.map { ["name": .string($0.name), "why": .string($0.reason)] }),
            "others": Self.list(otherFields),
            "context": ["fields": Self.list(contextFields), "given": Self.list(context)],
            "rules": .array(
                rules.map { route in
                    [
                        "path": .string(route.declaration.path),
                        "method": route.declaration.method.map { .string($0) } ?? .null,
                        "sort": .bool(route.overrides.key.sort), "ignore": Self.list(route.overrides.key.ignore),
                    ]
                }
            ),
        ]
    }

    /// A line for each part.
    package var text: String {
        let principals =
            principal.isEmpty ? "anonymous" : principal.map { "\($0.name) (\($0.reason))" }.joined(separator: ", ")
        var lines = [
            "upstream   \(upstream)", "sent       \(sent)", "key        \(key)",
            "principal  \(principals)  (of \(principalFields.joined(separator: ", ")))",
            "others     \(otherFields.isEmpty ? "none" : otherFields.joined(separator: ", "))"
                + "  (count where a response is private or must be revalidated)",
            "context    \(context.isEmpty ? "none" : context.joined(separator: ", "))"
                + "  (of \(contextFields.joined(separator: ", ")), and what Vary names)",
        ]
        lines += rules.isEmpty ? ["rule       none"] : rules.map { "rule       \(Self.text($0))" }
        return lines.joined(separator: "\n")
    }

    private static func text(_ route: Configuration.Route) -> String {
        let key = route.overrides.key
        var words = [route.declaration.method, route.declaration.path].compactMap(\.self)
        if key.sort { words.append("key: parameters sorted") }
        if !key.ignore.isEmpty { words.append("key: without \(key.ignore.joined(separator: ", "))") }
        return words.joined(separator: "  ")
    }

    private static func list(_ texts: [String]) -> JSONText { .array(texts.map { .string($0) }) }
}
