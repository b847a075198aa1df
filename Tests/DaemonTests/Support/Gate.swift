import Foundation

/// Something that a thread or task waits for.
final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func open() { semaphore.signal() }

    /// Blocks the calling thread, a script's or the test's.
    @discardableResult
    func wait(seconds: Int = 120) -> Bool {
        semaphore.wait(timeout: .now() + .seconds(seconds)) == .success
    }

    func waitAsync() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                wait()
                continuation.resume()
            }
        }
    }
}
