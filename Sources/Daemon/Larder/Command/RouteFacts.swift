import Admin
import HTTPSemantics
import HTTPServer
import Mapping
import Proxy
import Settings

/// Which rule speaks of a request and its answer, and why the nearest others do not.
struct RouteFacts {
    /// One rule, and why it does not apply; nil where it does.
    struct Rule {
        let route: Configuration.Route
        let misfit: String?
    }

    let upstream: String
    let path: String
    let status: Int
    /// What the path's captures matched.
    let captures: [(name: String, value: String)]
    /// The rule that applies first, if one does, then others.
    let rules: [Rule]
    /// Whether the rules are those for errors.
    let areErrors: Bool

    /// - Parameter others: how many rules that do not apply are told of.
    init(_ imagined: ImaginedRequest, status: Int, contentType: String, others: Int) {
        let (arrival, upstream) = (imagined.arrival, imagined.arrival.upstream)
        let subject = RouteSubject(
            method: imagined.request.method,
            path: arrival.route,
            query: ProxiedUpstream.query(ofURL: arrival.target),
            status: status,
            contentType: contentType
        )
        let (routes, errors) = upstream.rules.verdicts(on: subject)
        // As the daemon asks them: errors only where no route speaks of the answer.
        areErrors = routes.first.map { $0.misfit != nil } ?? true && !errors.isEmpty
        let verdicts = areErrors ? errors : routes
        let declared = areErrors ? upstream.settings.errors : upstream.settings.routes
        let applying = verdicts.prefix { $0.misfit == nil }.count
        self.upstream = upstream.name
        path = arrival.route
        self.status = status
        captures =
            upstream.rules.body(subject).map { $0.captures.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } } ?? []
        rules = verdicts.prefix(applying + others).map { verdict in
            Rule(route: declared[verdict.index], misfit: verdict.misfit.map { Self.text($0, declared) })
        }
    }

    var document: JSONText {
        let list = rules.map { rule -> JSONText in
            [
                "path": .string(rule.route.declaration.path),
                "method": rule.route.declaration.method.map { .string($0) } ?? .null,
                "model": rule.route.bodyText.map { .string($0) } ?? .null,
                "applies": .bool(rule.misfit == nil), "reason": rule.misfit.map { .string($0) } ?? .null,
            ]
        }
        return [
            "upstream": .string(upstream), "path": .string(path), "status": .integer(status),
            "table": .string(areErrors ? "errors" : "routes"),
            "captures": .object(captures.map { (name: $0.name, value: .string($0.value)) }), "rules": .array(list),
        ]
    }

    /// A line for each rule.
    var text: String {
        var lines = ["upstream  \(upstream)", "path      \(path)"]
        if let winner = rules.first, winner.misfit == nil {
            lines.append("\(areErrors ? "error " : "route ")    \(winner.route.text)")
            lines += captures.map { "          {\($0.name)} is \"\($0.value)\"" }
        } else {
            lines.append("route     none: the answer is a document without objects")
        }
        let others = rules.filter { $0.misfit != nil }
        if !others.isEmpty {
            var table = TextTable(columns: [("not", .left), ("because", .left)])
            table.rows = others.map { [$0.route.text, $0.misfit ?? ""] }
            lines += ["", table.text]
        }
        return lines.joined(separator: "\n")
    }

    private static func text(_ misfit: RouteMisfit, _ declared: [Configuration.Route]) -> String {
        switch misfit {
        case .path(let matching):
            matching == 0 ? "the path differs" : "the path differs after \(HumanText.count(matching, "component"))"
        case .method(let method): "it speaks of \(method)"
        case .status(let status): "it speaks of \(status.text)"
        case .query(let name, let value): "it wants the parameter \(name)" + (value.map { "=\($0)" } ?? "")
        case .contentType(let type): "it wants the type \(type)"
        case .lessSpecific(let other): "\"\(declared[other].declaration.path)\" says more"
        case .shadowed(let other):
            "\"\(declared[other].declaration.path)\" is more specific, though none of its rules fits; "
                + "\"fallthrough: true\" there would go on"
        }
    }
}

extension StatusPattern {
    /// As a config spells it.
    var text: String {
        switch self {
        case .exact(let status): String(status)
        case .class(let digit): "\(digit)xx"
        case .any: "any status"
        }
    }
}

extension Configuration.Route {
    /// What the body holds, as a config spells it.
    var bodyText: String? {
        body.map { body in
            switch body.shape {
            case .one: body.model
            case .many: "[\(body.model)]"
            case .keyed: "{ keyed: \(body.model) }"
            }
        }
    }

    /// The rule in a line.
    fileprivate var text: String {
        let parts = [
            declaration.method, "\"\(declaration.path)\"",
            declaration.status == .class(2) ? nil : declaration.status.text,
            bodyText.map { "→ \($0)" }, body?.root.map { "under \($0)" },
        ]
        return parts.compactMap(\.self).joined(separator: " ")
    }
}
