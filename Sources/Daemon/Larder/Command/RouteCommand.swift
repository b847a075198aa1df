import Admin
import ArgumentParser
import HTTPSemantics
import HTTPServer
import Mapping
import Proxy
import Settings

struct RouteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "route",
        abstract: "Show which route applies to a request and its response, and why others do not.",
        discussion: """
            It reads the config; no daemon is needed:

              larder route GET /repos/a/b/issues --preset github
              larder route GET '/repos/a/b/issues?state=open' --status 404 --config larder.yaml

            The status of the response decides which rule describes its body. --others sets how many further rules are shown, \
            each with the reason why it does not apply.

            To see what is stored and how fresh it is, use larder explain. larder key shows the cache key of a request, and \
            larder map what becomes of a body.
            """
    )

    @Argument(help: "The method, such as GET.") var method: String
    @Argument(help: .urlOrPath) var url: String
    @Option(help: .value("status", "The status of the response.")) var status: Int = 200

    @Option(name: .customLong("content-type"), help: .value("type", "The media type of the response."))
    var contentType = "application/json"

    @Option(help: .value("count", "How many other rules to show.")) var others = 5
    @OptionGroup var source: ConfigOptions
    @Flag(help: "Print one JSON document, for programs.") var json = false

    func validate() throws {
        try GivenText.require(["method": method, "URL": url])
        try GivenText.check(["--content-type": contentType])
        guard (100...599).contains(status) else { throw ValidationError("--status is a number from 100 to 599") }
        guard others >= 0 else { throw ValidationError("--others is not negative") }
        guard FieldName.complaint(method) == nil else { throw ValidationError("\"\(method)\" is not a method") }
    }

    func run() throws {
        let settings = try source.settings()
        let upstreams = try settings.compiledUpstreams
        let incoming = try IncomingRequest(imagined: method.uppercased(), url, of: upstreams, settings)
        let named = try NamedURL(url, among: upstreams, at: settings.listen)
        let facts = RouteFacts(incoming, named, status: status, contentType: contentType.lowercased(), others: others)
        if json { Terminal.out(AdminJSON.encode(facts, isPretty: true)) } else { Terminal.say(facts.text) }
    }
}

/// The rule that applies to a request and its response, and why the nearest others do not.
private struct RouteFacts: Encodable {
    var upstream: String
    var url: ReadURL
    var path: String
    var status: Int
    var table: String
    var captures: [String: String]
    var rules: [Rule]

    struct Rule: Encodable {
        var path: String
        var method: String?
        /// The required query parameters; `*` stands for any value.
        var query: [String: String]?
        var model: String?
        var applies: Bool
        var reason: String?
        let text: String

        enum CodingKeys: CodingKey { case path, method, query, model, applies, reason }

        init(_ route: Configuration.Route, reason: String?) {
            (path, method, model) = (route.declaration.path, route.declaration.method, route.bodyText)
            let required = route.declaration.query.mapValues { $0 ?? "*" }
            query = required.isEmpty ? nil : required
            (applies, self.reason, text) = (reason == nil, reason, route.text)
        }
    }

    init(_ incoming: IncomingRequest, _ named: NamedURL, status: Int, contentType: String, others: Int) {
        let upstream = incoming.upstream
        let subject = RouteSubject(
            method: incoming.message.method,
            path: incoming.route,
            query: ProxiedUpstream.query(ofURL: incoming.target),
            status: status,
            contentType: contentType
        )
        let (routes, errors) = upstream.rules.verdicts(on: subject)
        // As in the daemon, the rules for errors count only if no route applies.
        let areErrors = routes.first.map { $0.misfit != nil } ?? true && !errors.isEmpty
        let verdicts = areErrors ? errors : routes
        let declared = areErrors ? upstream.settings.errors : upstream.settings.routes
        let applying = verdicts.prefix { $0.misfit == nil }.count
        (self.upstream, path, self.status) = (upstream.name, incoming.route, status)
        url = ReadURL(incoming, named)
        table = areErrors ? "errors" : "routes"
        captures = upstream.rules.body(subject)?.captures ?? [:]
        rules = verdicts.prefix(applying + others).map { verdict in
            Rule(declared[verdict.index], reason: verdict.misfit.map { Self.text($0, declared) })
        }
    }

    var text: String {
        var lines = ["upstream  \(upstream)"] + (url.text.map { ["url       \($0)"] } ?? []) + ["path      \(path)"]
        if let winner = rules.first, winner.applies {
            lines.append("\(table == "errors" ? "error " : "route ")    \(winner.text)")
            lines += captures.sorted { $0.key < $1.key }.map { "          {\($0.key)} is \"\($0.value)\"" }
        } else {
            lines.append("route     none: the response is stored as a document without objects")
        }
        let others = rules.filter { !$0.applies }
        if !others.isEmpty {
            let rows = others.map { [$0.text, $0.reason ?? ""] }
            lines += ["", TextTable(columns: ["does not apply", "because"], rows: rows).text]
        }
        return lines.joined(separator: "\n")
    }

    private static func text(_ misfit: RouteMisfit, _ declared: [Configuration.Route]) -> String {
        switch misfit {
        case .path(let matching):
            matching == 0 ? "the path differs" : "the path differs after \(HumanText.count(matching, "component"))"
        case .method(let method): "it is for \(method)"
        case .status(let status): "it is for \(status.text)"
        case .query(let name, let value): "it requires the parameter \(name)" + (value.map { "=\($0)" } ?? "")
        case .contentType(let type): "it requires the type \(type)"
        case .lessSpecific(let other): "\(declared[other].requested) is more specific"
        case .shadowed(let other):
            "\(declared[other].requested) is more specific, though none of its rules fits; "
                + "\"fallthrough: true\" there would try the others"
        }
    }
}

extension StatusPattern {
    var text: String {
        switch self {
        case .exact(let status): String(status)
        case .class(let digit): "\(digit)xx"
        case .any: "any status"
        }
    }
}

extension Configuration.Route {
    var bodyText: String? {
        body.map { body in
            switch body.arity {
            case .one: body.model
            case .many: "[\(body.model)]"
            case .keyed: "{ keyed: \(body.model) }"
            }
        }
    }

    /// The path and the query parameters that the rule requires.
    fileprivate var requested: String {
        let query = declaration.query.sorted { $0.key < $1.key }.map { "\($0): \($1 ?? "\"*\"")" }
        return "\"\(declaration.path)\"" + (query.isEmpty ? "" : " query: { \(query.joined(separator: ", ")) }")
    }

    var text: String {
        let parts = [
            declaration.method, requested, declaration.status == .class(2) ? nil : declaration.status.text,
            bodyText.map { "→ \($0)" }, body?.root.map { "under \($0)" },
            read.map { $0 == .json ? "reads" : "reads by GraphQL" },
        ]
        return parts.compactMap(\.self).joined(separator: " ")
    }
}
