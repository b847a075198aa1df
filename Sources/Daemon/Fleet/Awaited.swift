import Dispatch
import Synchronization

/// A value that comes once, if it comes in time, for one task that waits for it; any thread.
final class Awaited<Value: Sendable>: Sendable {
    private enum State {
        case open
        case waiting(CheckedContinuation<Value?, Never>)
        case done(Value?)
    }

    private let state = Mutex(State.open)

    /// Gives the value; whatever comes after it has no effect.
    func give(_ value: Value?) {
        if case .waiting(let continuation) = become(.done(value)) { continuation.resume(returning: value) }
    }

    /// The value; nil if it does not come within a limit.
    func value(within limit: Duration) async -> Value? {
        Deadlines.shared.add(.now + limit) { [weak self] in self?.give(nil) }
        return await withCheckedContinuation { continuation in
            if case .done(let value) = become(.waiting(continuation)) { continuation.resume(returning: value) }
        }
    }

    /// Changes the state, unless it is done; returns the former one.
    private func become(_ new: State) -> State {
        state.withLock { state in
            if case .done = state { return state }
            return exchange(&state, with: new)
        }
    }
}

/// Calls functions at their times, all by one timer at a time; any thread.
///
/// Nearly all of them are of no use any more by then. So nothing is done to cancel one, and no thread wakes for each.
private final class Deadlines: Sendable {
    static let shared = Deadlines()

    private struct State {
        /// In the order of their times.
        var waiting: [(time: ContinuousClock.Instant, call: @Sendable () -> Void)] = []
        /// The time of the next timer; nil without one.
        var next: ContinuousClock.Instant?
    }

    private let state = Mutex(State())

    func add(_ time: ContinuousClock.Instant, _ call: @escaping @Sendable () -> Void) {
        let isNext = state.withLock { state in
            let place = state.waiting.lastIndex { $0.time <= time }.map { $0 + 1 } ?? 0
            state.waiting.insert((time, call), at: place)
            guard state.next.map({ time < $0 }) ?? true else { return false }
            state.next = time
            return true
        }
        if isNext { setTimer(time) }
    }

    private func setTimer(_ time: ContinuousClock.Instant) {
        let microseconds = max(0, Int((time - .now) / .microseconds(1)) + 1)
        DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(microseconds)) { self.callAll(time) }
    }

    /// Calls those whose time has come, unless another timer does.
    private func callAll(_ time: ContinuousClock.Instant) {
        let now = max(.now, time)
        let (due, next) = state.withLock { state -> ([@Sendable () -> Void], ContinuousClock.Instant?) in
            guard state.next == time else { return ([], nil) }
            let count = state.waiting.firstIndex { $0.time > now } ?? state.waiting.count
            let due = state.waiting.prefix(count).map(\.call)
            state.waiting.removeFirst(count)
            state.next = state.waiting.first?.time
            return (due, state.next)
        }
        if let next { setTimer(next) }
        for call in due { call() }
    }
}
