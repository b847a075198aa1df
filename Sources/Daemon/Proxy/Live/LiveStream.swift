import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer

/// A stream of events to one client, written no faster than the client reads.
///
/// The upstream loop only. Events that wait hold their bodies, which are shared, and nothing else.
final class LiveStream {
    private let reply: Reply
    private let loop: EventLoop
    /// Bytes that may wait for the client before the stream waits too.
    private let window: Int
    private var waiting: [LiveEvent] = []
    private var current: LiveEventWriter?
    private var isEnding = false
    private var isResting = false
    /// Whether the last byte is with the connection, or the client has left.
    private(set) var isOver = false
    private var over: () -> Void = {}

    init(_ reply: Reply, loop: EventLoop, window: Int) {
        self.reply = reply
        self.loop = loop
        self.window = window
    }

    /// Has this done once, when the stream is over.
    func whenOver(_ work: @escaping () -> Void) {
        over = work
    }

    /// Begins the response and watches for the client's leaving.
    ///
    /// - Parameter fields: what is added to those of every stream.
    func open(_ fields: Fields) {
        reply.startEvents(fields)
        let stream = LoopReference(self, on: loop)
        reply.onDisconnect { stream.enqueue { $0.close() } }
    }

    func send(_ event: LiveEvent) {
        guard !isOver, !isEnding else { return }
        waiting.append(event)
        write()
    }

    /// Ends the response after the events that were sent.
    func end() {
        guard !isOver else { return }
        isEnding = true
        write()
    }

    private func write() {
        while !isOver, !isResting {
            if current == nil {
                guard !waiting.isEmpty else { break }
                current = LiveEventWriter(waiting.removeFirst())
            }
            guard let bytes = current?.next() else {
                current = nil
                continue
            }
            reply.write(bytes)
            if reply.backlog > window { rest() }
        }
        guard isEnding, !isResting, !isOver else { return }
        reply.finish()
        close()
    }

    private func rest() {
        isResting = true
        let stream = LoopReference(self, on: loop)
        reply.onDrain(below: window / 2) {
            stream.enqueue {
                $0.isResting = false
                $0.write()
            }
        }
    }

    private func close() {
        guard !isOver else { return }
        isOver = true
        waiting = []
        current = nil
        let work = over
        over = {}
        work()
    }
}

extension Reply {
    /// Tells the client of a stream that has come to its end not to ask again (HTML, §9.2.3).
    func endEvents(_ request: ProxyRequest) {
        var fields = Fields()
        fields.append("Cache-Control", "no-store")
        fields.append("Cache-Status", "larder; detail=live-over")
        fields.vary(by: request.upstream.variesBy)
        request.upstream.addCORS(to: &fields, for: request.message.fields)
        respond(status: 204, fields: fields)
    }

    /// Begins a response of events.
    ///
    /// - Parameter fields: what is added to those of every stream.
    func startEvents(_ fields: Fields) {
        var all = Fields()
        all.append("Content-Type", "text/event-stream")
        all.append("Cache-Control", "no-store")
        all.lines += fields.lines
        start(status: 200, fields: all, framing: .chunked)
    }
}
