import Admin
import ArgumentParser
import Proxy

struct TopCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Show who asks how much, and for what.",
        discussion: """
            It counts the requests of the last minute, hour or day by client program (the first product in User-Agent), \
            principal, upstream, route and URL:

              larder top
              larder top --by program --period day --order upstream_requests
              larder top --json | jq '.lists[0].rows[0].name'

            A principal is whose credentials a request has; the label is the one that larder objects shows. What takes an \
            upstream's quota is in the column upstream. Hits from memory are counted by samples, so their number is about right.
            """
    )

    @Option(help: .value("what", "program, principal, upstream, route or url; all by default."))
    var by: TopLists.Subject?

    @Option(help: .value("period", "minute, hour or day.")) var period = TopLists.Period.hour

    @Option(help: .value("order", "requests, upstream_requests, bytes or seconds.")) var order = TopLists.Order.requests

    @Option(name: [.customShort("n"), .long], help: .value("n", "How many rows of each list.")) var limit = 10

    @OptionGroup var options: AdminOptions

    func validate() throws { try GivenNumber.check("--limit", limit, in: TopResponse.limits) }

    func run() throws {
        let target = Target.make(
            ["top"],
            [("by", by?.rawValue), ("period", period.rawValue), ("order", order.rawValue), ("limit", "\(limit)")]
        )
        try options.show(target, as: TopResponse.self) { response in
            let lists = response.lists.filter { !$0.rows.isEmpty }
            return lists.isEmpty
                ? "no requests in the last \(response.period)" : lists.map(Self.text).joined(separator: "\n\n")
        }
    }

    private static func text(_ list: TopResponse.List) -> String {
        TextTable(
            columns: [TextTable.Column(stringLiteral: list.by)]
                + ["requests", "hits", "upstream", "bytes", "time"].map(TextTable.Column.right),
            rows: list.rows.map { row in
                [
                    HumanText.line(row.name, width: 80), "\(row.requests)", "\(row.hits)", "\(row.upstreamRequests)",
                    HumanText.bytes(row.bytes), HumanText.duration(row.seconds),
                ]
            }
        ).text
    }
}

extension TopLists.Subject: ExpressibleByArgument {}
extension TopLists.Period: ExpressibleByArgument {}
extension TopLists.Order: ExpressibleByArgument {}
