import Basics
import Foundation
import Glibc
import Settings

extension ChildProcess {
    private static let outputLimit = 64 << 10

    /// Why a program gave no output; a sentence that repeats nothing of it.
    struct OutputError: Error, CustomStringConvertible { let description: String }

    /// Runs a program to its end and returns what it prints; kills it at the limit; blocks.
    static func output(of command: [String], within limit: Duration) throws(OutputError) -> [UInt8] {
        var ends: [Int32] = [-1, -1]
        // In place of a pipe, which another thread's child may inherit before it is set to close.
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw OutputError(description: systemMessage(errno))
        }
        defer { close(ends[0]) }
        let pid: pid_t
        do {
            defer { close(ends[1]) }
            pid = try start(command, ProcessInfo.processInfo.environment, descriptors: [nil, ends[1]])
        } catch { throw OutputError(description: "it cannot be started: \(systemMessage(error.code))") }
        let deadline = ContinuousClock.now + limit
        let (bytes, isWhole) = read(ends[0], until: deadline)
        var status: Int32 = 0
        // It may go on although it has closed its output.
        var hasEnded = false
        while isWhole, !hasEnded, .now < deadline {
            hasEnded = waitpid(pid, &status, WNOHANG) == pid
            if !hasEnded { usleep(5_000) }
        }
        if !hasEnded {
            kill(pid, SIGKILL)
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        }
        guard hasEnded else {
            let reason =
                bytes.count > outputLimit ? "it prints more than 64 KiB" : "it took longer than \(Units.text(limit))"
            throw OutputError(description: reason)
        }
        guard status == 0 else {
            let signal = status & 0x7F
            let end = signal == 0 ? "it ended with status \((status >> 8) & 0xFF)" : "signal \(signal) ended it"
            throw OutputError(description: "\(end); run it by hand to see why")
        }
        return bytes
    }

    /// Reads to the end, or until there is no time left or it is too much.
    private static func read(
        _ descriptor: Int32,
        until deadline: ContinuousClock.Instant
    ) -> (bytes: [UInt8], isComplete: Bool) {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4 << 10)
        while bytes.count <= outputLimit {
            let rest = deadline - .now
            guard rest > .zero else { return (bytes, false) }
            var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard Glibc.poll(&poll, 1, Int32(rest / .milliseconds(1)) + 1) > 0 else { continue }
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count == 0 { return (bytes, true) }
            if count > 0 { bytes += buffer[..<count] }
        }
        return (bytes, false)
    }
}
