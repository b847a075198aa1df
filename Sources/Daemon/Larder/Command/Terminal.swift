import ArgumentParser
import Glibc
import HTTPSemantics

extension ExitCode {
    /// It did not work.
    static let failed = ExitCode(1)
    /// The config has mistakes (`EX_CONFIG` of sysexits).
    static let badConfig = ExitCode(78)
}

/// Writing for people and programs, past the buffers that hold lines back.
enum Terminal {
    /// A line for whoever reads the result.
    static func out(_ text: String) { out(Array(text.utf8)) }

    /// The same as bytes, which need not be Unicode.
    static func out(_ bytes: [UInt8]) { write(bytes + [UInt8(ascii: "\n")], to: 1) }

    /// A line about what happened.
    static func complain(_ text: String) { write(Array(text.utf8) + [UInt8(ascii: "\n")], to: 2) }

    /// A line about how far something is, in the place of the one before; empty: none any more.
    static func progress(_ text: String) { write(Array("\r\u{1B}[K\(text)".utf8), to: 2) }

    /// Whether a person sits there who can be asked, and sees what is written about what happens.
    static var isInteractive: Bool { isatty(0) == 1 && isatty(2) == 1 }

    /// Whether what is written there may be coloured: a terminal reads it, and its user has not said no (no-color.org).
    static func hasColours(on descriptor: Int32) -> Bool {
        let named = { (name: String) in getenv(name).map { String(cString: $0) } ?? "" }
        return isatty(descriptor) == 1 && named("NO_COLOR").isEmpty && named("TERM") != "dumb"
    }

    /// Asks a question that only a clear yes answers with yes.
    static func isConfirmed(_ question: String) -> Bool {
        write(Array("\(question) [y/N] ".utf8), to: 2)
        return ["y", "yes"].contains((readLine() ?? "").trimmingPrefix { $0 == " " }.lowercased())
    }

    /// Whether nobody reads what is written any more.
    static var isClosed: Bool {
        var output = pollfd(fd: 1, events: 0, revents: 0)
        return poll(&output, 1, 0) == 1 && output.revents & Int16(POLLERR) != 0
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) {
        var bytes = bytes[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            bytes = bytes.dropFirst(count)
        }
    }
}

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

    /// One line, cut to a width; what must not reach a terminal is escaped.
    static func line(_ text: String, width: Int) -> String {
        let spaced = String(
            String.UnicodeScalarView(text.unicodeScalars.map { "\n\r\t".unicodeScalars.contains($0) ? " " : $0 })
        )
        let flat = spaced.printable
        return flat.count <= width ? flat : flat.prefix(width - 1) + "…"
    }
}
