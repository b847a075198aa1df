import Admin
import ArgumentParser

/// `larder warnings`: responses that did not fit their models.
struct WarningsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "warnings",
        abstract: "List what in the upstreams' responses did not fit the models and routes.",
        discussion: """
            Warnings never delay, change or refuse a response. Each kind and place is listed once, with a count:

              larder warnings
              larder warnings --json
            """
    )

    @OptionGroup var page: PageOptions
    @OptionGroup var options: AdminOptions

    func run() throws {
        try options.show(Target.make(["warnings"], page.query), as: WarningsResponse.self) { response in
            page.list(response.warnings, next: response.next) { rows in
                TextTable(
                    columns: [
                        ("what", .left), ("kind", .left), ("count", .right), ("first seen", .left),
                        ("last seen", .left),
                    ],
                    rows: rows.map { row in
                        [HumanText.line(Self.text(row), width: 160), row.kind, "\(row.count)", row.first, row.last]
                    }
                ).text
            }
        }
    }

    /// What and where, in one line.
    private static func text(_ row: WarningsResponse.Warning) -> String {
        let place = [row.subject, row.url, row.pointer].filter { !$0.isEmpty }.joined(separator: " ")
        return row.message + (place.isEmpty ? "" : " (\(place))")
    }
}
