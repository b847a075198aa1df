import ArgumentParser

/// `larder warnings`: what did not fit.
struct Warnings: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List what in the upstreams' answers did not fit the models.",
        discussion: """
            No answer was delayed, changed or refused for it; each is counted once per kind and place:

              larder warnings
              larder warnings --json
            """
    )

    @OptionGroup var page: PageOptions
    @OptionGroup var options: AdminOptions

    func run() throws {
        try options.present(Response.self, try options.ask("GET", Target.make(["warnings"], page.query))) { answer in
            page.list(answer.warnings, next: answer.next, empty: "there are none") { rows in
                var table = TextTable(columns: [
                    ("count", .right), ("first seen", .left), ("last seen", .left), ("kind", .left), ("what", .left),
                ])
                table.rows = rows.map { row in
                    [
                        row.count.map(String.init) ?? "", row.first ?? "", row.lastSeen ?? row.last ?? "",
                        row.code ?? row.kind ?? "",
                        HumanText.line(row.text, width: 160),
                    ]
                }
                return table.text
            }
        }
    }

    private struct Response: Decodable {
        var warnings: [Row]
        var next: Cursor?
    }

    private struct Row: Decodable {
        var code: String?
        var kind: String?
        var message: String?
        var subject: String?
        var model: String?
        var url: String?
        var pointer: String?
        var count: Int?
        var first: String?
        var last: String?
        var lastSeen: String?

        enum CodingKeys: String, CodingKey {
            case code, kind, message, subject, model, url, pointer, count, first, last
            case lastSeen = "last_seen"
        }

        /// What and where, in one line.
        var text: String {
            let place = [subject, model, url, pointer].compactMap(\.self).joined(separator: " ")
            return [message ?? "", place.isEmpty ? "" : "(\(place))"].filter { !$0.isEmpty }.joined(separator: " ")
        }
    }
}
