import HTTPSemantics

/// Rows under a heading, with aligned columns, for people.
///
/// On a terminal it is no wider than that: long cells are cut, and if the columns do not fit side by side, each row becomes a
/// block of lines, in which long cells are continued.
struct TextTable {
    struct Column: ExpressibleByStringLiteral {
        let title: String
        var isRight = false

        init(stringLiteral title: String) { self.title = title }

        /// A column whose cells end below each other, as numbers do.
        static func right(_ title: String) -> Column {
            var column = Column(stringLiteral: title)
            column.isRight = true
            return column
        }
    }

    let columns: [Column]
    var rows: [[String]] = []

    private static let gap = 2
    /// The minimum width of a text column that is cut.
    private static let narrowest = 8

    /// The table for standard output, without a line feed at its end.
    var text: String { text(width: Terminal.width) }

    /// Lines without trailing spaces; as wide as the cells without a width.
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

    private var hasTitles: Bool { columns.contains { !$0.title.isEmpty } }

    private func total(_ widths: [Int]) -> Int { widths.reduce(0, +) + Self.gap * max(0, widths.count - 1) }

    /// The widths with the widest text columns cut first; nil if that does not suffice.
    private func shrunk(_ natural: [Int], to width: Int) -> [Int]? {
        var widths = natural
        while total(widths) > width {
            let flexible = widths.indices.filter { !columns[$0].isRight && widths[$0] > Self.narrowest }
            guard let widest = flexible.max(by: { widths[$0] < widths[$1] }) else { return nil }
            let next = flexible.map { widths[$0] }.filter { $0 < widths[widest] }.max() ?? Self.narrowest
            widths[widest] -= min(max(1, widths[widest] - next), total(widths) - width)
        }
        return widths
    }

    private func lines(_ cells: [[String]], _ widths: [Int]) -> String {
        let titles = columns.map(\.title)
        let lines = (hasTitles ? [titles] + cells : cells).map { row in
            zip(row.indices, row).map { column, cell in
                let cell = HumanText.cut(cell, to: widths[column])
                let padding = String(repeating: " ", count: widths[column] - cell.displayWidth)
                return columns[column].isRight ? padding + cell : cell + padding
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
        .joined(separator: hasTitles ? "\n\n" : "\n")
    }
}
