import Synchronization

/// An event that happens once, and that tasks can wait for; any thread.
public final class Signal: Sendable {
    private struct State {
        var isGiven = false
        var waiters: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    /// Creates a signal that is not given yet.
    public init() {}

    /// Lets all who wait go on, on this thread; to give it again has no effect.
    public func give() {
        let waiters = state.withLock { state in
            state.isGiven = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter() }
    }

    /// Returns when the signal is given, at once if it was given before.
    public func wait() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isGiven = state.withLock { state in
                if !state.isGiven { state.waiters.append { continuation.resume() } }
                return state.isGiven
            }
            if isGiven { continuation.resume() }
        }
    }
}
