import Synchronization

/// Whether the daemon is on its way out, and with which exit code.
///
/// Any thread.
final class Ending: Sendable {
    private let hasBegun = Atomic<Bool>(false)
    private let exitCode = Atomic<Int32>(0)

    /// Begins the end; false when it had begun.
    func begin() -> Bool {
        !hasBegun.exchange(true, ordering: .relaxed)
    }

    func finish(code: Int32) {
        exitCode.store(code, ordering: .relaxed)
    }

    var code: Int32 { exitCode.load(ordering: .relaxed) }
}
