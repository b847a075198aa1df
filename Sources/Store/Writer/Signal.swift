import Synchronization

/// Something that happens once and that tasks wait for.
final class Signal: Sendable {
    private struct State {
        var isGiven = false
        var waiters: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    func give() {
        let waiters = state.withLock { state in
            state.isGiven = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter() }
    }

    func wait() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isGiven = state.withLock { state in
                if !state.isGiven { state.waiters.append { continuation.resume() } }
                return state.isGiven
            }
            if isGiven { continuation.resume() }
        }
    }
}
