import Admin
import ArgumentParser

struct BudgetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "budget",
        abstract: "Show what is left of the upstreams' rate limits, and who spent it.",
        discussion: """
            The first table has each limit of each credential: what is left, when it is renewed, and when nothing is left at \
            the pace of the last ten minutes. The second one has the requests that counted in the last hour, by minute:

              larder budget
              larder budget --limit 5
              larder budget --json | jq '.budgets[0].remaining'

            A principal is whose credentials a request has; the label is the one that larder objects shows.
            """
    )

    @Option(name: [.customShort("n"), .long], help: .value("n", "How many rows of each table.")) var limit = 20

    @OptionGroup var options: AdminOptions

    func validate() throws { try GivenNumber.check("--limit", limit, in: BudgetResponse.limits) }

    func run() throws {
        try options.show(Target.make(["budget"], [("limit", "\(limit)")]), as: BudgetResponse.self) { response in
            let tables = [Self.text(response.budgets), Self.text(response.spent)].compactMap(\.self)
            return tables.isEmpty ? "no response has said anything of a rate limit" : tables.joined(separator: "\n\n")
        }
    }

    private static func text(_ budgets: [BudgetResponse.Budget]) -> String? {
        guard !budgets.isEmpty else { return nil }
        return TextTable(
            columns: ["upstream", "principal", "resource", .right("left"), .right("limit"), "renewed", "used up"],
            rows: budgets.map { one in
                [
                    one.upstream, one.principal ?? "", one.resource ?? "", "\(one.remaining)",
                    one.limit.map { "\($0)" } ?? "", one.reset, one.usedUp ?? "",
                ]
            }
        ).text
    }

    private static func text(_ spent: [BudgetResponse.Expense]) -> String? {
        guard !spent.isEmpty else { return nil }
        return TextTable(
            columns: ["minute", .right("requests"), "upstream", "principal", "resource", "program"],
            rows: spent.map {
                [$0.minute, "\($0.requests)", $0.upstream, $0.principal ?? "", $0.resource ?? "", $0.program ?? ""]
            }
        ).text
    }
}
