import Synchronization

/// A value that comes once, if it comes in time, for one task that waits for it; any thread.
final class Awaited<Value: Sendable>: Sendable {
    private enum State {
        case open
        case waiting(CheckedContinuation<Value?, Never>)
        case done(Value?)
    }

    private let state = Mutex(State.open)

    init() {}

    /// Gives the value; whatever comes after it has no effect.
    func give(_ value: Value?) {
        let waiting = state.withLock { state -> CheckedContinuation<Value?, Never>? in
            switch state {
            case .done: return nil
            case .open:
                state = .done(value)
                return nil
            case .waiting(let continuation):
                state = .done(value)
                return continuation
            }
        }
        waiting?.resume(returning: value)
    }

    /// The value; nil if it does not come within a limit.
    func value(within limit: Duration) async -> Value? {
        let timer = Task {
            try? await Task.sleep(for: limit)
            give(nil)
        }
        defer { timer.cancel() }
        return await withCheckedContinuation { continuation in
            let done = state.withLock { state -> Value?? in
                switch state {
                case .done(let value): return .some(value)
                case .open, .waiting:
                    state = .waiting(continuation)
                    return nil
                }
            }
            if let done { continuation.resume(returning: done) }
        }
    }
}
