import CEvent
import Glibc
import Synchronization

/// One thread that waits for sockets, timers, signals and work from other threads, over one libevent base.
///
/// The life of a loop:
/// 1. made: things may be put on it by the one thread that knows it;
/// 2. running (`start` or `run`): timers, watches and signals belong to its thread, only `enqueue` and `stop` to all;
/// 3. stopped: work that was waiting is still done, then the thread ends.
///
/// libevent runs without its locks: the only way in from another thread is the queue and the eventfd that wakes the loop.
// Unchecked, because of libevent's pointers and the clock: both are only touched by the loop's thread
// (or before it runs), which `proveOwnership` checks. Everything else is immutable, atomic or in the queue's mutex.
package final class EventLoop: @unchecked Sendable {
    package let name: String
    let base: OpaquePointer

    private let queue = LoopQueue()
    private let wakeDescriptor: Int32
    private var wakeEvent: OpaquePointer?
    /// `pthread_self()` of the running thread, 0 when there is none.
    private let runningThread = Atomic<UInt>(0)
    private let thread = Mutex<UInt?>(nil)
    private var batch: [LoopQueue.Work] = []
    private var clock = LoopClock()

    package private(set) var executor: LoopExecutor! = nil
    package private(set) var taskExecutor: LoopTaskExecutor! = nil

    /// Makes a loop that does not run yet; `name` is what debuggers and `top` show (15 bytes of it).
    package init(name: String) throws(LoopError) {
        self.name = name
        guard let config = event_config_new() else { throw .noBase }
        defer { event_config_free(config) }
        event_config_set_flag(config, Int32(EVENT_BASE_FLAG_NOLOCK.rawValue))
        guard let base = event_base_new_with_config(config) else { throw .noBase }
        switch EventSystem.makeWakeDescriptor() {
        case .done(let descriptor):
            wakeDescriptor = Int32(descriptor)
        case .failed(let number):
            event_base_free(base)
            throw .system(call: "eventfd", errno: number)
        }
        self.base = base
        // Edge-triggered: each write wakes, and nobody has to read the counter (one system call less per wake-up).
        wakeEvent = event_new(base, wakeDescriptor, Int16(EV_READ | EV_PERSIST) | Int16(EV_ET), { _, _, _ in }, nil)
        event_add(wakeEvent, nil)
        executor = LoopExecutor(self)
        taskExecutor = LoopTaskExecutor(self)
    }

    deinit {
        event_free(wakeEvent)
        event_base_free(base)
        close(wakeDescriptor)
    }

    // MARK: The thread

    /// Whether the caller is on the loop's thread.
    var isCurrent: Bool { runningThread.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Runs the loop on a thread of its own, which keeps the loop alive until `stop`.
    package func start() {
        var identifier = pthread_t()
        // Taken back by the thread as its first deed.
        let retained = Unmanaged.passRetained(self).toOpaque()
        let failure = pthread_create(
            &identifier,
            nil,
            { context in
                guard let context else { return nil }
                Unmanaged<EventLoop>.fromOpaque(context).takeRetainedValue().runOnOwnThread()
                return nil
            },
            retained
        )
        precondition(failure == 0, "no thread for the loop \(name): \(SystemCall.message(failure))")
        thread.withLock { $0 = UInt(identifier) }
    }

    private func runOnOwnThread() {
        EventSystem.nameThread(name)
        run()
    }

    /// Runs the loop on the caller's thread until `stop`.
    package func run() {
        precondition(
            runningThread.exchange(UInt(pthread_self()), ordering: .relaxed) == 0,
            "the loop \(name) runs twice"
        )
        while !queue.isStopped {
            runWaiting()
            let flags = queue.fallAsleep() ? EVLOOP_ONCE : EVLOOP_NONBLOCK
            clock.turnEnded()
            event_base_loop(base, flags)
        }
        // Jobs that are never run would leak the tasks that wait for them.
        while !queue.isEmpty { runWaiting() }
        runningThread.store(0, ordering: .relaxed)
    }

    /// Ends the loop after the work that waits now.
    ///
    /// Any thread; returns at once.
    package func stop() {
        if queue.stop() { wake() }
    }

    /// Waits until the thread made by `start` has ended; not to be called from it.
    func join() {
        precondition(!isCurrent, "the loop \(name) cannot wait for itself")
        let identifier = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        if let identifier { pthread_join(pthread_t(identifier), nil) }
    }

    // MARK: Work from any thread

    /// Has the loop's thread do this, after what was enqueued before.
    ///
    /// Any thread; wakes the loop.
    package func enqueue(_ work: @escaping @Sendable () -> Void) {
        append(.closure(work))
    }

    /// Has the loop's thread run a job of the language's concurrency.
    ///
    /// Any thread.
    func enqueue(job: UnownedJob) {
        append(.job(job))
    }

    private func append(_ work: LoopQueue.Work) {
        // On the loop's own thread nobody sleeps: the queue is looked at before the next wait.
        if queue.append(work), !isCurrent { wake() }
    }

    private func wake() {
        EventSystem.wake(wakeDescriptor)
    }

    /// Runs what waited at the moment of the call; what that enqueues comes after the next look at the sockets.
    private func runWaiting() {
        queue.take(into: &batch)
        if batch.isEmpty { return }
        // Moved out, so that work which ends up here again finds no access in progress.
        var current: [LoopQueue.Work] = []
        swap(&current, &batch)
        for work in current {
            switch work {
            case .closure(let work): work()
            case .job(let job):
                job.runSynchronously(
                    isolatedTo: executor.asUnownedSerialExecutor(),
                    taskExecutor: taskExecutor.asUnownedTaskExecutor()
                )
            }
        }
        current.removeAll(keepingCapacity: true)
        swap(&current, &batch)
    }

    // MARK: The clock

    /// The monotonic clock in ns, coarse (some ms), read once per turn.
    ///
    /// The loop's thread only.
    package var now: UInt64 { clock.monotonic() }

    /// Seconds since 1970, read once per turn.
    ///
    /// The loop's thread only.
    package var wallSeconds: Int { clock.wallSeconds() }

    // MARK: Things on the loop

    /// Calls back once after `delay`, unless the timer is dropped or cancelled before.
    ///
    /// The loop's thread only.
    package func after(_ delay: Duration, _ work: @escaping () -> Void) -> EventTimer {
        let timer = EventTimer(loop: self, isRepeating: false, work)
        timer.schedule(after: delay)
        return timer
    }

    /// Calls back every `interval` until the timer is dropped or cancelled.
    ///
    /// The loop's thread only.
    package func every(_ interval: Duration, _ work: @escaping () -> Void) -> EventTimer {
        let timer = EventTimer(loop: self, isRepeating: true, work)
        timer.schedule(after: interval)
        return timer
    }

    /// Calls back whenever `descriptor` is ready (level-triggered) until the watch is dropped or disabled.
    ///
    /// The watch does not own the descriptor, which must stay open as long as the watch lives. The loop's thread only.
    package func watch(
        descriptor: Int32,
        events: ReadyEvents,
        isPersistent: Bool = true,
        _ ready: @escaping (ReadyEvents) -> Void
    ) -> EventWatch {
        let watch = EventWatch(loop: self, descriptor: descriptor, events: events, isPersistent: isPersistent, ready)
        watch.enable()
        return watch
    }

    /// Calls back as ordinary loop code for each arrival of a signal.
    ///
    /// One loop of a process may have signals.
    package func onSignal(_ number: Int32, _ handler: @escaping () -> Void) -> EventSignal {
        EventSignal(loop: self, number: number, handler)
    }

    /// Traps when the caller is on another thread while the loop runs.
    package func proveOwnership() {
        let running = runningThread.load(ordering: .relaxed)
        precondition(running == 0 || running == UInt(pthread_self()), "the loop \(name) is used from another thread")
    }
}
