import ArgumentParser
import Store

struct CountCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "count",
        abstract: "Show how many objects and documents are stored, and their size.",
        discussion: """
            Documents are stored responses; objects are what the responses contain:

              larder count
              larder count --json
            """
    )

    @OptionGroup var options: AdminOptions

    func run() throws { try options.show("/count", as: StoreCount.self) { $0.text } }
}

extension StoreCount {
    fileprivate var text: String {
        let totals = TextTable(
            columns: ["", .right("")],
            rows: [["objects", "\(objects)"], ["documents", "\(documents)"], ["size", HumanText.bytes(Int(bytes))]]
        ).text
        let rows = models.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { [$0.key, "\($0.value)"] }
        if rows.isEmpty { return totals }
        return totals + "\n\n" + TextTable(columns: ["model", .right("objects")], rows: rows).text
    }
}
