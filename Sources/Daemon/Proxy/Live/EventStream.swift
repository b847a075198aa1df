package import EventLoops
package import HTTPSemantics
package import HTTPServer

/// One client's stream of server-sent events, whatever they are about: it bounds what waits for the client, shows that the
/// connection is alive, and ends once.
///
/// It belongs to the loop that it is made on.
package final class EventStream {
    /// How long a client may read nothing and still count as merely busy, in ns.
    private static let stuckAfter: UInt64 = 5_000_000_000

    private let reply: Reply
    private let loop: EventLoop
    private let window: Int
    private(set) var isOpen = false
    /// Whether more waits for the client than the window, and not half of that has been read since.
    package private(set) var isResting = false
    private(set) var isOver = false
    /// Bytes given to the connection so far, and when the last ones were, in ns of the loop's clock.
    private var written: (bytes: Int, time: UInt64) = (0, 0)
    /// How much the client had read when it was found to be behind, since when, and the bytes that have come since then.
    private var stall: (read: Int, since: UInt64, missed: Int)?
    private var drained: () -> Void = {}
    private var over: () -> Void = {}

    /// - Parameter window: the number of waiting bytes from which the client counts as behind.
    package init(_ reply: Reply, loop: EventLoop, window: Int) {
        (self.reply, self.loop, self.window) = (reply, loop, window)
    }

    /// Sets what to do when a client that was behind has read, and what to do once when the stream is over.
    package func watch(drained: @escaping () -> Void, over: @escaping () -> Void) {
        (self.drained, self.over) = (drained, over)
        let stream = LoopReference(self, on: loop)
        reply.onDisconnect { stream.enqueue { $0.close() } }
    }

    /// Begins the response.
    ///
    /// - Parameter retry: when a client that loses its connection should come back; nil to leave that to it.
    package func open(_ fields: Fields, retry: Duration? = nil) {
        isOpen = true
        reply.start(status: 200, fields: fields, framing: .chunked)
        if let retry { write(EventStreamText.retry(after: Int(retry.nanoseconds / 1_000_000))) }
    }

    /// Sends bytes; the owner waits while the stream is resting, or counts what the client misses.
    package func write(_ bytes: [UInt8]) {
        guard !isOver else { return }
        written = (written.bytes + bytes.count, loop.now)
        reply.write(bytes)
        guard reply.backlog > window, !isResting else { return }
        isResting = true
        let stream = LoopReference(self, on: loop)
        reply.onDrain(below: window / 2) {
            stream.enqueue {
                $0.isResting = false
                if !$0.isOver { $0.drained() }
            }
        }
    }

    var isRead: Bool { reply.backlog == 0 }

    /// Sends an empty comment after a silence, which detects a client that is gone.
    package func beat(after silence: Duration = .zero) {
        guard isOpen, isRead, loop.now >= written.time + silence.nanoseconds else { return }
        write(EventStreamText.heartbeat)
    }

    /// Whether the client has read nothing for too long; asked each time when it should have.
    ///
    /// - Parameters:
    ///   - isBehind: whether anything waits that it should have read.
    ///   - missed: bytes that it cannot be sent now.
    ///   - limit: as many must be missed before it counts as too long.
    package func isStuck(isBehind: Bool, missed: Int = 0, limit: Int = 0) -> Bool {
        guard isBehind else {
            stall = nil
            return false
        }
        let read = written.bytes - reply.backlog
        guard let before = stall, before.read == read else {
            stall = (read, loop.now, 0)
            return false
        }
        stall?.missed += missed
        return before.missed + missed >= limit && loop.now >= before.since + Self.stuckAfter
    }

    // MARK: The end

    /// Ends the stream after what was sent.
    package func finish() {
        guard !isOver else { return }
        if isOpen { reply.finish() } else { reply.refuse(.stopping) }
        close()
    }

    /// Cuts the connection of a client that does not read.
    package func cutOff() {
        guard !isOver else { return }
        reply.abort()
        close()
    }

    private func close() {
        guard !isOver else { return }
        isOver = true
        drained = {}
        exchange(&over, with: {})()
    }
}

/// The framing of an event stream, as in the HTML standard (§9.2.5).
package enum EventStreamText {
    package static let mediaType = "text/event-stream"

    static func head(_ fields: Fields) -> Fields {
        let own: Fields = ["Content-Type": mediaType, "Cache-Control": "no-store"]
        return Fields(own.lines + fields.lines)
    }

    /// A comment, invisible to the client's code, which shows both sides that the connection is alive.
    static let heartbeat = Array(":\n\n".utf8)

    /// Frames one event; its data must not contain line ends.
    package static func event(_ name: String, id: Int64, data: [UInt8]) -> [UInt8] {
        Array("id: \(id)\nevent: \(name)\ndata: ".utf8) + data + "\n\n".utf8
    }

    /// Sets the id from which the client resumes after a break; without data it is not an event (§9.2.6).
    package static func position(_ id: Int64) -> [UInt8] { Array("id: \(id)\n\n".utf8) }

    /// Sets the delay in milliseconds before the client reconnects.
    static func retry(after milliseconds: Int) -> [UInt8] { Array("retry: \(milliseconds)\n\n".utf8) }
}
