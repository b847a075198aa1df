import Admin
import ArgumentParser

/// `larder documents`: the responses in the store.
struct Documents: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List the stored responses.",
        discussion: """
              larder documents
              larder documents --url /repos/octocat/hello-world
              larder documents --upstream github --limit 20 --json
              larder documents --shows User/583231
            """
    )

    @Option(help: ArgumentHelp("Only those whose path and query begin with this.", valueName: "start"))
    var url: String?

    @Option(help: ArgumentHelp("Only those of this upstream.", valueName: "name"), completion: .upstreams)
    var upstream: String?

    @Option(help: ArgumentHelp("Only those of the principal with this label.", valueName: "label"))
    var principal: String?

    @Option(help: ArgumentHelp("Only those that show this object, the newest first.", valueName: "model/id"))
    var shows: String?

    @OptionGroup var page: PageOptions
    @OptionGroup var options: AdminOptions

    func validate() throws {
        try GivenText.check(["--url": url, "--upstream": upstream, "--principal": principal, "--shows": shows])
        guard let shows else { return }
        guard url == nil else { throw ValidationError("--shows and --url cannot be combined") }
        guard Self.object(shows) != nil else { throw ValidationError("--shows: \(shows) is not MODEL/ID") }
    }

    func run() throws {
        if let object = shows.flatMap(Self.object) { return try list(showing: object) }
        let query = [("url", url), ("upstream", upstream), ("principal", principal)] + page.query
        try options.show(Target.make(["documents"], query), as: DocumentsResponse.self) { response in
            page.list(response.documents, next: response.next) { rows in
                TextTable(
                    columns: [
                        ("url", .left), ("upstream", .left), ("status", .right), ("objects", .right),
                        ("size", .right), ("received", .left), ("principal", .left),
                    ],
                    rows: rows.map { row in
                        [
                            HumanText.line(row.url, width: 100), row.upstream, "\(row.status)", "\(row.objects)",
                            HumanText.bytes(Int(row.bytes)), row.received, row.principal,
                        ]
                    }
                ).text
            }
        }
    }

    private static func object(_ text: String) -> (model: String, id: String)? {
        guard let slash = text.firstIndex(of: "/") else { return nil }
        let (model, id) = (String(text[..<slash]), String(text[text.index(after: slash)...]))
        return model.isEmpty || id.isEmpty ? nil : (model, id)
    }

    /// The daemon's pages may be short, so this reads on until there are as many rows as wanted.
    private func list(showing object: (model: String, id: String)) throws {
        var rows: [ShowingDocumentResponse] = []
        var next = page.after
        while true {
            let query = [
                ("upstream", upstream), ("principal", principal), ("limit", "\(page.limit - rows.count)"),
                ("after", next),
            ]
            let response = try options.ask(
                "GET",
                Target.make(["objects", object.model, object.id, "documents"], query)
            )
            if options.json { return try options.present(ShowingDocumentsResponse.self, response) { _ in "" } }
            let part = try options.decode(ShowingDocumentsResponse.self, response)
            rows += part.documents
            next = part.next
            if next == nil || rows.count >= page.limit { break }
        }
        Terminal.out(
            (rows.isEmpty ? "there are none" : ShowingDocumentResponse.table(rows))
                + (next.map { "\n\nThere are more: continue with --after \($0)" } ?? "")
        )
    }
}
