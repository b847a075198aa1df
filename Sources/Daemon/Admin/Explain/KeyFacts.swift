import CachePolicy
import Mapping
import Proxy
import Settings

/// A cache key, and what of a request takes part in it.
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
    /// Fields that distinguish clients only where a response is private or must be revalidated.
    let otherFields: [String]
    let rules: [Configuration.Route]

    package init(_ imagined: ImaginedRequest) {
        let (incoming, upstream) = (imagined.incoming, imagined.incoming.upstream)
        self.upstream = upstream.name
        sent = upstream.url(of: upstream.principal.redacted(url: incoming.target))
        key = incoming.parts.url
        contextFields = upstream.settings.context
        context = incoming.parts.context.split(separator: "\n").map(String.init)
        principalFields = upstream.settings.principal
        principal = upstream.credentials(in: imagined.request)
        otherFields = upstream.otherFields(in: imagined.request)
        // The rule for caching, and the one for the body of a good response, which may be another.
        let matches = [nil, 200].compactMap { status in
            upstream.rules.route(method: "GET", path: incoming.route, status: status)?.index
        }
        rules = matches.enumerated().filter { !matches[..<$0.offset].contains($0.element) }
            .map { upstream.settings.routes[$0.element] }
    }

    /// For programs.
    package var response: Response {
        Response(
            upstream: upstream,
            sent: sent,
            key: key,
            principal: .init(fields: principalFields, given: principal.map(\.name)),
            counted: principal.map { .init(name: $0.name, why: $0.reason) },
            others: otherFields,
            context: .init(fields: contextFields, given: context),
            rules: rules.map {
                .init(
                    path: $0.declaration.path,
                    method: $0.declaration.method,
                    sort: $0.overrides.key.sort,
                    ignore: $0.overrides.key.ignore
                )
            }
        )
    }

    package struct Response: Encodable {
        var upstream: String
        var sent: String
        var key: String
        var principal: Fields
        var counted: [Counted]
        var others: [String]
        var context: Fields
        var rules: [Rule]

        struct Fields: Encodable {
            var fields: [String]
            var given: [String]
        }

        struct Counted: Encodable {
            var name: String
            var why: String
        }

        struct Rule: Encodable {
            var path: String
            var method: String?
            var sort: Bool
            var ignore: [String]
        }
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
}
