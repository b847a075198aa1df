import Foundation
import Glibc
import TestSupport

/// Holds a daemon's commits after readers of its store can see them, and before memory, streams and waiting callers are notified.
///
/// Debug builds have such a gate (`CommitGate` in `Store`). Start the daemon with its `environment`.
final class CommitBlocker: Sendable {
    private static let variable = "LARDER_COMMIT_GATE"
    /// Whether the binary under test has the gate.
    static let isAvailable: Bool = {
        let binary = try? Data(contentsOf: URL(fileURLWithPath: Larder.binary), options: .alwaysMapped)
        return binary?.range(of: Data(variable.utf8)) != nil
    }()

    let environment: [String: String]
    private let file: Int32

    init(in folder: TemporaryFolder) {
        let path = folder.file("commits")
        environment = [Self.variable: path]
        file = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    }

    deinit { Glibc.close(file) }

    /// Holds the commits from now on.
    func close() { flock(file, LOCK_EX) }

    /// Lets them go on.
    func open() { flock(file, LOCK_UN) }

    /// How many commits have arrived at the gate.
    var count: Int {
        var status = stat()
        return fstat(file, &status) == 0 ? Int(status.st_size) : 0
    }

    /// Waits until another commit has arrived.
    func waitForCommit(after count: Int) -> Bool { eventually { self.count > count } }
}
