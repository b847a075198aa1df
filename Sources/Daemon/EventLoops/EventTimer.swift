import CEvent
import Glibc

/// A timer on a loop; dropping it cancels it.
///
/// The loop's thread only.
package final class EventTimer {
    private let loop: EventLoop
    private let work: () -> Void
    private let isRepeating: Bool
    private var event: OpaquePointer?

    /// A timer that is not armed yet.
    package init(loop: EventLoop, isRepeating: Bool = false, _ work: @escaping () -> Void) {
        loop.proveOwnership()
        self.loop = loop
        self.work = work
        self.isRepeating = isRepeating
        // libevent points back at us without owning us: deinit takes the event away first.
        event = event_new(
            loop.base,
            -1,
            isRepeating ? Int16(EV_PERSIST) : 0,
            { _, _, context in
                EventTimer.from(context).fired()
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        precondition(event != nil, "out of memory for a timer")
    }

    deinit {
        loop.proveOwnership()
        event_free(event)
    }

    /// Arms the timer, anew if it was armed.
    package func schedule(after delay: Duration) {
        loop.proveOwnership()
        var interval = timeval(delay)
        event_add(event, &interval)
    }

    /// Disarms the timer; it may be armed again.
    package func cancel() {
        loop.proveOwnership()
        event_del(event)
    }

    package var isScheduled: Bool { event_pending(event, Int16(EV_TIMEOUT), nil) != 0 }

    private func fired() {
        work()
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> EventTimer {
        Unmanaged<EventTimer>.fromOpaque(context!).takeUnretainedValue()
    }
}

extension timeval {
    /// The duration in whole microseconds, none of it negative.
    init(_ duration: Duration) {
        let (seconds, attoseconds) = max(duration, .zero).components
        self.init(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
    }
}
