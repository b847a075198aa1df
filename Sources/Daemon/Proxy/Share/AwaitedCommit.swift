import Basics
import Synchronization

/// The commit of another machine's response with objects, for the request that has found it; any thread.
///
/// The writer decides within its transaction whether the response shows all that is known. If nothing but storing it follows, that
/// holds at the commit, too. So all but the response's last byte may be sent already; the last one waits for the commit, after
/// which every other document shows the response's values. As a whole, the response is served by then and not before.
final class AwaitedCommit: Sendable {
    private let decision = Signal()
    private let end = Signal()
    private let foreseen = Atomic(false)
    private let stored = Atomic(false)

    /// Only storing the response is left to do.
    func foresee() {
        foreseen.store(true, ordering: .releasing)
        decision.give()
    }

    /// The response is committed, and shows all that is known.
    func succeed() { stored.store(true, ordering: .releasing) }

    /// The commit is over, or there will be none.
    func finish() {
        decision.give()
        end.give()
    }

    /// Calls a function if the response will be a hit with its commit, on the writer's thread or at once.
    ///
    /// By way of the loop it would be later, and the worker would often wait for the processor that the writer then has.
    func whenForeseen(_ call: @escaping @Sendable () -> Void) {
        decision.whenGiven { [self] in
            if foreseen.load(ordering: .acquiring) { call() }
        }
    }

    /// Whether the response will be a hit with its commit; false only after that is over.
    func isForeseen() async -> Bool {
        await decision.wait()
        return foreseen.load(ordering: .acquiring)
    }

    /// Whether the response is a hit, once its commit is over.
    func isStored() async -> Bool {
        await end.wait()
        return stored.load(ordering: .acquiring)
    }
}
