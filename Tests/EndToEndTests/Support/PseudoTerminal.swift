import Foundation
import Glibc
import TestSupport

/// A terminal of a certain width, in which programs run.
final class PseudoTerminal: Sendable {
    private let main: Int32
    private let path: String
    private let shown = Monitor("")

    init(columns: UInt16) throws {
        // What posix_openpt(3), unlockpt(3) and ptsname(3) do, which Swift's Glibc lacks: TIOCSPTLCK and TIOCGPTN.
        main = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var (lock, number): (Int32, Int32) = (0, -1)
        guard main >= 0, ioctl(main, 0x4004_5431, &lock) == 0, ioctl(main, 0x8004_5430, &number) == 0 else {
            throw SocketError.system(call: "/dev/ptmx", code: errno)
        }
        path = "/dev/pts/\(number)"
        var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        _ = ioctl(main, UInt(TIOCSWINSZ), &size)
        let (main, shown) = (main, shown)
        // Reading fails while nobody has the other side open.
        let side = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
        startThread {
            var room = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = read(main, &room, room.count)
                guard count > 0 else { break }
                let text = String(decoding: room[..<count], as: UTF8.self).replacing("\r\n", with: "\n")
                shown.withLock { $0 += text }
            }
            close(side)
        }
    }

    /// Starts a program whose output, standard error or both are the terminal.
    func start(_ arguments: [String], output: Bool = true, errors: Bool = false, environment: [String: String] = [:])
        throws -> TestProcess
    {
        let words = (output ? " >'\(path)'" : "") + (errors ? " 2>'\(path)'" : "")
        return try TestProcess(
            "/bin/sh",
            ["-c", "exec \"$0\" \"$@\"" + words] + arguments,
            environment: Larder.environment.merging(["TERM": "xterm"]) { $1 }.merging(environment) { $1 }
        )
    }

    /// All that was shown.
    var text: String { shown.current }

    func waitFor(_ words: String) -> Bool { shown.wait(.seconds(120)) { $0.contains(words) } }
}
