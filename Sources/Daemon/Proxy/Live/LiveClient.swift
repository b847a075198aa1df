import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer

/// One client's stream of a document: what is waiting to be sent.
///
/// It is written no faster than the client reads. Newer states replace waiting ones, so that at most one state and one notice
/// wait, however many come. A client that reads nothing is cut off. The upstream loop only.
final class LiveClient {
    let note: RequestNote?
    private let stream: EventStream
    private let metrics: LiveMetrics
    /// The number of bytes that a client may miss while it reads nothing.
    private let window: Int
    /// The message being sent; while it is retained, its encoded body counts.
    private var current: (message: LiveMessage, rest: ArraySlice<[UInt8]>)?
    private var waitingState: LiveMessage?
    private var waitingNotice: LiveMessage?
    private var isEnding = false

    /// - Parameter window: the maximum number of bytes waiting for the client.
    init(_ reply: Reply, note: RequestNote?, loop: EventLoop, window: Int, metrics: LiveMetrics) {
        (self.note, self.metrics, self.window) = (note, metrics, window / 2)
        stream = EventStream(reply, loop: loop, window: window / 2)
        metrics.streams.add()
    }

    /// Sets what to do once when the stream is over, and watches for disconnection.
    func whenOver(_ work: @escaping () -> Void) {
        stream.watch { [unowned self] in
            write()
        } over: { [unowned self] in
            (current, waitingState, waitingNotice) = (nil, nil, nil)
            metrics.streams.subtract()
            work()
        }
    }

    var isOpen: Bool { stream.isOpen }

    func open(_ fields: Fields, retry: Duration?) { stream.open(EventStreamText.head(fields), retry: retry) }

    // MARK: Events

    /// Sends a message, unless the client has missed too much: then its stream ends.
    ///
    /// - Parameter isState: whether it is a state of the document, which replaces all that still waits; otherwise it leaves the
    ///   state as it is, and replaces only what did so, too.
    func send(_ message: LiveMessage, isState: Bool) {
        guard !stream.isOver else { return }
        if stream.isStuck(isBehind: isBehind, missed: message.count, limit: window) { return cutOff() }
        if isState { waitingState = message }
        waitingNotice = isState ? nil : message
        write()
    }

    /// Whether something waits for the client to read.
    var isBehind: Bool { current != nil }

    private func write() {
        while !stream.isOver, !stream.isResting {
            if current == nil {
                guard let message = waitingState ?? waitingNotice else { break }
                if waitingState == nil { waitingNotice = nil }
                waitingState = nil
                current = (message, message.pieces[...])
                metrics.events.add()
            }
            if let piece = current?.rest.popFirst() { stream.write(piece) } else { current = nil }
        }
        if isEnding, !stream.isResting { stream.finish() }
    }

    func beat(_ heartbeat: Duration) { if !isBehind { stream.beat(after: heartbeat) } }

    // MARK: The end

    var isUpToDate: Bool { !isBehind && stream.isRead }

    func end() {
        isEnding = true
        write()
    }

    func cutOff() {
        guard !stream.isOver else { return }
        metrics.cutOff.add()
        stream.cutOff()
    }
}

extension Reply {
    /// Keeps the client of a finished stream from connecting again (HTML, §9.2.3).
    func endEvents(_ request: ProxyRequest) {
        let status = CacheStatus.refused("live-over")
        var fields: Fields = ["Cache-Control": "no-store", "Cache-Status": status.text]
        note?.recordOutcome(.bypass)
        note?.served(as: status)
        fields.vary(by: request.upstream.variesForAll)
        request.upstream.addCORS(to: &fields, for: request.message.fields)
        respond(status: 204, fields: fields)
    }
}
