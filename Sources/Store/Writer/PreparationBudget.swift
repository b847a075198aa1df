import Dispatch
import Synchronization

/// Bounds what bodies that have been taken apart take in memory until they are committed.
///
/// An object of ten bytes takes a kilobyte then, so that the bytes of bodies, which `Admission` bounds, say little. Who takes
/// bodies apart, one after the other on a queue of its own, waits here for the writer before it goes on to the next; so there
/// is never more than the budget and one body.
final class PreparationBudget: Sendable {
    private struct State {
        var used = 0
        var waiter: (bytes: Int, semaphore: DispatchSemaphore)?
    }

    private let limit: Int
    private let state = Mutex(State())

    init(bytes: Int) {
        limit = bytes
    }

    /// Takes room for what has just been taken apart; blocks until there is some.
    ///
    /// One alone always fits. For one thread at a time.
    func enter(_ bytes: Int) {
        let semaphore = state.withLock { state -> DispatchSemaphore? in
            guard state.used > 0, state.used + bytes > limit else {
                state.used += bytes
                return nil
            }
            let semaphore = DispatchSemaphore(value: 0)
            state.waiter = (bytes, semaphore)
            return semaphore
        }
        semaphore?.wait()
    }

    /// Gives room back; any thread.
    func leave(_ bytes: Int) {
        state.withLock { state in
            state.used -= bytes
            guard let waiter = state.waiter, state.used == 0 || state.used + waiter.bytes <= limit else { return }
            state.used += waiter.bytes
            state.waiter = nil
            waiter.semaphore.signal()
        }
    }
}
