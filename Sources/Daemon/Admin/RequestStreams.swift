package import EventLoops
import HTTPSemantics
import HTTPServer
package import Proxy
import Synchronization

/// All open streams of `/requests`.
///
/// It lives on the admin loop. A few times a second it reads new requests from the `RequestLog`, and sends them to all streams.
/// Nothing is buffered for a client that does not read: it misses what the log has dropped, and is sent the number.
package actor RequestStreams {
    nonisolated let loop: EventLoop
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }

    private static let heartbeat: Duration = .seconds(15)
    /// How long new requests are collected.
    private static let pause: Duration = .milliseconds(50)
    private let log: RequestLog
    private var streams: [Int: Stream] = [:]
    private var lastNumber = 0
    private var listening: Int?
    private var isClosed = false
    private var heartbeatTimer: EventTimer?
    private var pauseTimer: EventTimer?
    /// Whether requests were noted that the loop has not yet read.
    private nonisolated let isPending = Atomic(false)

    private struct Stream {
        let reply: Reply
        /// The number of the last request sent.
        var position: Int64
        var client = EventStreamClient()
    }

    package init(_ log: RequestLog, loop: EventLoop) {
        self.log = log
        self.loop = loop
    }

    private nonisolated func enqueue(_ work: @escaping @Sendable (isolated RequestStreams) -> Void) {
        loop.enqueue { [weak self] in self?.assumeIsolated { work($0) } }
    }

    // MARK: Opening and closing

    /// Responds with a stream that begins after a number, or now; any thread.
    nonisolated func open(after id: Int64?, _ reply: Reply, fields: Fields) {
        enqueue { $0.begin(after: id, reply, fields) }
    }

    private func begin(after id: Int64?, _ reply: Reply, _ fields: Fields) {
        guard !isClosed else { return reply.respond(ProblemDocument(status: 503, detail: "the daemon is stopping")) }
        if listening == nil { listening = log.listen { [weak self] _ in self?.noted() } }
        let last = log.lastID
        let position = id.map { $0 > last ? 0 : $0 } ?? last
        reply.start(status: 200, fields: fields, framing: .chunked)
        reply.write(EventStreamText.retry(after: 1_000) + EventStreamText.position(position))
        lastNumber += 1
        let number = lastNumber
        streams[number] = Stream(reply: reply, position: position)
        reply.onDisconnect { [weak self] in self?.enqueue { $0.remove(number) } }
        if heartbeatTimer == nil {
            heartbeatTimer = loop.every(Self.heartbeat) { [unowned self] in self.assumeIsolated { $0.beat() } }
        }
        send()
    }

    private func remove(_ number: Int) {
        streams[number] = nil
        guard streams.isEmpty, let listening else { return }
        log.stopListening(listening)
        self.listening = nil
    }

    /// Ends all streams in order, and accepts no more; any thread.
    package nonisolated func close() {
        enqueue { $0.end() }
    }

    private func end() {
        isClosed = true
        send()
        for (number, stream) in streams {
            stream.reply.finish()
            remove(number)
        }
    }

    // MARK: Sending

    /// Any thread.
    private nonisolated func noted() {
        guard !isPending.exchange(true, ordering: .acquiringAndReleasing) else { return }
        enqueue { streams in
            streams.pauseTimer = streams.loop.after(Self.pause) { [unowned streams] in
                streams.assumeIsolated { streams in
                    streams.isPending.store(false, ordering: .releasing)
                    streams.send()
                }
            }
        }
    }

    private func send() {
        guard let first = streams.values.map(\.position).min() else { return }
        let (requests, last) = log.requests(after: first)
        // Made once for all streams.
        let events = requests.map { (id: $0.id, bytes: RequestsResponse.Request($0).event) }
        for number in streams.keys {
            guard var stream = streams[number], stream.position < last, stream.reply.backlog <= EventStreamClient.window
            else {
                continue
            }
            var text: [UInt8] = []
            let oldest = events.first?.id ?? last + 1
            if stream.position + 1 < oldest {
                let missed = RequestsMissed(missed: oldest - stream.position - 1)
                let data = AdminJSON.encode(missed)
                text += EventStreamText.event(RequestsMissed.eventName, id: oldest - 1, data: data)
            }
            for event in events where event.id > stream.position { text += event.bytes }
            stream.position = last
            stream.reply.write(text)
            streams[number] = stream
        }
    }

    private func beat() {
        for number in streams.keys {
            guard var stream = streams[number] else { continue }
            let backlog = stream.reply.backlog
            let isBehind = backlog > EventStreamClient.window
            guard stream.client.makesProgress(isBehind: isBehind, backlog: backlog) else {
                stream.reply.abort()
                remove(number)
                continue
            }
            if !isBehind { stream.reply.write(EventStreamText.heartbeat) }
            streams[number] = stream
        }
        send()
    }
}
