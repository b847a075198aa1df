import Foundation

/// How long to wait before the next attempt: longer each time, up to five seconds.
struct ReconnectPause {
    private var next: Double = 0.05

    mutating func sleep() {
        // Machines that lost the server together do not come back together.
        Thread.sleep(forTimeInterval: next * Double.random(in: 0.5...1))
        next = min(next * 2, 5)
    }
}
