import HTTPSemantics
import HTTPServer
import Proxy
import Store
import Synchronization

/// The events of one clean: `progress` once a second, with what has gone so far, then `done` or `error`.
///
/// Any thread. A client who is told something every second knows a long clean from a hung daemon, and one who leaves stops
/// it: what has gone by then stays gone.
final class CleanEvents: Sendable {
    private struct State {
        var number: Int64 = 0
        var next = ContinuousClock.now + CleanEvents.pace
        var isLeft = false
    }

    private static let pace: Duration = .seconds(1)

    private let reply: Reply
    private let state = Mutex(State())

    init(_ reply: Reply) {
        self.reply = reply
        reply.onDisconnect { [weak self] in self?.state.withLock { $0.isLeft = true } }
    }

    /// Tells how far the clean is, if it is time for that; whether anybody still wants it to go on.
    func tell(_ count: StoreCount) -> Bool {
        let (isDue, isLeft) = state.withLock { state in
            let isDue = state.next <= .now
            if isDue { state.next = .now + Self.pace }
            return (isDue, state.isLeft)
        }
        if isDue, !isLeft { write("progress", JSONText.object(count.members).bytes) }
        return !isLeft
    }

    /// Tells how it ended.
    func end(_ name: String, _ data: [UInt8]) {
        write(name, data)
        reply.finish()
    }

    private func write(_ name: String, _ data: [UInt8]) {
        let number = state.withLock { state in
            state.number += 1
            return state.number
        }
        reply.write(EventStreamText.event(name, id: number, data: data.onOneLine))
    }
}
