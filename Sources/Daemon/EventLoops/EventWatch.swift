import CEvent

/// What a descriptor is, or should be, ready for.
package struct ReadyEvents: OptionSet, Sendable {
    package let rawValue: Int16

    package init(rawValue: Int16) {
        self.rawValue = rawValue
    }

    package static let read = ReadyEvents(rawValue: Int16(EV_READ))
    package static let write = ReadyEvents(rawValue: Int16(EV_WRITE))
}

/// A descriptor being watched by a loop; dropping the watch ends it.
///
/// The loop's thread only.
///
/// The descriptor belongs to somebody else and has to be closed after the watch is gone or disabled.
package final class EventWatch {
    private let loop: EventLoop
    private let ready: (ReadyEvents) -> Void
    private var event: OpaquePointer?

    init(
        loop: EventLoop,
        descriptor: Int32,
        events: ReadyEvents,
        isPersistent: Bool,
        _ ready: @escaping (ReadyEvents) -> Void
    ) {
        loop.proveOwnership()
        self.loop = loop
        self.ready = ready
        let flags = events.rawValue | (isPersistent ? Int16(EV_PERSIST) : 0)
        // libevent points back at us without owning us: deinit takes the event away first.
        event = event_new(
            loop.base,
            descriptor,
            flags,
            { _, events, context in
                EventWatch.from(context).becameReady(events)
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        precondition(event != nil, "out of memory for a watch")
    }

    deinit {
        loop.proveOwnership()
        event_free(event)
    }

    /// Watches (again); for a watch that is not persistent, once more.
    package func enable() {
        loop.proveOwnership()
        event_add(event, nil)
    }

    /// Stops watching until `enable`.
    package func disable() {
        loop.proveOwnership()
        event_del(event)
    }

    private func becameReady(_ events: Int16) {
        ready(ReadyEvents(rawValue: events))
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> EventWatch {
        Unmanaged<EventWatch>.fromOpaque(context!).takeUnretainedValue()
    }
}

/// A signal delivered as ordinary loop code; dropping it gives the signal its former meaning back.
///
/// The loop's thread only.
package final class EventSignal {
    private let loop: EventLoop
    private let handler: () -> Void
    private var event: OpaquePointer?

    init(loop: EventLoop, number: Int32, _ handler: @escaping () -> Void) {
        loop.proveOwnership()
        self.loop = loop
        self.handler = handler
        // libevent points back at us without owning us: deinit takes the event away first.
        event = event_new(
            loop.base,
            number,
            Int16(EV_SIGNAL | EV_PERSIST),
            { _, _, context in
                EventSignal.from(context).arrived()
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        precondition(event != nil, "out of memory for a signal")
        event_add(event, nil)
    }

    deinit {
        loop.proveOwnership()
        event_free(event)
    }

    private func arrived() {
        handler()
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> EventSignal {
        Unmanaged<EventSignal>.fromOpaque(context!).takeUnretainedValue()
    }
}
