/// Rows under a heading, columns aligned, for people.
struct TextTable {
    enum Alignment { case left, right }

    var columns: [(title: String, alignment: Alignment)]
    var rows: [[String]] = []

    /// Lines without trailing spaces.
    var text: String {
        let widths = columns.indices.map { column in
            max(columns[column].title.count, rows.map { $0[column].count }.max() ?? 0)
        }
        let lines = ([columns.map(\.title)] + rows).map { row in
            zip(row.indices, row).map { column, cell in
                let padding = String(repeating: " ", count: widths[column] - cell.count)
                return columns[column].alignment == .right ? padding + cell : cell + padding
            }.joined(separator: "  ")
        }
        return lines.map { String($0.reversed().drop { $0 == " " }.reversed()) }.joined(separator: "\n")
    }
}

/// Numbers as people read them.
enum HumanText {
    /// `1.2 MiB`.
    static func bytes(_ count: Int) -> String {
        guard count >= 1024 else { return "\(count) B" }
        var value = Double(count)
        var unit = 0
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
        // 1023.95 and more would be rounded to 1024.0.
        while value >= 1023.95, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }

    /// `1 object`, `2 objects`.
    static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

    /// One line without control characters, cut to a width.
    static func line(_ text: String, width: Int) -> String {
        let flat = String(text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : Character($0) })
        return flat.count <= width ? flat : flat.prefix(width - 1) + "…"
    }
}
