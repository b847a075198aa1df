import Glibc

/// Where any thread leaves work for the one thread that writes.
///
/// Guarded by a mutex of its own, held for a few instructions; the writer
/// waits on a condition over the monotonic clock, which setting the time does
/// not disturb.
final class Mailbox<Element: Sendable>: @unchecked Sendable {
    // Both live as long as the mailbox, at addresses that do not move.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    // All below is touched with the mutex held only: hence @unchecked.
    private var waiting: [Element] = []
    /// What need not wait its turn.
    private var express: [Element] = []
    private var isUrgent = false
    private var isFinished = false

    init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Adds one, ahead of all that is not express if it is; false when nothing is taken any more.
    func post(_ element: Element, urgent: Bool, express isExpress: Bool = false) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard !isFinished else { return false }
        if isExpress { express.append(element) } else { waiting.append(element) }
        isUrgent = isUrgent || urgent
        if waiting.count + express.count == 1 || urgent { pthread_cond_signal(condition) }
        return true
    }

    /// What express has come since, without waiting.
    func takeExpress() -> [Element] {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        defer { express = [] }
        return express
    }

    /// Takes nothing more; what is waiting is still handed out.
    func finish() {
        pthread_mutex_lock(mutex)
        isFinished = true
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    /// What is waiting, once the first of it has waited `delay` or something urgent came.
    ///
    /// Empty when nothing came within `idle` microseconds; nil when the
    /// mailbox is finished and empty.
    func take(delay: Int64, idle: Int64) -> [Element]? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        wait(until: Self.deadline(idle)) { !waiting.isEmpty || !express.isEmpty || isFinished }
        if waiting.isEmpty, express.isEmpty { return isFinished ? nil : [] }
        wait(until: Self.deadline(delay)) { isUrgent || isFinished }
        defer {
            (waiting, express) = ([], [])
            isUrgent = false
        }
        return express + waiting
    }

    private func wait(until deadline: timespec, _ isDone: () -> Bool) {
        var deadline = deadline
        while !isDone() {
            if pthread_cond_timedwait(condition, mutex, &deadline) == ETIMEDOUT { return }
        }
    }

    private static func deadline(_ microseconds: Int64) -> timespec {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let nanoseconds = Int64(time.tv_nsec) + microseconds % 1_000_000 * 1000
        time.tv_sec += Int(microseconds / 1_000_000 + nanoseconds / 1_000_000_000)
        time.tv_nsec = Int(nanoseconds % 1_000_000_000)
        return time
    }
}
