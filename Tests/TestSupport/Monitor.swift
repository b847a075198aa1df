import Glibc

/// A value shared by threads, which can wait for it to become something.
///
/// The tests script real threads against a real process, so they block on purpose; see ``ScriptThreads`` for where.
package final class Monitor<Value: Sendable>: @unchecked Sendable {  // `value` is guarded by `mutex`
    private var value: Value
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init(_ value: Value) {
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
    package var current: Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return value
    }

    /// Reads or changes the value and wakes whoever waits for it.
    package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer {
            pthread_cond_broadcast(changed)
            pthread_mutex_unlock(mutex)
        }
        return try body(&value)
    }

    /// Waits until the condition holds; false when it still does not after `limit`.
    @discardableResult
    package func wait(_ limit: Duration = .seconds(120), until condition: (Value) -> Bool) -> Bool {
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

extension Monitor where Value == Int {
    /// Adds one and gives the number before.
    package func next() -> Int {
        withLock {
            $0 += 1
            return $0 - 1
        }
    }
}
