import EventLoops
import HTTPSemantics
import HTTPServer
import Proxy
import Store
import Synchronization

/// A client of one of the streams of an admin route.
protocol StreamClient: AnyObject {
    var stream: EventStream { get }
    /// Shows it from time to time that the connection is alive.
    func beat()
}

/// The open streams of an admin route; the admin loop only.
final class OpenStreams<Client: StreamClient> {
    private(set) var clients: [Client] = []
    private(set) var isClosed = false
    private let loop: EventLoop
    private let metrics: Metrics?
    private var timer: EventTimer?

    init(loop: EventLoop, _ metrics: Metrics? = nil) { (self.loop, self.metrics) = (loop, metrics) }

    var ready: [Client] { clients.filter { !$0.stream.isResting } }

    /// The stream for a reply; refuses, and returns nil, when no more are accepted.
    func stream(for reply: Reply) -> EventStream? {
        guard !isClosed else {
            reply.respond(ProblemDocument(status: 503, detail: "the daemon is stopping"))
            return nil
        }
        return EventStream(reply, loop: loop, window: 256 << 10)
    }

    /// Opens a stream; `send` is called at each heartbeat, and when a client that was behind has read.
    func add(
        _ client: Client,
        _ fields: Fields,
        _ opening: [UInt8],
        send: @escaping @Sendable () -> Void,
        left: @escaping @Sendable () -> Void
    ) {
        clients.append(client)
        metrics?.changeStreams.set(clients.count)
        client.stream.open(fields, retry: .seconds(1))
        client.stream.write(opening)
        client.stream.watch(drained: send) { [unowned self, unowned client] in
            clients.removeAll { $0 === client }
            metrics?.changeStreams.set(clients.count)
            if clients.isEmpty { timer = nil }
            left()
        }
        guard timer == nil else { return }
        timer = loop.every(.seconds(15)) { [unowned self] in
            for client in clients {
                // Two heartbeats without reading are too much.
                if client.stream.isStuck(isBehind: client.stream.isResting) { cutOff(client) }
                if !client.stream.isResting { client.beat() }
            }
            send()
        }
    }

    func cutOff(_ client: Client) {
        metrics?.changeStreamsCut.add()
        client.stream.cutOff()
    }

    /// Ends all streams in order, and accepts no more.
    func close() {
        isClosed = true
        for client in clients { client.stream.finish() }
    }
}
