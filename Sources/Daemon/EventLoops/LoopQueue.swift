import Synchronization

/// Work waiting for a loop's thread: closures and actor jobs in one order.
struct LoopQueue: ~Copyable {
    /// One piece of work.
    enum Work {
        case closure(@Sendable () -> Void)
        case job(UnownedJob)
    }

    // Not private: the compiler (6.3.1) cannot lay out this struct from other files if it is.
    struct State {
        var waiting: [Work] = []
        /// Whether the thread blocks, or is about to, and must be woken for new work.
        var isAsleep = false
        var isStopped = false
    }

    private let state = Mutex(State())

    /// Appends work; true when the caller has to wake the thread.
    ///
    /// Any thread.
    func append(_ work: Work) -> Bool {
        state.withLock { state in
            state.waiting.append(work)
            defer { state.isAsleep = false }
            return state.isAsleep
        }
    }

    /// Exchanges all waiting work for the caller's empty array, whose room is used again.
    ///
    /// The loop's thread only.
    func take(into batch: inout [Work]) {
        state.withLock { swap(&$0.waiting, &batch) }
    }

    /// Notes that the thread goes to wait; false when there is work that it has to do first.
    func fallAsleep() -> Bool {
        state.withLock { state in
            state.isAsleep = state.waiting.isEmpty && !state.isStopped
            return state.isAsleep
        }
    }

    /// Asks the thread to end; true when the caller has to wake it.
    func stop() -> Bool {
        state.withLock { state in
            state.isStopped = true
            defer { state.isAsleep = false }
            return state.isAsleep
        }
    }

    var isStopped: Bool { state.withLock { $0.isStopped } }
    var isEmpty: Bool { state.withLock { $0.waiting.isEmpty } }
}
