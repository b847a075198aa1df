import ArgumentParser
import Foundation
import HTTPSemantics
import Settings

extension ExitCode {
    static let failed = ExitCode(1)
    /// The config has mistakes (`EX_CONFIG` of sysexits).
    static let badConfig = ExitCode(78)
}

/// Why a command failed, and the remedy; `main` prints it after `larder: `.
struct CommandFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Unbuffered output for people and programs.
enum Terminal {
    /// Prints text for people to standard output.
    static func out(_ text: String) { out(Array(shown(text).utf8)) }

    /// Prints text for people: on a terminal, lines wider than it are continued below, indented.
    static func say(_ text: String) { out(Array(HumanText.folded(shown(text), width: width).utf8)) }

    /// Text as people see it: what could alter or hide the text around it is escaped, but for line ends.
    ///
    /// All text for people goes through it, as names of upstreams, clients and files can be in any.
    static func shown(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { $0.isDeceptive && $0 != "\n" }) else { return text }
        return text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
            .map { String($0).printable }.joined(separator: "\n")
    }

    /// Prints a line of bytes, which need not be Unicode.
    static func out(_ bytes: [UInt8]) { write(bytes + [UInt8(ascii: "\n")], to: 1) }

    static func out(_ json: JSONText) { out(json: json.text) }

    /// Prints the daemon's JSON unchanged; on a terminal, unsafe characters are escaped.
    static func out(json text: String) { out(fitted(json: text)) }

    /// JSON as it is printed to standard output.
    static func fitted(json text: String, isTerminal: Bool = isatty(1) == 1) -> [UInt8] {
        guard isTerminal, text.unicodeScalars.contains(where: { $0.value >= 0x7F && $0.isDeceptive }) else {
            return Array(text.utf8)
        }
        // Beyond ASCII, characters occur only in strings.
        return text.unicodeScalars.reduce(into: []) { bytes, scalar in
            if scalar.value >= 0x7F, scalar.isDeceptive {
                bytes += JSONText.printable(String(scalar)).bytes.dropFirst().dropLast()
            } else {
                bytes += String(scalar).utf8
            }
        }
    }

    /// Prints a message to standard error, fitted to its terminal.
    static func complain(_ text: String) {
        write(Array(HumanText.folded(shown(text), width: width(of: 2)).utf8) + [UInt8(ascii: "\n")], to: 2)
    }

    static func complain(json: JSONText) {
        write(fitted(json: json.text, isTerminal: isatty(2) == 1) + [UInt8(ascii: "\n")], to: 2)
    }

    /// Replaces the progress line; an empty text removes it.
    static func progress(_ text: String) { write(Array("\r\u{1B}[K\(text.printable)".utf8), to: 2) }

    /// Whether a person can be asked, and sees standard error.
    static var isInteractive: Bool { isatty(0) == 1 && isatty(2) == 1 }

    /// The columns of the terminal on standard output, if it is one.
    static var width: Int? { width(of: 1) }

    /// The columns of the terminal on a descriptor, if it is one.
    static func width(of descriptor: Int32) -> Int? {
        guard isatty(descriptor) == 1 else { return nil }
        var size = winsize()
        if ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 { return Int(size.ws_col) }
        return getenv("COLUMNS").flatMap { Int(String(cString: $0)) }.flatMap { $0 > 0 ? $0 : nil }
    }

    /// Whether output may be coloured: it goes to a terminal, and the user has not disabled colours (no-color.org).
    static func hasColours(on descriptor: Int32) -> Bool {
        let named = { (name: String) in getenv(name).map { String(cString: $0) } ?? "" }
        return isatty(descriptor) == 1 && named("NO_COLOR").isEmpty && named("TERM") != "dumb"
    }

    /// Asks a question; only a clear yes counts as yes.
    static func isConfirmed(_ question: String) -> Bool {
        write(Array("\(shown(question)) [y/N] ".utf8), to: 2)
        return ["y", "yes"].contains((readLine() ?? "").trimmingPrefix { $0 == " " }.lowercased())
    }

    /// Ends the command if the reader of its output is gone (`| head`).
    static func endIfUnread() {
        var output = pollfd(fd: 1, events: 0, revents: 0)
        if poll(&output, 1, 0) == 1, output.revents & Int16(POLLERR) != 0 { exit(0) }
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) {
        _ = bytes.withUnsafeBytes { writeAll($0, to: descriptor) }
    }
}

/// Bytes for standard output that its reader has not taken yet.
struct PendingOutput {
    private var bytes: [UInt8] = []
    private var start = 0

    var count: Int { bytes.count - start }

    mutating func append(_ more: some Sequence<UInt8>) { bytes += more }

    /// Writes what the reader takes at once, and waits for it only while more than `limit` bytes are left.
    ///
    /// - Parameter deadline: when it stops waiting; nil for never.
    mutating func write(keeping limit: Int, until deadline: ContinuousClock.Instant? = nil) {
        while count > 0 {
            var output = pollfd(fd: 1, events: Int16(POLLOUT), revents: 0)
            let left = deadline.map {
                Int32(max(0, min(ContinuousClock.now.duration(to: $0) / .milliseconds(1), 60_000)))
            }
            let isReady = poll(&output, 1, count > limit ? left ?? -1 : 0) == 1
            if !isReady, count > limit, errno == EINTR { continue }
            guard isReady else { break }
            // As much as a pipe that is ready takes without waiting.
            let end = min(start + Int(PIPE_BUF), bytes.count)
            let isWritten = bytes[start..<end].withUnsafeBytes { writeAll($0, to: 1).code == 0 }
            start = isWritten ? end : bytes.count
        }
        guard start > bytes.count / 2 else { return }
        bytes.removeFirst(start)
        start = 0
    }
}

/// Numbers and texts formatted for people.
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
        return "\(tenths(value)) \(units[unit])"
    }

    /// `1.2`.
    static func tenths(_ number: Double) -> String {
        let tenths = Int((number * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// `1 object`, `2 objects`.
    static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

    /// `1 object, 2 documents`.
    static func counts(_ objects: Int, _ documents: Int) -> String {
        "\(count(objects, "object")), \(count(documents, "document"))"
    }

    /// One line, cut to a width; characters unsafe for a terminal are escaped.
    static func line(_ text: String, width: Int) -> String {
        let spaced =
            text.contains { $0.isNewline || $0 == "\t" }
            ? String(text.map { $0.isNewline || $0 == "\t" ? " " : $0 }) : text
        return cut(spaced.printable, to: width)
    }

    /// The text with lines no wider than a terminal: they are broken at spaces.
    ///
    /// - Parameters:
    ///   - breaksWords: whether a wider word is broken, too. Otherwise the terminal does that, and a URL or a command can still
    ///     be copied.
    ///   - hangs: whether a line is continued further to the right than it begins.
    static func folded(_ text: String, width: Int?, breaksWords: Bool = false, hangs: Bool = true) -> String {
        guard let width, width >= 10, text.displayWidth > width else { return text }
        return text.split(separator: "\n", omittingEmptySubsequences: false)
            .flatMap { folded(line: $0, width: width, breaksWords: breaksWords, hangs: hangs) }
            .joined(separator: "\n")
    }

    private static func folded(line: Substring, width: Int, breaksWords: Bool, hangs: Bool) -> [String] {
        guard String(line).displayWidth > width else { return [String(line)] }
        let depth = line.prefix { $0 == " " }.count
        // A deep indentation, as of a column, would leave no room.
        let start = String(repeating: " ", count: depth < width / 2 ? depth : 2)
        let indentation = start + (hangs && start.count + 2 < width / 2 ? "  " : "")
        var (lines, current, gap) = ([String](), start, "")
        for word in line.dropFirst(depth).split(separator: " ", omittingEmptySubsequences: false) {
            let isBegun = current.contains { $0 != " " }
            let isBroken = breaksWords && String(word).displayWidth > width - indentation.count
            if isBegun, !word.isEmpty, !isBroken, (current + gap + word).displayWidth > width {
                lines.append(current)
                (current, gap) = (indentation, "")
            }
            guard !word.isEmpty else {
                gap += " "
                continue
            }
            current += gap
            for character in word {
                if breaksWords, (current + String(character)).displayWidth > width {
                    lines.append(current)
                    current = indentation
                }
                current.append(character)
            }
            gap = " "
        }
        return lines + [current]
    }

    /// The beginning of a text that fits into a number of columns.
    static func cut(_ text: String, to width: Int) -> String {
        guard text.displayWidth > width else { return text }
        var (kept, used) = ("", 0)
        for character in text {
            let next = String(character).displayWidth
            guard used + next <= width - 1 else { break }
            kept.append(character)
            used += next
        }
        return kept + "…"
    }
}

/// Shows how far something is on the terminal's progress line, from a thread of its own, until it is ended.
final class ProgressWatch: @unchecked Sendable {  // `ended` and `isShown` change under the lock
    private let line: @Sendable () -> String?
    private let lock = NSLock()
    private var ended = false
    private var isShown = false

    /// - Parameter line: the line to show; nil shows nothing new.
    init(_ line: @escaping @Sendable () -> String?) {
        self.line = line
        Thread.detachNewThread { self.run() }
    }

    /// Shows after a second that the command still waits; nil where no person sees it.
    ///
    /// - Parameter limit: how long it waits at most, in words.
    static func waiting(atMost limit: String? = nil) -> ProgressWatch? {
        guard isatty(2) == 1 else { return nil }
        let begun = ContinuousClock.now
        return ProgressWatch {
            let seconds = (ContinuousClock.now - begun).components.seconds
            return seconds < 1 ? nil : "waiting for \(seconds) s" + (limit.map { ", \($0) at most" } ?? "")
        }
    }

    func end() {
        lock.withLock {
            if isShown { Terminal.progress("") }
            (ended, isShown) = (true, false)
        }
    }

    private func run() {
        while true {
            usleep(300_000)
            let text = line()
            let isOver = lock.withLock {
                if !ended, let text {
                    Terminal.progress(text)
                    isShown = true
                }
                return ended
            }
            if isOver { return }
        }
    }
}

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

extension String {
    /// The number of terminal columns that it takes.
    var displayWidth: Int { reduce(0) { $0 + $1.displayWidth } }
}

extension Character {
    /// East Asian characters and emoji take two columns, accents none of their own.
    fileprivate var displayWidth: Int {
        guard let first = unicodeScalars.first else { return 0 }
        switch first.value {
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE4F, 0xFF00...0xFF60,
            0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
            return 2
        default: return 1
        }
    }
}
