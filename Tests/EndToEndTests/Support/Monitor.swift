import Glibc

/// A value shared by threads, which can wait for it to become something.
///
/// The tests script real threads against a real process, so they block on purpose; see ``ScriptThreads`` for where.
final class Monitor<Value: Sendable>: @unchecked Sendable {  // `value` is guarded by `mutex`
    private var value: Value
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init(_ value: Value) {
        self.value = value
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(changed, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    /// The value now.
    var current: Value { withLock { $0 } }

    /// Reads or changes the value and wakes whoever waits for it.
    func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer {
            pthread_cond_broadcast(changed)
            pthread_mutex_unlock(mutex)
        }
        return try body(&value)
    }

    /// Waits until the condition holds; false when it still does not after `limit`.
    @discardableResult
    func wait(_ limit: Duration = .seconds(60), until condition: (Value) -> Bool) -> Bool {
        var deadline = timespec()
        clock_gettime(CLOCK_MONOTONIC, &deadline)
        deadline.add(limit)
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while !condition(value) {
            guard pthread_cond_timedwait(changed, mutex, &deadline) == 0 else { return condition(value) }
        }
        return true
    }
}

/// A door that threads wait before until the test opens it.
final class Gate: Sendable {
    private let isOpen = Monitor(false)

    /// Lets everyone through, now and later.
    func open() { isOpen.withLock { $0 = true } }

    /// Waits until the gate is open; false when it stayed shut for `limit`, which is longer than any test waits for what it
    /// wants to see before it opens the gate.
    @discardableResult
    func wait(_ limit: Duration = .seconds(600)) -> Bool { isOpen.wait(limit) { $0 } }
}

extension Monitor where Value == Int {
    /// Adds one and gives the number before.
    func next() -> Int {
        withLock {
            $0 += 1
            return $0 - 1
        }
    }
}

extension timespec {
    fileprivate mutating func add(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        tv_sec += Int(seconds)
        tv_nsec += Int(attoseconds / 1_000_000_000)
        if tv_nsec >= 1_000_000_000 {
            tv_sec += 1
            tv_nsec -= 1_000_000_000
        }
    }
}

/// Runs `body` on a thread of its own.
func startThread(_ body: @escaping @Sendable () -> Void) {
    final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    // Taken back by the thread's first statement.
    let box = Unmanaged.passRetained(Box(body)).toOpaque()
    let code = pthread_create(
        &thread,
        nil,
        {
            Unmanaged<Box>.fromOpaque($0!).takeRetainedValue().body(); return nil
        },
        box
    )
    precondition(code == 0, "no thread could be started: \(code)")
    pthread_detach(thread)
}

/// Waits for a duration; only where time itself is what the scenario is about.
func pause(_ duration: Duration) {
    var wait = timespec()
    wait.add(duration)
    var rest = timespec()
    while nanosleep(&wait, &rest) != 0 && errno == EINTR { wait = rest }
}

/// Asks again and again until the condition holds; for states of the daemon that announce themselves nowhere.
func eventually(within limit: Duration = .seconds(60), _ condition: () throws -> Bool) rethrows -> Bool {
    let clock = ContinuousClock()
    let end = clock.now + limit
    while true {
        if try condition() { return true }
        guard clock.now < end else { return false }
        pause(.milliseconds(20))
    }
}
