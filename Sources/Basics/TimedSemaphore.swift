import Glibc

/// A semaphore for threads that wait at most some time; setting the machine's clock does not affect that time.
///
/// A `DispatchSemaphore` on Linux waits until a time of the wall clock: if that is set back by an hour, an hour longer.
public final class TimedSemaphore: @unchecked Sendable {  // `count` is guarded by `mutex`
    private var count = 0
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let isSignalled = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    /// Creates one without signals.
    public init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(isSignalled, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(isSignalled)
        pthread_mutex_destroy(mutex)
        isSignalled.deallocate()
        mutex.deallocate()
    }

    /// Lets one waiting thread go on, or the next that waits; any thread.
    public func signal() {
        pthread_mutex_lock(mutex)
        count += 1
        pthread_mutex_unlock(mutex)
        pthread_cond_signal(isSignalled)
    }

    /// Waits for a signal; false if there was none in time.
    @discardableResult
    public func wait(for limit: Duration) -> Bool { wait(until: .now + limit) }

    /// Waits for a signal until a moment; false if there was none.
    public func wait(until deadline: ContinuousClock.Instant) -> Bool {
        var end = timespec()
        clock_gettime(CLOCK_MONOTONIC, &end)
        let (seconds, attoseconds) = max(.zero, deadline - .now).components
        end.tv_sec += Int(seconds)
        end.tv_nsec += Int(attoseconds / 1_000_000_000)
        if end.tv_nsec >= 1_000_000_000 { (end.tv_sec, end.tv_nsec) = (end.tv_sec + 1, end.tv_nsec - 1_000_000_000) }
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while count == 0 { guard pthread_cond_timedwait(isSignalled, mutex, &end) == 0 else { break } }
        guard count > 0 else { return false }
        count -= 1
        return true
    }
}
