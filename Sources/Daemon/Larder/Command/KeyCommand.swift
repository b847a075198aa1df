import Admin
import ArgumentParser
import CachePolicy
import HTTPSemantics
import Mapping
import Proxy
import Settings

struct KeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "Show the cache key of a request: its URL, principal and context.",
        discussion: """
            Requests with the same key share stored responses, unless the API's Vary field separates them. \
            The command reads the config; no daemon is needed:

              larder key '/search/issues?q=x&page=2&utm_source=mail' --config larder.yaml
              larder key https://api.github.com/users/octocat --preset github
              larder key /users/octocat -H 'Accept-Language: de'
              larder key /graphql --data @query.json --preset github
            """
    )

    @Argument(help: .urlOrPath) var url: String
    @OptionGroup var fields: FieldOptions
    @OptionGroup var data: DataOption
    @OptionGroup var source: ConfigOptions
    @Flag(help: "Print one JSON document, for programs.") var json = false

    func validate() throws { try GivenText.require(["URL": url]) }

    func run() throws {
        let settings = try source.settings()
        let upstreams = try settings.compiledUpstreams
        let named = try NamedURL(url, among: upstreams, at: settings.listen)
        let body = try data.body()
        let imagined = try IncomingRequest(
            imagined: body == nil ? "GET" : "POST",
            url,
            fields: fields.header,
            withJSON: body != nil,
            of: upstreams,
            settings
        )
        let incoming = try body.map(imagined.reading) ?? imagined
        let facts = KeyFacts(incoming, named)
        if json { Terminal.out(AdminJSON.encode(facts, isPretty: true)) } else { Terminal.say(facts.text) }
    }
}

/// A cache key, and the parts of the request that it is made from.
private struct KeyFacts: Encodable {
    var upstream: String
    var url: ReadURL
    /// The target sent upstream, unchanged except for redacted credentials.
    var sent: String
    var key: String
    var principal: Fields
    var counted: [Counted]
    /// Fields that distinguish clients only if a response is private or must be revalidated.
    var others: [String]
    var context: Fields
    var rules: [Route]

    /// The fields that may be part of the key, as configured, and those of this request.
    struct Fields: Encodable {
        var fields: [String]
        var given: [String]
    }

    struct Counted: Encodable {
        var name: String
        var why: String
    }

    struct Route: Encodable {
        var path: String
        var method: String?
        var sort: Bool
        var ignore: [String]
        let text: String

        enum CodingKeys: CodingKey { case path, method, sort, ignore }

        init(_ route: Configuration.Route) {
            (path, method, text) = (route.declaration.path, route.declaration.method, route.text)
            (sort, ignore) = (route.overrides.key.sort, route.overrides.key.ignore)
        }
    }

    init(_ incoming: IncomingRequest, _ named: NamedURL) {
        let upstream = incoming.upstream
        let settings = upstream.settings
        self.upstream = upstream.name
        url = ReadURL(incoming, named)
        sent = upstream.url(of: upstream.principal.redacted(url: incoming.target))
        key = incoming.url
        counted = upstream.credentials(in: incoming.message).map { Counted(name: $0.name, why: $0.reason) }
        principal = Fields(fields: settings.principal, given: counted.map(\.name))
        others = upstream.otherFields(in: incoming.message)
        let given = incoming.context.split(separator: "\n").map(String.init)
        context = Fields(fields: settings.context, given: given)
        // The route for caching, and the one for the body of a 200, which may be another.
        let matches = [nil, 200].compactMap { status in
            let (method, path) = (incoming.sentMethod, incoming.route)
            return upstream.rules.route(method: method, path: path, query: incoming.query, status: status)?.index
        }
        rules = matches.enumerated().filter { !matches[..<$0.offset].contains($0.element) }.map {
            Route(settings.routes[$0.element])
        }
    }

    var text: String {
        let credentials = counted.map { "\($0.name) (\($0.why))" }.joined(separator: ", ")
        var lines = ["upstream   \(upstream)"] + (url.text.map { ["url        \($0)"] } ?? [])
        lines += [
            "sent       \(sent)", "key        \(key)",
            "principal  \(counted.isEmpty ? "anonymous" : credentials)  (of \(principal.fields.joined(separator: ", ")))",
            "others     \(others.isEmpty ? "none" : others.joined(separator: ", "))"
                + "  (count where a response is private or must be revalidated)",
            "context    \(context.given.isEmpty ? "none" : context.given.joined(separator: ", "))"
                + "  (of \(context.fields.joined(separator: ", ")), and what Vary names)",
        ]
        lines += rules.isEmpty ? ["route      none"] : rules.map { "route      \(Self.text($0))" }
        return lines.joined(separator: "\n")
    }

    private static func text(_ route: Route) -> String {
        var words = [route.text]
        if route.sort { words.append("key: parameters sorted") }
        if !route.ignore.isEmpty { words.append("key: without \(route.ignore.joined(separator: ", "))") }
        return words.joined(separator: "  ")
    }
}
