import Admin
import ArgumentParser
import Glibc

struct ObjectsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "objects",
        abstract: "List the objects of a model, or show one.",
        discussion: """
              larder objects User
              larder objects User 583231
              larder objects Issue --upstream github --limit 20
              larder objects User 583231 --mapped --members login,fullName
              larder objects User --json | jq '.objects[].object'
            """
    )

    @Argument(help: "The model's name.", completion: .models) var model: String
    @Argument(help: "One object, by its identity or one of its keys.") var id: String?
    @Option(help: .value("name", "Only objects of this upstream."), completion: .upstreams) var upstream: String?
    @Option(help: .value("label", "Only objects of the principal with this label.")) var principal: String?

    @Flag(help: "Show them as their model declares them, instead of with the upstream's own members.")
    var mapped = false

    @Option(help: .value("names", "With --mapped: only these properties, separated by commas.")) var members: String?
    @OptionGroup var page: PageOptions
    @OptionGroup var options: AdminOptions

    func validate() throws {
        try GivenText.require(["model": model, "id": id])
        try GivenText.check(["--upstream": upstream, "--principal": principal, "--members": members])
        guard mapped || members == nil else { throw ValidationError("--members goes with --mapped") }
    }

    func run() throws {
        let query = [
            ("upstream", upstream), ("principal", principal), ("view", mapped ? "mapped" : nil), ("members", members),
        ]
        if let id { return try show(id, query) }
        // By identity the few objects of one model are found at once among many others.
        let sorted = query + [("sort", "id")]
        try page.show(ObjectsResponse.self, options, { Target.make(["objects", model], sorted + $0) }, Self.table) {
            ($0.objects, $0.next)
        }
    }

    private func show(_ id: String, _ query: [(String, String?)]) throws {
        let bytes = try options.ask("GET", Target.make(["objects", model, id], query + page.query))
        if options.json { return try options.present(ObjectsResponse.self, bytes) { _ in "" } }
        let response = try options.decode(ObjectsResponse.self, bytes)
        // JSON is not folded, so that it can be copied.
        Terminal.out(page.list(response.objects, next: response.next) { $0.map(Self.whole).joined(separator: "\n\n") })
    }

    private static func table(_ rows: [ObjectsResponse.Object]) -> String {
        TextTable(
            columns: ["id", "upstream", "principal", "observed", ""],
            rows: rows.map { row in
                [
                    HumanText.line(row.id, width: 40), row.upstream, row.principal, row.observed,
                    HumanText.line(row.object.text, width: 60),
                ]
            }
        ).text
    }

    private static func whole(_ row: ObjectsResponse.Object) -> String {
        let head = [
            "upstream \(row.upstream)", "principal \(row.principal)",
            row.context.isEmpty ? nil : "context \(row.context)", "observed \(row.observed)",
            row.unknown.map { "unknown since \($0): larder why shows by which write" },
        ]
        return head.compactMap(\.self).joined(separator: ", ") + "\n" + row.object.prettyText
    }
}

struct PageOptions: ParsableArguments {
    @Option(help: .value("n", "The most rows to print.")) var limit = 100
    @Option(help: .value("cursor", "Continue after this cursor, which the previous page prints.")) var after: String?

    func validate() throws {
        try GivenText.check(["--after": after])
        try GivenNumber.check("--limit", limit, in: 1...1000)
    }

    var query: [(String, String?)] { [("limit", "\(limit)"), ("after", after)] }

    /// Prints a list whose pages may be short: reads on until there are as many rows as wanted, except for programs.
    func show<Response: Decodable, Row>(
        _ type: Response.Type,
        _ options: AdminOptions,
        _ target: ([(String, String?)]) -> String,
        _ text: ([Row]) -> String,
        rows: (Response) -> ([Row], next: String?)
    ) throws {
        var (found, next, hasProgress) = ([Row](), after, false)
        while true {
            let query = [("limit", "\(limit - found.count)"), ("after", next)]
            let bytes = try options.ask("GET", target(query))
            if options.json { return try options.present(type, bytes) { _ in "" } }
            let part = rows(try options.decode(type, bytes))
            found += part.0
            next = part.next
            if next == nil || found.count >= limit { break }
            hasProgress = isatty(2) == 1
            if hasProgress { Terminal.progress("found \(found.count) so far") }
        }
        if hasProgress { Terminal.progress("") }
        Terminal.say(list(found, next: next, text))
    }

    func list<Row>(_ rows: [Row], next: String?, _ show: ([Row]) -> String) -> String {
        if rows.isEmpty { return "there are none" }
        return show(rows) + (next.map { "\n\nThere are more: continue with --after \($0)" } ?? "")
    }
}
