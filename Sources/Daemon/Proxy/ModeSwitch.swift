package import Settings
import Synchronization

/// Whether the daemon asks its upstreams.
///
/// `auto`: ask the upstream if a response is unknown or stale, unless it cannot be reached (`Circuit`); stale responses replace
/// failed ones. `online`: the same, and send every request all the same. `offline`: never ask; serve stored responses, fresh or
/// stale, and explain missing ones.
package typealias Mode = Configuration.Mode

/// The current mode: read by every request, changed by the operator; any thread; reading costs one relaxed load.
package final class ModeSwitch: Sendable {
    /// The mode's place among all.
    private let index: Atomic<Int>
    private let listeners = Mutex<[@Sendable (Mode) -> Void]>([])

    package init(_ mode: Mode) { index = Atomic(Self.index(of: mode)) }

    package var current: Mode { Mode.allCases[index.load(ordering: .relaxed)] }

    private static func index(of mode: Mode) -> Int { Mode.allCases.firstIndex(of: mode) ?? 0 }

    /// Changes the mode and notifies the listeners, on the calling thread; returns false if it was the mode already.
    @discardableResult
    package func set(_ mode: Mode) -> Bool {
        // The lock keeps two concurrent changes from being reported in the wrong order.
        listeners.withLock { listeners in
            let index = Self.index(of: mode)
            guard self.index.exchange(index, ordering: .relaxed) != index else { return false }
            for listener in listeners { listener(mode) }
            return true
        }
    }

    /// Calls `listener` after each change from now on; it must be quick and must not change the mode itself.
    func onChange(_ listener: @escaping @Sendable (Mode) -> Void) { listeners.withLock { $0.append(listener) } }
}
