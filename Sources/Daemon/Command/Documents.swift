import ArgumentParser

/// `larder documents`: the answers in the store.
struct Documents: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List the answers that are kept.",
        discussion: """
              larder documents
              larder documents --url /repos/octocat/hello-world
              larder documents --upstream github --limit 20 --json
            """
    )

    @Option(help: ArgumentHelp("Only those whose path and query begin so.", valueName: "start"))
    var url: String?

    @Option(help: ArgumentHelp("Only what came from this upstream.", valueName: "name"))
    var upstream: String?

    @Option(help: ArgumentHelp("Only what belongs to this principal, by its label.", valueName: "label"))
    var principal: String?

    @OptionGroup var page: PageOptions
    @OptionGroup var options: AdminOptions

    func run() throws {
        let query = [("url", url), ("upstream", upstream), ("principal", principal)] + page.query
        try options.present(Answer.self, try options.ask("GET", Target.make(["documents"], query))) { answer in
            page.list(answer.documents, next: answer.next, empty: "there are none") { rows in
                var table = TextTable(columns: [
                    ("status", .right), ("objects", .right), ("size", .right), ("received", .left),
                    ("principal", .left),
                    ("url", .left),
                ])
                table.rows = rows.map { row in
                    [
                        row.status.map(String.init) ?? "", row.objects.map(String.init) ?? "",
                        row.bytes.map(HumanText.bytes) ?? "", row.received ?? "", row.principal ?? "",
                        "\(row.upstream ?? "") \(HumanText.line(row.url, width: 100))",
                    ]
                }
                return table.text
            }
        }
    }

    private struct Answer: Decodable {
        var documents: [Row]
        var next: Cursor?
    }

    private struct Row: Decodable {
        var upstream: String?
        var principal: String?
        var url: String
        var status: Int?
        var objects: Int?
        var bytes: Int?
        var received: String?
    }
}
