import ArgumentParser
import Glibc
import HTTPSemantics
import Settings

extension ExitCode {
    /// It did not work.
    static let failed = ExitCode(1)
    /// The config has mistakes (`EX_CONFIG` of sysexits).
    static let badConfig = ExitCode(78)
}

/// What a command could not do, and what to do about it; `main` prints it behind `larder: `.
struct CommandFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Writing for people and programs, past the buffers that hold lines back.
enum Terminal {
    /// A line for whoever reads the result.
    static func out(_ text: String) { out(Array(text.utf8)) }

    /// The same as bytes, which need not be Unicode.
    static func out(_ bytes: [UInt8]) { write(bytes + [UInt8(ascii: "\n")], to: 1) }

    /// JSON of the daemon's as it is; on a terminal with escapes for what must not reach it.
    static func out(json text: String) {
        guard isatty(1) == 1, text.unicodeScalars.contains(where: { $0.value >= 0x7F && $0.isDeceptive }) else {
            return out(text)
        }
        // Beyond ASCII there are characters in strings only.
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

    /// A line about what happened.
    static func complain(_ text: String) { write(Array(text.utf8) + [UInt8(ascii: "\n")], to: 2) }

    /// A line about how far something is, in the place of the one before; empty: none any more.
    static func progress(_ text: String) { write(Array("\r\u{1B}[K\(text)".utf8), to: 2) }

    /// Whether a person sits there who can be asked, and sees what is written about what happens.
    static var isInteractive: Bool { isatty(0) == 1 && isatty(2) == 1 }

    /// The columns of the terminal that standard output is; nil where it is none.
    static var width: Int? {
        guard isatty(1) == 1 else { return nil }
        var size = winsize()
        if ioctl(1, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 { return Int(size.ws_col) }
        return getenv("COLUMNS").flatMap { Int(String(cString: $0)) }.flatMap { $0 > 0 ? $0 : nil }
    }

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
        _ = bytes.withUnsafeBytes { writeAll($0, to: descriptor) }
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
        let spaced =
            text.contains { $0.isNewline || $0 == "\t" }
            ? String(text.map { $0.isNewline || $0 == "\t" ? " " : $0 }) : text
        return cut(spaced.printable, to: width)
    }

    /// The beginning of a text that fits so many columns of a terminal.
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
