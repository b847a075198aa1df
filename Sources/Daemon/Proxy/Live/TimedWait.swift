import EventLoops

/// Somebody who waits for something, but not for ever.
///
/// The upstream loop only.
final class TimedWait {
    private var continuation: CheckedContinuation<Bool, Never>?
    var timer: EventTimer?

    init(_ continuation: CheckedContinuation<Bool, Never>) {
        self.continuation = continuation
    }

    func end(_ hasHappened: Bool) {
        timer = nil
        continuation?.resume(returning: hasHappened)
        continuation = nil
    }
}
