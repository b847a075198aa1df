import ArgumentParser
import Glibc
import HTTPSemantics
import Settings

extension ExitCode {
    /// The command failed.
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
    /// Prints a line to standard output.
    static func out(_ text: String) { out(Array(text.utf8)) }

    /// Prints text for people: on a terminal, lines wider than it are continued below, indented.
    static func say(_ text: String) { out(HumanText.folded(text, width: width)) }

    /// Prints a line of bytes, which need not be Unicode.
    static func out(_ bytes: [UInt8]) { write(bytes + [UInt8(ascii: "\n")], to: 1) }

    /// Prints the daemon's JSON unchanged; on a terminal, unsafe characters are escaped.
    static func out(json text: String) {
        guard isatty(1) == 1, text.unicodeScalars.contains(where: { $0.value >= 0x7F && $0.isDeceptive }) else {
            return out(text)
        }
        // Beyond ASCII, characters occur only in strings.
        var bytes: [UInt8] = []
        for scalar in text.unicodeScalars {
            if scalar.value >= 0x7F, scalar.isDeceptive {
                bytes += JSONText.printable(String(scalar)).bytes.dropFirst().dropLast()
            } else {
                bytes += String(scalar).utf8
            }
        }
        out(bytes)
    }

    /// Prints a message to standard error, fitted to its terminal.
    static func complain(_ text: String) {
        write(Array(HumanText.folded(text, width: width(of: 2)).utf8) + [UInt8(ascii: "\n")], to: 2)
    }

    /// Replaces the progress line; an empty text removes it.
    static func progress(_ text: String) { write(Array("\r\u{1B}[K\(text)".utf8), to: 2) }

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
        write(Array("\(question) [y/N] ".utf8), to: 2)
        return ["y", "yes"].contains((readLine() ?? "").trimmingPrefix { $0 == " " }.lowercased())
    }

    /// Whether the reader of the output is gone.
    static var isClosed: Bool {
        var output = pollfd(fd: 1, events: 0, revents: 0)
        return poll(&output, 1, 0) == 1 && output.revents & Int16(POLLERR) != 0
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) {
        _ = bytes.withUnsafeBytes { writeAll($0, to: descriptor) }
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
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }

    /// `1 object`, `2 objects`.
    static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

    /// One line, cut to a width; characters unsafe for a terminal are escaped.
    static func line(_ text: String, width: Int) -> String {
        let spaced =
            text.contains { $0.isNewline || $0 == "\t" }
            ? String(text.map { $0.isNewline || $0 == "\t" ? " " : $0 }) : text
        return cut(spaced.printable, to: width)
    }

    /// The text with lines no wider than a terminal: they are broken at spaces, and continued with an indentation.
    ///
    /// - Parameter breaksWords: whether a wider word is broken, too. Otherwise the terminal does that, and a URL or a command
    ///   can still be copied.
    static func folded(_ text: String, width: Int?, breaksWords: Bool = false) -> String {
        guard let width, width >= 10, text.displayWidth > width else { return text }
        return text.split(separator: "\n", omittingEmptySubsequences: false)
            .flatMap { folded(line: $0, width: width, breaksWords: breaksWords) }
            .joined(separator: "\n")
    }

    private static func folded(line: Substring, width: Int, breaksWords: Bool) -> [String] {
        guard String(line).displayWidth > width else { return [String(line)] }
        let depth = line.prefix { $0 == " " }.count
        // A deep indentation, as of a column, would leave no room.
        let start = String(repeating: " ", count: depth < width / 2 ? depth : 2)
        let indentation = start + (start.count + 2 < width / 2 ? "  " : "")
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
