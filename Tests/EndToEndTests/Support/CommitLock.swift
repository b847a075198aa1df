import Glibc
import TestSupport

/// Another program's lock on a daemon's store, which keeps it from committing; for two seconds at most, after which the
/// commit fails.
final class CommitLock {
    private let process: TestProcess

    init(_ larder: Larder) throws {
        process = try TestProcess(
            "sqlite3",
            [larder.folder.file("larder.db"), "BEGIN IMMEDIATE;", ".shell echo held >&2; exec sleep 4"],
            environment: Larder.environment
        )
        guard process.waitForErrors(until: { $0.contains("held") }) else { throw SocketError.timedOut }
    }

    deinit { release() }

    var isHeld: Bool { process.end == nil }

    func release() { process.signal(SIGKILL) }
}
