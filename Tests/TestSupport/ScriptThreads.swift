package import Testing

/// Gives the tests of a suite threads that may block.
///
/// A script blocks in `read` and `connect` for most of its life. On the cooperative pool, as wide as the machine has
/// cores, two such tests would keep all others waiting.
package struct ScriptThreads: SuiteTrait, TestTrait, TestScoping {
    package let isRecursive = true

    package func scopeProvider(for test: Test, testCase: Test.Case?) -> ScriptThreads? { testCase == nil ? nil : self }

    package func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        await Self.slots.enter()
        defer { Self.slots.leave() }
        try await withTaskExecutorPreference(ThreadPerJob.shared) { try await function() }
    }

    private static let slots = Slots(8)
}

extension Trait where Self == ScriptThreads {
    /// The tests are scripts: each runs on a thread of its own, a few at a time.
    package static var scripts: ScriptThreads { ScriptThreads() }
}

/// A task executor that runs each job on a new thread; a script is one job, or a few.
private final class ThreadPerJob: TaskExecutor {
    static let shared = ThreadPerJob()

    func enqueue(_ job: consuming ExecutorJob) {
        let unowned = UnownedJob(job)
        startThread { unowned.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// Lets so many in at a time, first come, first served.
private final class Slots: Sendable {
    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Monitor<State>

    init(_ count: Int) { state = Monitor(State(free: count)) }

    func enter() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.free > 0 else {
                    state.waiting.append(continuation)
                    return false
                }
                state.free -= 1
                return true
            }
            if isFree { continuation.resume() }
        }
    }

    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.free += 1
            return nil
        }
        next?.resume()
    }
}
