import HTTPSemantics

/// Rows under a heading, with aligned columns, for people.
///
/// On a terminal it is no wider than that: long cells are cut, and if the columns do not fit side by side, each row becomes a
/// block of lines, in which long cells are continued.
struct TextTable {
    enum Alignment { case left, right }

    var columns: [(title: String, alignment: Alignment)]
    var rows: [[String]] = []

    private static let gap = 2
    /// The minimum width of a text column that is cut.
    private static let narrowest = 8

    /// The table for standard output, without a line feed at its end.
    var text: String { text(width: Terminal.width) }

    /// Lines without trailing spaces.
    ///
    /// - Parameter width: that of the terminal; nil for as wide as the cells.
    func text(width: Int?) -> String {
        // The cells may contain text of upstreams and clients.
        let cells = rows.map { $0.map(\.printable) }
        let natural = columns.indices.map { column in
            max(columns[column].title.displayWidth, cells.map { $0[column].displayWidth }.max() ?? 0)
        }
        guard let width, total(natural) > width else { return lines(cells, natural) }
        guard let widths = shrunk(natural, to: width) else { return blocks(cells, width) }
        return lines(cells, widths)
    }

    private func total(_ widths: [Int]) -> Int { widths.reduce(0, +) + Self.gap * max(0, widths.count - 1) }

    /// The widths with the widest text columns cut first; nil if that does not suffice.
    private func shrunk(_ natural: [Int], to width: Int) -> [Int]? {
        var widths = natural
        while total(widths) > width {
            let flexible = widths.indices.filter { columns[$0].alignment == .left && widths[$0] > Self.narrowest }
            guard let widest = flexible.max(by: { widths[$0] < widths[$1] }) else { return nil }
            let next = flexible.map { widths[$0] }.filter { $0 < widths[widest] }.max() ?? Self.narrowest
            widths[widest] -= min(max(1, widths[widest] - next), total(widths) - width)
        }
        return widths
    }

    private func lines(_ cells: [[String]], _ widths: [Int]) -> String {
        let lines = ([columns.map(\.title)] + cells).map { row in
            zip(row.indices, row).map { column, cell in
                let cell = HumanText.cut(cell, to: widths[column])
                let padding = String(repeating: " ", count: widths[column] - cell.displayWidth)
                return columns[column].alignment == .right ? padding + cell : cell + padding
            }.joined(separator: String(repeating: " ", count: Self.gap))
        }
        return lines.map { String($0.reversed().drop { $0 == " " }.reversed()) }.joined(separator: "\n")
    }

    /// A line for each cell, with the title of its column, and more where the cell is long.
    private func blocks(_ cells: [[String]], _ width: Int) -> String {
        cells.map { row in
            zip(columns, row).filter { !$1.isEmpty }
                .map { HumanText.folded($0.title.isEmpty ? $1 : "\($0.title): \($1)", width: width, breaksWords: true) }
                .joined(separator: "\n")
        }
        .joined(separator: columns.contains { !$0.title.isEmpty } ? "\n\n" : "\n")
    }
}
