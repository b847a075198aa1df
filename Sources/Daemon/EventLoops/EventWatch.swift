import CEvent
import Glibc

/// The operations that a descriptor is ready for, or is watched for.
package struct ReadyEvents: OptionSet, Sendable {
    package let rawValue: Int16

    package init(rawValue: Int16) { self.rawValue = rawValue }

    package static let read = ReadyEvents(rawValue: Int16(EV_READ))
    package static let write = ReadyEvents(rawValue: Int16(EV_WRITE))
}

/// An event that a loop waits for, with its callback; dropping it ends the wait; used on the loop's thread only.
package class LoopEvent {
    fileprivate let loop: EventLoop
    fileprivate private(set) var event: OpaquePointer?
    private let happened: (ReadyEvents) -> Void

    /// - Parameter number: A descriptor or a signal; -1 for a timer.
    fileprivate init(_ loop: EventLoop, _ number: Int32, flags: Int16, _ happened: @escaping (ReadyEvents) -> Void) {
        loop.proveOwnership()
        (self.loop, self.happened) = (loop, happened)
        // libevent keeps an unowned pointer to this object, so deinit frees the event first.
        event = event_new(
            loop.base,
            number,
            flags,
            { _, events, context in
                Unmanaged<LoopEvent>.fromOpaque(context!).takeUnretainedValue().happened(ReadyEvents(rawValue: events))
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        precondition(event != nil, "out of memory for an event")
    }

    deinit {
        loop.proveOwnership()
        event_free(event)
    }
}

/// A descriptor watched by a loop.
///
/// The watch does not own the descriptor, which must be closed only after the watch is gone or disabled.
package final class EventWatch: LoopEvent {
    init(loop: EventLoop, descriptor: Int32, events: ReadyEvents, _ ready: @escaping (ReadyEvents) -> Void) {
        super.init(loop, descriptor, flags: events.rawValue | Int16(EV_PERSIST), ready)
    }

    package func enable() {
        loop.proveOwnership()
        event_add(event, nil)
    }

    package func disable() {
        loop.proveOwnership()
        event_del(event)
    }
}

/// A timer on a loop; dropping it cancels it.
package final class EventTimer: LoopEvent {
    /// Makes a timer that is not armed yet.
    package init(loop: EventLoop, isRepeating: Bool = false, _ work: @escaping () -> Void) {
        super.init(loop, -1, flags: isRepeating ? Int16(EV_PERSIST) : 0) { _ in work() }
    }

    /// Arms the timer; replaces an earlier delay.
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
}

/// A signal delivered as ordinary loop code; dropping it restores the signal's former action.
package final class EventSignal: LoopEvent {
    init(loop: EventLoop, number: Int32, _ handler: @escaping () -> Void) {
        super.init(loop, number, flags: Int16(EV_SIGNAL | EV_PERSIST)) { _ in handler() }
        event_add(event, nil)
    }
}

extension timeval {
    /// The duration in whole microseconds, at least zero.
    init(_ duration: Duration) {
        let (seconds, attoseconds) = max(duration, .zero).components
        self.init(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
    }
}
