/// Runs the jobs of actors that live on an event loop.
///
/// ```swift
/// nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }
/// ```
/// The actor must keep its loop alive.
package final class LoopExecutor: SerialExecutor {
    // The loop owns its executors; whoever runs on one owns the loop.
    private unowned let loop: EventLoop

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        loop.enqueue(job: UnownedJob(job))
    }

    package func checkIsolated() {
        precondition(loop.isCurrent, "code of the loop \(loop.name) runs on another thread")
    }

    package func isIsolatingCurrentContext() -> Bool? {
        loop.isCurrent
    }
}

/// Keeps tasks on an event loop across awaits of functions that belong to no actor.
///
/// Without it a continuation resumed on the loop travels through the global pool (9–17 µs instead of under 1).
/// A type of its own: one object that is both kinds of executor confuses the runtime.
package final class LoopTaskExecutor: TaskExecutor {
    private unowned let loop: EventLoop

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        loop.enqueue(job: UnownedJob(job))
    }
}
