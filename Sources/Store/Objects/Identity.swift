/// An object's identity as its row holds it: an integer where the canonical text is one.
enum Identity: Hashable {
    case integer(Int64)
    case text(String)

    init(_ canonical: String) {
        if let number = Int64(canonical), String(number) == canonical {
            self = .integer(number)
        } else {
            self = .text(canonical)
        }
    }

    init(_ row: QueryRow, column: Int32) {
        self = row.isInteger(column) ? .integer(row.integer(column)) : .text(row.string(column))
    }

    var sql: SQLValue {
        switch self {
        case .integer(let number): .integer(number)
        case .text(let text): .string(text)
        }
    }

    var text: String {
        switch self {
        case .integer(let number): String(number)
        case .text(let text): text
        }
    }
}
