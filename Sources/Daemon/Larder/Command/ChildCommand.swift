import Foundation
import Settings
import Synchronization

/// A child process that may run for any time, and gets the signals.
final class ChildCommand: Sendable {
    private let command: [String]
    private let state = Mutex(State())

    private struct State {
        var pid: pid_t?
        var status: Int32 = 0
        var hasEnded = false
    }

    init(_ command: [String]) { self.command = command }

    /// The exit status as in a shell: 127 if there is no such command, 128 plus the signal if one ended it.
    var status: Int32 { state.withLock { $0.status } }

    /// Starts it; `ended` is called once, on a thread of its own, when it has ended or could not be started.
    func start(_ variables: [String: String], ended: @escaping @Sendable () -> Void) {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The daemon ignores some signals, and its threads block others; the command must start with the defaults.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for number in [SIGPIPE, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2] { sigaddset(&signals, number) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        let arguments = command.map { strdup($0) } + [nil]
        let environment = variables.map { strdup("\($0)=\($1)") } + [nil]
        defer { (arguments + environment).forEach { free($0) } }
        var pid = pid_t()
        let code = posix_spawnp(&pid, command[0], nil, &attributes, arguments, environment)
        guard code == 0 else {
            Terminal.complain("larder: \(command[0]): \(systemMessage(code))")
            state.withLock { ($0.status, $0.hasEnded) = (code == ENOENT ? 127 : 126, true) }
            return ended()
        }
        let started = pid
        state.withLock { $0.pid = started }
        Thread.detachNewThread { [self] in
            var status: Int32 = 0
            while waitpid(started, &status, 0) < 0, errno == EINTR {}
            let signal = status & 0x7F
            state.withLock { ($0.status, $0.hasEnded) = (signal == 0 ? (status >> 8) & 0xFF : 128 + signal, true) }
            ended()
        }
    }

    /// Passes a signal on; returns false if the command is not running.
    func pass(_ signal: Int32) -> Bool {
        state.withLock { state in
            guard let pid = state.pid, !state.hasEnded else { return false }
            // A terminal signals all of its foreground processes, including the command.
            if signal == SIGINT, tcgetpgrp(0) == getpgrp() { return true }
            kill(pid, signal)
            return true
        }
    }
}
