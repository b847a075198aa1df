/// A door that threads wait before until the test opens it.
package final class Gate: Sendable {
    private let isOpen = Monitor(false)

    package init() {}

    /// Lets everyone through, now and later.
    package func open() { isOpen.withLock { $0 = true } }

    package var isOpenNow: Bool { isOpen.current }

    /// Waits until the gate is open; false when it stayed shut for `limit`, which is longer than any test waits for what it
    /// wants to see before it opens the gate.
    @discardableResult
    package func wait(_ limit: Duration = .seconds(600)) -> Bool { isOpen.wait(limit) { $0 } }

    /// Waits without blocking the thread of the task that asks.
    package func waitAsync() async {
        await withCheckedContinuation { continuation in
            startThread {
                self.wait()
                continuation.resume()
            }
        }
    }
}
