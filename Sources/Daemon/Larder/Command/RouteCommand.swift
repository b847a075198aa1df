import Admin
import ArgumentParser
import HTTPSemantics
import HTTPServer
import Mapping
import Proxy
import Settings

/// `larder route METHOD URL`: which rule applies to a request, and why the others do not.
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

    @Argument(help: "The method, such as GET.")
    var method: String

    @Argument(help: "A path as programs send it to Larder, or a URL of Larder or of the upstream.")
    var url: String

    @Option(help: ArgumentHelp("The status of the response.", valueName: "status"))
    var status: Int = 200

    @Option(name: .customLong("content-type"), help: ArgumentHelp("The media type of the response.", valueName: "type"))
    var contentType = "application/json"

    @Option(help: ArgumentHelp("How many other rules to show.", valueName: "count"))
    var others = 5

    @OptionGroup var source: ConfigOptions

    @Flag(help: "Print one JSON document, for programs.")
    var json = false

    func validate() throws {
        try GivenText.require(["method": method, "URL": url])
        try GivenText.check(["--content-type": contentType])
        guard (100...599).contains(status) else { throw ValidationError("--status is a number from 100 to 599") }
        guard others >= 0 else { throw ValidationError("--others is not negative") }
        guard FieldName.complaint(method) == nil else { throw ValidationError("\"\(method)\" is not a method") }
    }

    func run() throws {
        let settings = try source.settings()
        do {
            let upstreams = try settings.upstreams.enumerated().map { index, upstream in
                ProxiedUpstream(index: index, try CompiledUpstream(upstream))
            }
            let asked = try AskedURL(url, of: upstreams, at: settings.listen)
            let imagined = try ImaginedRequest(
                method.uppercased(),
                asked,
                fields: [],
                limits: settings.httpLimits,
                listen: settings.listen
            )
            let facts = RouteFacts(imagined, status: status, contentType: contentType.lowercased(), others: others)
            if json { Terminal.out(AdminJSON.encode(facts.response, isPretty: true)) } else { Terminal.out(facts.text) }
        } catch let error as AskedURLError {
            Terminal.complain("larder: \(error.description)")
            throw ExitCode.failed
        } catch let error as ImaginedRequestError {
            Terminal.complain("larder: \(error.description)")
            throw ExitCode.failed
        }
    }
}

/// Which rule applies to a request and its response, and why the nearest others do not.
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

    /// - Parameter others: how many rules that do not apply are shown.
    init(_ imagined: ImaginedRequest, status: Int, contentType: String, others: Int) {
        let (incoming, upstream) = (imagined.incoming, imagined.incoming.upstream)
        let subject = RouteSubject(
            method: imagined.request.method,
            path: incoming.route,
            query: ProxiedUpstream.query(ofURL: incoming.target),
            status: status,
            contentType: contentType
        )
        let (routes, errors) = upstream.rules.verdicts(on: subject)
        // As in the daemon: the rules for errors count only if no route applies.
        areErrors = routes.first.map { $0.misfit != nil } ?? true && !errors.isEmpty
        let verdicts = areErrors ? errors : routes
        let declared = areErrors ? upstream.settings.errors : upstream.settings.routes
        let applying = verdicts.prefix { $0.misfit == nil }.count
        self.upstream = upstream.name
        path = incoming.route
        self.status = status
        captures =
            upstream.rules.body(subject).map { $0.captures.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } } ?? []
        rules = verdicts.prefix(applying + others).map { verdict in
            Rule(route: declared[verdict.index], misfit: verdict.misfit.map { Self.text($0, declared) })
        }
    }

    /// For programs.
    struct Response: Encodable {
        var upstream: String
        var path: String
        var status: Int
        var table: String
        var captures: [String: String]
        var rules: [Rule]

        struct Rule: Encodable {
            var path: String
            var method: String?
            var model: String?
            var applies: Bool
            var reason: String?
        }
    }

    var response: Response {
        Response(
            upstream: upstream,
            path: path,
            status: status,
            table: areErrors ? "errors" : "routes",
            captures: Dictionary(captures.map { ($0.name, $0.value) }) { first, _ in first },
            rules: rules.map {
                .init(
                    path: $0.route.declaration.path,
                    method: $0.route.declaration.method,
                    model: $0.route.bodyText,
                    applies: $0.misfit == nil,
                    reason: $0.misfit
                )
            }
        )
    }

    /// A line for each rule.
    var text: String {
        var lines = ["upstream  \(upstream)", "path      \(path)"]
        if let winner = rules.first, winner.misfit == nil {
            lines.append("\(areErrors ? "error " : "route ")    \(winner.route.text)")
            lines += captures.map { "          {\($0.name)} is \"\($0.value)\"" }
        } else {
            lines.append("route     none: the response is stored as a document without objects")
        }
        let others = rules.filter { $0.misfit != nil }
        if !others.isEmpty {
            var table = TextTable(columns: [("does not apply", .left), ("because", .left)])
            table.rows = others.map { [$0.route.text, $0.misfit ?? ""] }
            lines += ["", table.text]
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
        case .lessSpecific(let other): "\"\(declared[other].declaration.path)\" is more specific"
        case .shadowed(let other):
            "\"\(declared[other].declaration.path)\" is more specific, though none of its rules fits; "
                + "\"fallthrough: true\" there would try the others"
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
    /// What the body contains, as a config spells it.
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
