import EventLoops
import HTTPSemantics
import HTTPServer
import Proxy
import Store
import Synchronization

/// All open streams of `/requests`.
///
/// It lives on the admin loop. New requests in the `RequestLog` are collected for a moment, then sent to all streams.
/// Nothing is buffered for a client that does not read: it misses what the log has dropped, and is sent the number.
package actor RequestStreams {
    nonisolated let loop: EventLoop
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }

    private static let pause: Duration = .milliseconds(50)
    private let log: RequestLog
    private let streams: OpenStreams<RequestStream>
    /// Keeps hits noted while there are streams.
    private var listening: Int?
    private var pauseTimer: EventTimer?
    /// Whether requests were noted that the loop has not yet read.
    private nonisolated let isPending = Atomic(false)

    init(_ log: RequestLog, loop: EventLoop) {
        (self.log, self.loop) = (log, loop)
        streams = OpenStreams(loop: loop)
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
        guard let stream = streams.stream(for: reply) else { return }
        if listening == nil { listening = log.listen { [weak self] _ in self?.noted() } }
        let last = log.lastID
        let position = id.map { $0 > last ? 0 : $0 } ?? last
        let client = RequestStream(stream, from: position)
        let left: @Sendable () -> Void = { [weak self] in self?.enqueue { $0.stopListening() } }
        let opening = EventStreamText.position(position)
        streams.add(client, fields, opening, send: { [weak self] in self?.enqueue { $0.send() } }, left: left)
        send()
    }

    private func stopListening() {
        guard streams.clients.isEmpty, let listening else { return }
        log.stopListening(listening)
        self.listening = nil
    }

    /// Ends all streams in order, and accepts no more; any thread.
    package nonisolated func close() {
        enqueue { streams in
            streams.send()
            streams.streams.close()
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
        let newest = log.lastID
        let ready = streams.ready.filter { $0.position < newest }
        guard let first = ready.map(\.position).min() else { return }
        let (requests, last) = log.requests(after: first)
        // Made once for all streams.
        let events = requests.map { (id: $0.id, bytes: RequestsResponse.Request($0).event) }
        for client in ready {
            var text: [UInt8] = []
            let oldest = events.first?.id ?? last + 1
            if client.position + 1 < oldest {
                let missed = AdminJSON.encode(RequestsMissed(missed: oldest - client.position - 1))
                text += EventStreamText.event(RequestsMissed.eventName, id: oldest - 1, data: missed)
            }
            for event in events where event.id > client.position { text += event.bytes }
            client.stream.write(text)
            client.position = last
        }
    }
}

/// One client's stream of requests; the admin loop only.
private final class RequestStream: StreamClient {
    let stream: EventStream
    var position: Int64

    init(_ stream: EventStream, from position: Int64) { (self.stream, self.position) = (stream, position) }

    func beat() { stream.beat() }
}
