package import Settings
import Synchronization

/// Whether the daemon asks its upstreams.
///
/// `online`: ask the upstream if a response is unknown or stale; stale responses replace failed ones. `offline`: never ask; serve
/// stored responses, fresh or stale, and explain missing ones.
package typealias Mode = Configuration.Mode

/// The current mode: read by every request, changed by the operator; any thread; reading costs one relaxed load.
package final class ModeSwitch: Sendable {
    private let isOffline: Atomic<Bool>
    private let listeners = Mutex<[@Sendable (Mode) -> Void]>([])

    package init(_ mode: Mode) { isOffline = Atomic(mode == .offline) }

    package var current: Mode { isOffline.load(ordering: .relaxed) ? .offline : .online }

    /// Changes the mode and notifies the listeners, on the calling thread; returns false if it was the mode already.
    @discardableResult
    package func set(_ mode: Mode) -> Bool {
        // The lock keeps two concurrent changes from being reported in the wrong order.
        listeners.withLock { listeners in
            let wasOffline = isOffline.exchange(mode == .offline, ordering: .relaxed)
            guard wasOffline != (mode == .offline) else { return false }
            for listener in listeners { listener(mode) }
            return true
        }
    }

    /// Calls `listener` after each change from now on; it must be quick and must not change the mode itself.
    func onChange(_ listener: @escaping @Sendable (Mode) -> Void) {
        listeners.withLock { $0.append(listener) }
    }
}
