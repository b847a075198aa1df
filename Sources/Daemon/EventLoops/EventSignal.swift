import CEvent

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
