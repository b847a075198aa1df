import CEvent
import Glibc
import Synchronization

/// One thread that waits for sockets, timers, signals and work from other threads, over one libevent base.
///
/// The phases of a loop:
/// 1. made: only the thread that made it may add to it;
/// 2. running (`start` or `run`): timers, watches and signals belong to its thread; other threads may call only `enqueue`
///    and `stop`;
/// 3. stopped: waiting work is still done, then the thread ends.
///
/// libevent runs without its locks: other threads enter only through the queue and the eventfd that wakes the loop.
// Unchecked, because of libevent's pointers and the clock: both are used only on the loop's thread (or before it runs), which
// `proveOwnership` checks. All other state is immutable, atomic or guarded by a mutex.
package final class EventLoop: @unchecked Sendable {
    package let name: String
    let base: OpaquePointer

    private let queue = LoopQueue()
    private let wakeDescriptor: Int32
    private var wakeEvent: OpaquePointer?
    /// `pthread_self()` of the running thread; 0 if there is none.
    private let runningThread = Atomic<UInt>(0)
    private let thread = Mutex<UInt?>(nil)
    private var batch: [LoopQueue.Work] = []
    /// What is wanted before the loop waits again.
    private var endings: [TurnEnding] = []
    /// The loops that are to be woken at the end of `deferringWakes`; nil outside of it.
    private var deferredWakes: [EventLoop]?
    /// The loop of this thread that holds back wakes.
    private static let holder: pthread_key_t = {
        var key = pthread_key_t()
        precondition(pthread_key_create(&key, nil) == 0, "no key for thread-specific data")
        return key
    }()
    // Exclusivity is not checked, because each hit reads the clock: its methods call nothing.
    @exclusivity(unchecked) private var clock = LoopClock()

    /// For actors that live on the loop.
    package private(set) var executor: LoopExecutor! = nil
    /// For the tasks that they start.
    package private(set) var taskExecutor: LoopTaskExecutor! = nil

    /// Makes a loop that does not run yet; debuggers and `top` show the first 15 bytes of `name`.
    package init(name: String) throws(LoopError) {
        self.name = name
        guard let config = event_config_new() else { throw .noBase }
        defer { event_config_free(config) }
        event_config_set_flag(config, Int32(EVENT_BASE_FLAG_NOLOCK.rawValue))
        guard let base = event_base_new_with_config(config) else { throw .noBase }
        switch SystemCall.retried({ Int(eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))) }) {
        case .done(let descriptor): wakeDescriptor = Int32(descriptor)
        case .failed(let number):
            event_base_free(base)
            throw .system(call: "eventfd", errno: number)
        }
        self.base = base
        // Edge-triggered: each write wakes the loop, and the counter need not be read (one system call less per wake-up).
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
    package var isCurrent: Bool { runningThread.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Runs the loop on a thread of its own, which keeps the loop alive until `stop`.
    package func start() {
        var identifier = pthread_t()
        // Released by the thread as its first action.
        let retained = Unmanaged.passRetained(self).toOpaque()
        let failure = pthread_create(
            &identifier,
            nil,
            { context in
                let loop = Unmanaged<EventLoop>.fromOpaque(context!).takeRetainedValue()
                pthread_setname_np(pthread_self(), String(loop.name.prefix(15)))
                loop.run()
                return nil
            },
            retained
        )
        precondition(failure == 0, "no thread for the loop \(name): \(SystemCall.message(failure))")
        thread.withLock { $0 = UInt(identifier) }
    }

    /// Runs the loop on the caller's thread until `stop`.
    package func run() {
        let isFirst = runningThread.exchange(UInt(pthread_self()), ordering: .relaxed) == 0
        precondition(isFirst, "the loop \(name) runs twice")
        while !queue.isStopped {
            runWaiting()
            runEndings()
            let flags = endings.isEmpty && queue.fallAsleep() ? EVLOOP_ONCE : EVLOOP_NONBLOCK
            clock.turnEnded()
            event_base_loop(base, flags)
        }
        // Jobs that never run would leak the tasks that wait for them.
        while !queue.isEmpty { runWaiting() }
        runningThread.store(0, ordering: .relaxed)
    }

    /// Ends the loop after the work that waits now; may be called on any thread; returns at once.
    package func stop() {
        if queue.stop() { wake() }
    }

    /// Waits until the thread made by `start` has ended; must not be called from it.
    func join() {
        precondition(!isCurrent, "the loop \(name) cannot wait for itself")
        let identifier = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        if let identifier { pthread_join(pthread_t(identifier), nil) }
    }

    // MARK: Work from any thread

    /// Runs work on the loop's thread, after the work enqueued before; may be called on any thread; wakes the loop.
    package func enqueue(_ work: @escaping @Sendable () -> Void) { append(.closure(work)) }

    /// Runs a job of Swift concurrency on the loop's thread; may be called on any thread.
    func enqueue(job: UnownedJob) { append(.job(job)) }

    private func append(_ work: LoopQueue.Work) {
        // The loop's own thread is awake, and checks the queue before the next wait.
        guard queue.append(work), !isCurrent else { return }
        guard let holder = pthread_getspecific(Self.holder) else { return wake() }
        Unmanaged<EventLoop>.fromOpaque(holder).takeUnretainedValue().deferredWakes?.append(self)
    }

    /// Does some work, and wakes the loops to which it gives work at its end, so that each does all of it in one turn.
    ///
    /// Must be called on the loop's thread; the work must not block.
    package func deferringWakes(_ work: () -> Void) {
        proveOwnership()
        guard deferredWakes == nil else { return work() }
        deferredWakes = []
        pthread_setspecific(Self.holder, Unmanaged.passUnretained(self).toOpaque())
        work()
        pthread_setspecific(Self.holder, nil)
        sendDeferredWakes()
        deferredWakes = nil
    }

    /// Wakes now the loops that `deferringWakes` would wake at its end; on the loop's thread.
    package func sendDeferredWakes() {
        for loop in deferredWakes ?? [] { loop.wake() }
        deferredWakes?.removeAll(keepingCapacity: true)
    }

    private func wake() { eventfd_write(wakeDescriptor, 1) }

    /// Runs the work waiting at the time of the call; work enqueued meanwhile runs after the next poll of the sockets.
    private func runWaiting() {
        queue.take(into: &batch)
        if batch.isEmpty { return }
        // Moved out, so that work that re-enters this method finds no access in progress.
        var current: [LoopQueue.Work] = []
        swap(&current, &batch)
        for work in current {
            switch work {
            case .closure(let work): work()
            case .job(let job):
                let executor = executor.asUnownedSerialExecutor()
                job.runSynchronously(isolatedTo: executor, taskExecutor: taskExecutor.asUnownedTaskExecutor())
            }
        }
        current.removeAll(keepingCapacity: true)
        swap(&current, &batch)
    }

    fileprivate func append(_ ending: TurnEnding) {
        proveOwnership()
        endings.append(ending)
    }

    /// Runs the endings that are wanted now; those that they want themselves come after the next poll of the sockets.
    private func runEndings() {
        if endings.isEmpty { return }
        let count = endings.count
        for index in 0..<count { endings[index].run() }
        endings.removeFirst(count)
    }

    // MARK: The clock

    /// The monotonic clock in ns, coarse (some ms), read once per turn; used on the loop's thread only.
    package var now: UInt64 { clock.monotonic() }

    /// Seconds since 1970, read once per turn; used on the loop's thread only.
    package var wallSeconds: Int { clock.wallSeconds() }

    // MARK: Timers, watches and signals

    /// Calls back once after `delay`, unless the timer is dropped or cancelled before.
    ///
    /// Must be called on the loop's thread.
    package func after(_ delay: Duration, _ work: @escaping () -> Void) -> EventTimer {
        let timer = EventTimer(loop: self, isRepeating: false, work)
        timer.schedule(after: delay)
        return timer
    }

    /// Calls back every `interval` until the timer is dropped or cancelled; must be called on the loop's thread.
    package func every(_ interval: Duration, _ work: @escaping () -> Void) -> EventTimer {
        let timer = EventTimer(loop: self, isRepeating: true, work)
        timer.schedule(after: interval)
        return timer
    }

    /// Calls back whenever `descriptor` is ready (level-triggered) until the watch is dropped or disabled.
    ///
    /// The watch does not own the descriptor, which must stay open while the watch exists. Must be called on the loop's thread.
    package func watch(descriptor: Int32, events: ReadyEvents, _ ready: @escaping (ReadyEvents) -> Void) -> EventWatch {
        let watch = EventWatch(loop: self, descriptor: descriptor, events: events, ready)
        watch.enable()
        return watch
    }

    /// Calls back as ordinary loop code for each arrival of a signal; only one loop of a process may handle signals.
    package func onSignal(_ number: Int32, _ handler: @escaping () -> Void) -> EventSignal {
        EventSignal(loop: self, number: number, handler)
    }

    /// Traps if the loop is running and the caller is on another thread.
    package func proveOwnership() {
        let running = runningThread.load(ordering: .relaxed)
        precondition(running == 0 || running == UInt(pthread_self()), "the loop \(name) is used from another thread")
    }
}

/// Work that a loop does before it polls its sockets, once for each time that somebody asks for it.
///
/// A timer without delay would fire only after a poll. Used on the loop's thread only.
package final class TurnEnding {
    // The loop may keep this object.
    private unowned let loop: EventLoop
    private let work: () -> Void
    private var isWanted = false

    package init(loop: EventLoop, _ work: @escaping () -> Void) { (self.loop, self.work) = (loop, work) }

    /// Asks for the work; to ask again before it is done changes nothing.
    package func want() {
        if isWanted { return }
        isWanted = true
        loop.append(self)
    }

    /// Takes that back.
    ///
    /// The loop may keep this object for a while, so its owner must call this in `deinit`.
    package func cancel() { isWanted = false }

    fileprivate func run() {
        guard isWanted else { return }
        isWanted = false
        work()
    }
}

/// Work waiting for a loop's thread: closures and actor jobs in one order.
struct LoopQueue: ~Copyable {
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

    /// Appends work; returns true if the caller must wake the thread; may be called on any thread.
    func append(_ work: Work) -> Bool {
        state.withLock { state in
            state.waiting.append(work)
            defer { state.isAsleep = false }
            return state.isAsleep
        }
    }

    /// Swaps all waiting work with the caller's empty array, whose capacity is reused.
    ///
    /// Must be called on the loop's thread.
    func take(into batch: inout [Work]) { state.withLock { swap(&$0.waiting, &batch) } }

    /// Notes that the thread is about to wait; returns false if there is work to do first.
    func fallAsleep() -> Bool {
        state.withLock { state in
            state.isAsleep = state.waiting.isEmpty && !state.isStopped
            return state.isAsleep
        }
    }

    /// Asks the thread to end; returns true if the caller must wake it.
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

/// Runs the jobs of actors on an event loop.
///
/// ```swift
/// nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }
/// ```
/// The actor must keep its loop alive.
package final class LoopExecutor: SerialExecutor {
    // The loop owns its executors; code that runs on one owns the loop.
    private unowned let loop: EventLoop

    init(_ loop: EventLoop) { self.loop = loop }

    package func enqueue(_ job: consuming ExecutorJob) { loop.enqueue(job: UnownedJob(job)) }

    package func checkIsolated() {
        precondition(loop.isCurrent, "code of the loop \(loop.name) runs on another thread")
    }

    package func isIsolatingCurrentContext() -> Bool? { loop.isCurrent }
}

/// Keeps tasks on an event loop across awaits of functions that belong to no actor.
///
/// Without it a continuation resumed on the loop goes through the global pool (9–17 µs instead of under 1). It is a separate
/// type, because one object that is both kinds of executor confuses the runtime.
package final class LoopTaskExecutor: TaskExecutor {
    private unowned let loop: EventLoop

    init(_ loop: EventLoop) { self.loop = loop }

    package func enqueue(_ job: consuming ExecutorJob) { loop.enqueue(job: UnownedJob(job)) }
}

/// The time of one turn of a loop, read from the coarse clocks when first needed.
struct LoopClock {
    private var monotonicTime: UInt64 = 0
    private var wallTime = 0

    /// Drops the cached time, so that the next access reads the clock.
    mutating func turnEnded() { (monotonicTime, wallTime) = (0, 0) }

    mutating func monotonic() -> UInt64 {
        if monotonicTime == 0 {
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
            monotonicTime = UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
        }
        return monotonicTime
    }

    mutating func wallSeconds() -> Int {
        if wallTime == 0 {
            var time = timespec()
            clock_gettime(CLOCK_REALTIME_COARSE, &time)
            wallTime = time.tv_sec
        }
        return wallTime
    }
}

/// A weak reference to an object on a loop, for closures that pass through other threads.
///
/// The object may be accessed on its loop only, which is checked. The reference may be copied and dropped on any thread.
// Unchecked: the only access proves that it happens on the object's own thread.
package struct LoopReference<Object: AnyObject>: @unchecked Sendable {
    private weak let object: Object?
    private let loop: EventLoop

    package init(_ object: Object, on loop: EventLoop) {
        self.object = object
        self.loop = loop
    }

    /// The object, if it still exists; must be read on the loop's thread.
    private var onLoop: Object? {
        loop.proveOwnership()
        return object
    }

    /// Runs work with the object on the loop, if it still exists then; may be called on any thread.
    package func enqueue(_ work: @escaping @Sendable (Object) -> Void) {
        loop.enqueue { [self] in
            if let object = onLoop { work(object) }
        }
    }
}

/// The reason why an event loop, or a part of it, could not be made.
package enum LoopError: Error, Sendable, Equatable {
    /// libevent returned no base: memory or descriptors are exhausted.
    case noBase
    case system(call: String, errno: Int32)
}

extension LoopError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noBase: "the event loop could not be created: out of memory or of file descriptors"
        case .system(let call, let errno): "the event loop could not be created: \(call): \(SystemCall.message(errno))"
        }
    }
}

/// The system calls around a loop that Swift's own Glibc module lacks.
package enum EventSystem {
    package static var version: String { String(cString: event_get_version()) }

    /// Accepts one waiting connection from a listener, non-blocking and closed on exec.
    package static func accept(_ listener: Int32) -> SystemCall.Outcome<Int> {
        SystemCall.retried {
            Int(accept4(listener, nil, nil, Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)))
        }
    }
}

/// The system calls of the loop and of the HTTP server, each made together with reading its `errno`.
///
/// No code may run between a call and the reading of `errno`, not even a release. Hence one function makes the call, and is
/// never inlined into code that the compiler could reorder around it.
package enum SystemCall {
    /// The result of a call: its value, or the error number.
    package enum Outcome<Value: Sendable>: Sendable {
        case done(Value)
        case failed(Int32)
    }

    /// Makes a call, and repeats it while a signal interrupts it.
    @inline(never)
    package static func retried(_ call: () -> Int) -> Outcome<Int> {
        while true {
            let value = call()
            if value >= 0 { return .done(value) }
            let number = errno
            if number != EINTR { return .failed(number) }
        }
    }

    package static func message(_ number: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: 128)
        return buffer.withUnsafeMutableBufferPointer { room in
            // Swift does not see the GNU form of strerror_r; this is the POSIX one, which is thread-safe.
            guard let text = room.baseAddress, strerror_r(number, text, room.count) == 0
            else { return "error \(number)" }
            return String(cString: text)
        }
    }
}
