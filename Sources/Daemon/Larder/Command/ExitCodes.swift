import ArgumentParser
import Glibc

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
