import Admin
import ArgumentParser
import Foundation
import HTTPSemantics
import Mapping
import Proxy
import Settings

struct MapCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "map",
        abstract: "Convert a file to its mapped view, or back, and say what does not fit.",
        discussion: """
            It reads the config and the file; nothing is stored, and no daemon is needed. --url chooses the route that \
            describes the file, --model a model:

              curl -s https://api.github.com/users/octocat | larder map - --url /users/octocat --preset github
              larder map users.json --model User --list --config larder.yaml
              larder map mapped.json --model User --reverse --config larder.yaml

            The result goes to standard output, warnings go to standard error, each with its JSON pointer.
            """
    )

    @Argument(help: "The file; - reads standard input.", completion: .file()) var file: String
    @Option(help: .value("url", "The URL whose response the file is.")) var url: String?
    @Option(help: .value("status", "The status of that response.")) var status: Int = 200

    @Option(
        name: [.customShort("H"), .customLong("header")],
        parsing: .unconditionalSingleValue,
        help: .value(
            "name: value",
            "A header field of that response, for properties that read one (@header.NAME); may be repeated."
        )
    )
    var header: [String] = []

    @Option(help: .value("name", "The model of the file's object."), completion: .models) var model: String?
    @Flag(help: "The file contains a list of the model's objects.") var list = false
    @Flag(help: "Convert from the mapped view back to the upstream's JSON.") var reverse = false
    @Flag(help: "With --reverse: also write values that equal their properties' defaults.") var defaults = false

    @Option(
        help: .value(
            "field",
            "With --reverse: the view's Larder-Synthetic field, which names what the upstream did not send."
        )
    )
    var synthetic: String?

    @Option(
        help: .value(
            "field",
            "With --reverse: the view's Larder-Unconverted field, which names what stayed as the upstream sent it."
        )
    )
    var unconverted: String?

    @Option(help: .value("names", "Only these properties, separated by commas.")) var members: String?
    @OptionGroup var source: ConfigOptions
    @Flag(help: "Print one JSON document with the result and the warnings, for programs.") var json = false

    func validate() throws {
        try GivenText.require(["file": file])
        try GivenText.check(["--url": url, "--model": model, "--members": members])
        guard (url == nil) != (model == nil) else {
            throw ValidationError("say what the file contains: --url URL of its response, or --model NAME")
        }
        guard !list || model != nil else { throw ValidationError("--list goes with --model") }
        guard header.isEmpty || url != nil else { throw ValidationError("--header goes with --url") }
        if let wrong = header.first(where: { !$0.contains(":") }) {
            throw ValidationError("--header is a name, a colon and a value; it was \"\(wrong)\"")
        }
        guard !defaults || reverse else { throw ValidationError("--defaults goes with --reverse") }
        guard synthetic == nil || reverse, synthetic == nil || !defaults else {
            throw ValidationError("--synthetic goes with --reverse, and without --defaults")
        }
        guard unconverted == nil || reverse else { throw ValidationError("--unconverted needs --reverse") }
    }

    func run() throws {
        let settings = try source.settings()
        let (upstream, rule, context) = try reading(try settings.compiledUpstreams, settings)
        let body = try input()
        let names = try names(rule, upstream.mapper)
        if reverse {
            let result = try upstream.mapper.unmap(
                body,
                as: rule,
                in: context,
                members: names,
                synthetic: defaults ? [] : try pointers(synthetic, of: "--synthetic"),
                unconverted: try pointers(unconverted, of: "--unconverted") ?? []
            )
            show(result.body, result.warnings, synthetic: [], unconverted: [])
        } else {
            let context = context ?? .none
            let result = upstream.mapper.map(body, as: rule, in: context, members: names)
            let others = identityWarnings(of: body, rule, context, upstream)
            show(result.body, result.warnings + others, synthetic: result.synthetic, unconverted: result.unconverted)
            if !result.isMapped { throw ExitCode.failed }
        }
    }

    private func reading(
        _ upstreams: [ProxiedUpstream],
        _ settings: Configuration
    ) throws -> (upstream: ProxiedUpstream, rule: BodyRule, context: MappingContext?) {
        if let model {
            let owner = upstreams.first { $0.settings.models.contains { $0.name == model } }
            guard let owner else {
                let names = upstreams.flatMap { $0.settings.models.map(\.name) }
                let meant = Suggestion.nearest(to: model, among: names).map { "; did you mean \"\($0)\"?" } ?? ""
                throw ValidationError("there is no model \"\(model)\"\(meant)")
            }
            return (owner, BodyRule(model: model, isList: list), nil)
        }
        let incoming: IncomingRequest
        do throws(ImaginedRequestError) {
            incoming = try IncomingRequest(imagined: "GET", url ?? "", of: upstreams, settings)
        } catch { throw ValidationError(error.description) }
        let subject = RouteSubject(
            method: "GET",
            path: incoming.route,
            query: ProxiedUpstream.query(ofURL: incoming.target),
            status: status,
            contentType: "application/json"
        )
        guard let match = incoming.upstream.rules.body(subject) else {
            throw ValidationError(
                "no route has a model for \(incoming.route); see: larder route GET \(url ?? "") --status \(status)"
            )
        }
        let url = incoming.url
        let context = MappingContext(url: url, captures: match.captures, bound: match.bound, fields: fields)
        return (incoming.upstream, match.rule, context)
    }

    /// The response's fields; of several lines with one name the first counts, as in the daemon.
    private var fields: [String: String] {
        let pairs = header.map { line in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return (parts[0].lowercased(), String(parts[1].drop { $0 == " " || $0 == "\t" }))
        }
        return Dictionary(pairs) { first, _ in first }
    }

    private func names(_ rule: BodyRule, _ mapper: DocumentMapper) throws -> [String]? {
        guard let members else { return nil }
        guard let names = MemberNames.split(members) else {
            throw ValidationError("--members names properties, separated by commas; it was \"\(members)\"")
        }
        let models = [rule.model] + rule.also.map(\.model)
        if let unknown = mapper.unknownMembers(among: names, of: models).first {
            throw ValidationError("\(rule.model) has no property \"\(unknown)\"")
        }
        return names
    }

    /// The pointers in a field of the mapped view: a list of strings, which is JSON except for the brackets.
    private func pointers(_ field: String?, of option: String) throws -> [String]? {
        guard let field else { return nil }
        guard let pointers = try? JSONDecoder().decode([String].self, from: Data("[\(field)]".utf8)) else {
            throw ValidationError("\(option) is a list of JSON pointers in quotes; it was \(field)")
        }
        return pointers
    }

    /// The daemon's warnings about identities, which the view itself does not check.
    private func identityWarnings(
        of body: [UInt8],
        _ rule: BodyRule,
        _ context: MappingContext,
        _ upstream: ProxiedUpstream
    ) -> [MappingWarning] {
        switch Decomposer(models: upstream.rules.models).decompose(body, as: rule, in: context) {
        case .objects(let parts): parts.warnings.filter { !$0.kind.isOfMappedView }
        case .opaque(let warning): [warning].compactMap(\.self).filter { !$0.kind.isOfMappedView }
        }
    }

    private func input() throws -> [UInt8] {
        let bytes = try FileBytes.readInput(file, limit: Self.byteLimit)
        guard !bytes.isEmpty else {
            throw CommandFailure("\(file == "-" ? "standard input" : file) is empty: there is nothing to map")
        }
        return bytes
    }

    private static let byteLimit = 1 << 30

    private func show(_ body: [UInt8], _ warnings: [MappingWarning], synthetic: [String], unconverted: [String]) {
        // A value that could not be mapped back need not be JSON.
        let text = String(decoding: body, as: UTF8.self)
        let isMalformed = JSONBody.isMalformed(body)
        guard json else {
            if Terminal.width == nil {
                // Programs get the bytes.
                Terminal.out(body)
            } else if isMalformed {
                Terminal.out(text)
            } else {
                Terminal.out(json: text)
            }
            for warning in warnings { Terminal.complain(Self.line(warning)) }
            for pointer in synthetic { Terminal.complain("default: \(pointer)") }
            return
        }
        struct Report: Encodable {
            var result: RawJSON
            var warnings: [MappingWarningResponse]
            var synthetic: [String]
            var unconverted: [String]
        }
        let result = RawJSON(isMalformed ? AdminJSON.encode(text) : body)
        let warned = warnings.map(MappingWarningResponse.init)
        let report = Report(result: result, warnings: warned, synthetic: synthetic, unconverted: unconverted)
        Terminal.out(AdminJSON.encode(report))
    }

    private static func line(_ warning: MappingWarning) -> String {
        let place = [warning.pointer, warning.model].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: " ")
        let times = warning.count > 1 ? " (\(warning.count) times)" : ""
        let value = warning.value.map { " The value is \(shortened($0))." } ?? ""
        let kind = "warning: \(warning.kind.rawValue)\(place.isEmpty ? "" : " at \(place)")"
        return "\(kind): \(warning.message)\(value)\(times)"
    }

    private static func shortened(_ json: [UInt8]) -> String {
        let text = String(decoding: json, as: UTF8.self)
        return text.count > 80 ? text.prefix(79) + "…" : text
    }
}
