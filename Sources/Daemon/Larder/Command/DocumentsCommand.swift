import Admin
import ArgumentParser

struct DocumentsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "documents",
        abstract: "List the stored responses.",
        discussion: """
              larder documents
              larder documents --url '/repos/octocat/*'
              larder documents --route 'repos/{owner}/{repo}/issues'
              larder documents --url http://127.0.0.1:8787/users/7
              larder documents --upstream github --limit 20 --json
              larder documents --shows User/583231
            """
    )

    @Option(
        help: .value(
            "url",
            "Only those with this path and query, the client's or the upstream's, or this URL; with * at its end, all that begin with it."
        )
    )
    var url: String?

    @Option(help: .value("path", "Only those of the route with this path in the config."), completion: .routes)
    var route: String?

    @Option(help: .value("name", "Only those of this upstream."), completion: .upstreams) var upstream: String?
    @Option(help: .value("label", "Only those of the principal with this label.")) var principal: String?
    @Option(help: .value("model/id", "Only those that show this object, the newest first.")) var shows: String?
    @OptionGroup var page: PageOptions
    @OptionGroup var options: AdminOptions

    func validate() throws {
        try GivenText.check([
            "--url": url, "--route": route, "--upstream": upstream, "--principal": principal, "--shows": shows,
        ])
        guard let shows else { return }
        guard url == nil, route == nil else {
            throw ValidationError("--shows cannot be combined with --url and --route")
        }
        guard Self.object(shows) != nil else { throw ValidationError("--shows: \(shows) is not MODEL/ID") }
    }

    func run() throws {
        if let object = shows.flatMap(Self.object) { return try list(showing: object) }
        let query = [("url", url), ("route", route), ("upstream", upstream), ("principal", principal)]
        try page.show(DocumentsResponse.self, options, { Target.make(["documents"], query + $0) }, Self.table) {
            if let note = $0.url?.text { Terminal.complain("larder: \(note)") }
            return ($0.documents, $0.next)
        }
    }

    private static func table(_ rows: [DocumentsResponse.Document]) -> String {
        TextTable(
            columns: [
                "url", "upstream", .right("status"), .right("objects"), .right("size"), "received", "principal",
            ],
            rows: rows.map { row in
                [
                    HumanText.line(row.url, width: 100), row.upstream, "\(row.status)", "\(row.objects)",
                    HumanText.bytes(Int(row.bytes)), row.received, row.principal,
                ]
            }
        ).text
    }

    private static func object(_ text: String) -> (model: String, id: String)? {
        guard let slash = text.firstIndex(of: "/") else { return nil }
        let (model, id) = (String(text[..<slash]), String(text[text.index(after: slash)...]))
        return model.isEmpty || id.isEmpty ? nil : (model, id)
    }

    private func list(showing object: (model: String, id: String)) throws {
        let (path, query) = (
            ["objects", object.model, object.id, "documents"], [("upstream", upstream), ("principal", principal)]
        )
        try page.show(
            ShowingDocumentsResponse.self,
            options,
            { Target.make(path, query + $0) },
            ShowingDocumentResponse.table
        ) { ($0.documents, $0.next) }
    }
}
