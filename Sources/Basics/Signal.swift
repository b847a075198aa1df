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

    /// Calls a function when the signal is given, on the thread that gives it; at once if it was given before.
    public func whenGiven(_ call: @escaping @Sendable () -> Void) {
        let isGiven = state.withLock { state in
            if !state.isGiven { state.waiters.append(call) }
            return state.isGiven
        }
        if isGiven { call() }
    }

    /// Returns when the signal is given, at once if it was given before.
    public func wait() async { await withCheckedContinuation { continuation in whenGiven { continuation.resume() } } }
}
