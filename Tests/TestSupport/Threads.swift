import Glibc

/// Runs `body` on a thread of its own.
package func startThread(_ body: @escaping @Sendable () -> Void) {
    final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    // Taken back by the thread's first statement.
    let box = Unmanaged.passRetained(Box(body)).toOpaque()
    let code = pthread_create(
        &thread,
        nil,
        {
            Unmanaged<Box>.fromOpaque($0!).takeRetainedValue().body(); return nil
        },
        box
    )
    precondition(code == 0, "no thread could be started: \(code)")
    pthread_detach(thread)
}

/// Waits for a duration; only where time itself is what the scenario is about.
package func pause(_ duration: Duration) {
    var wait = timespec()
    wait.add(duration)
    var rest = timespec()
    while nanosleep(&wait, &rest) != 0 && errno == EINTR { wait = rest }
}

/// Asks again and again until the condition holds; for states of the daemon that announce themselves nowhere.
package func eventually(within limit: Duration = .seconds(120), _ condition: () throws -> Bool) rethrows -> Bool {
    let clock = ContinuousClock()
    let end = clock.now + limit
    while true {
        if try condition() { return true }
        guard clock.now < end else { return false }
        pause(.milliseconds(20))
    }
}

/// The same in a test that is `async`, without holding one of the few threads that all tasks share: what it waits for may need one.
///
/// The limit counts the waits, which last longer where those threads are busy.
package func eventually(within limit: Duration = .seconds(120), _ condition: () throws -> Bool) async rethrows -> Bool {
    let wait = Duration.milliseconds(20)
    for _ in 0..<max(1, Int(limit / wait)) {
        if try condition() { return true }
        try? await Task.sleep(for: wait)
    }
    return try condition()
}

extension timespec {
    mutating func add(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        tv_sec += Int(seconds)
        tv_nsec += Int(attoseconds / 1_000_000_000)
        if tv_nsec >= 1_000_000_000 {
            tv_sec += 1
            tv_nsec -= 1_000_000_000
        }
    }
}
