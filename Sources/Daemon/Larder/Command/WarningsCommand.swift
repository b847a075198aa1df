import Admin
import ArgumentParser
import HTTPSemantics

struct WarningsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "warnings",
        abstract: "List what in the upstreams' responses did not fit the models and routes.",
        discussion: """
            Nothing was delayed, refused or changed because of a warning, except that the mapped view may leave a value out. \
            Each kind and place is listed once, with a count. Below the table are the remedies, with the lines for the config:

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
                    columns: ["what", "kind", .right("count"), "first seen", "last seen"],
                    rows: rows.map {
                        [HumanText.line(Self.text($0), width: 160), $0.kind, "\($0.count)", $0.first, $0.last]
                    }
                ).text + Self.remedies(of: rows)
            }
        }
    }

    /// The remedies: for each a sentence, and the lines for the config.
    private static func remedies(of rows: [WarningsResponse.Warning]) -> String {
        rows.compactMap { row in
            row.remedy.map { remedy in
                let subject = row.subject.isEmpty ? "" : " of \(HumanText.line(row.subject, width: 100))"
                let lines = remedy.lines.map { $0.split(separator: "\n").map { "\n    " + String($0).printable } } ?? []
                return "\n\nRemedy for \(row.kind)\(subject): \(remedy.sentence.printable)" + lines.joined()
            }
        }.joined()
    }

    private static func text(_ row: WarningsResponse.Warning) -> String {
        let place = [row.subject, row.url, row.pointer].filter { !$0.isEmpty }.joined(separator: " ")
        return row.message + (place.isEmpty ? "" : " (\(place))")
    }
}
