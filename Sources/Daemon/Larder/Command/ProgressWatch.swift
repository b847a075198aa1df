import Foundation

/// Shows how far something is on the terminal's progress line, from a thread of its own, until it is ended.
final class ProgressWatch: @unchecked Sendable {  // `ended` and `isShown` change under the lock
    private let line: @Sendable () -> String?
    private let lock = NSLock()
    private var ended = false
    private var isShown = false

    init(_ line: @escaping @Sendable () -> String?) {
        self.line = line
        Thread.detachNewThread { self.run() }
    }

    /// Shows after a second that the command still waits, and for how long at most; nil where no person sees it.
    static func waiting(atMost limit: String? = nil) -> ProgressWatch? {
        guard isatty(2) == 1 else { return nil }
        let begun = ContinuousClock.now
        return ProgressWatch {
            let seconds = (ContinuousClock.now - begun).components.seconds
            return seconds < 1 ? nil : "waiting for \(seconds) s" + (limit.map { ", \($0) at most" } ?? "")
        }
    }

    func end() {
        lock.withLock {
            if isShown { Terminal.progress("") }
            (ended, isShown) = (true, false)
        }
    }

    private func run() {
        while true {
            usleep(300_000)
            let text = line()
            let isOver = lock.withLock {
                if !ended, let text {
                    Terminal.progress(text)
                    isShown = true
                }
                return ended
            }
            if isOver { return }
        }
    }
}
