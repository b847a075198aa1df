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

    /// Writes what the reader takes at once; waits only while more than `limit` bytes are left, at most to `deadline`.
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
