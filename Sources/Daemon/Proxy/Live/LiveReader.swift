import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer
import Store

/// One client's stream: what it was sent, and what is waiting to be sent.
///
/// It is written no faster than the client reads. Newer states replace waiting ones, so that at most one state and one notice
/// wait, however many come. A client that reads nothing is cut off. The upstream loop only.
final class LiveReader {
    let note: RequestNote?
    private(set) var isOpen = false

    /// How long a client may read nothing and still count as merely busy, in ns.
    private static let patience: UInt64 = 5_000_000_000

    private let reply: Reply
    private let isOnce: Bool
    private let loop: EventLoop
    private let metrics: LiveMetrics
    /// The maximum number of bytes waiting for the client.
    private let window: Int
    /// The message being sent; while it is retained, its encoded body counts as held.
    private var current: (message: LiveMessage, rest: ArraySlice<[UInt8]>)?
    private var waitingState: LiveMessage?
    private var waitingNotice: LiveMessage?
    private var isResting = false
    /// Bytes given to the connection so far.
    private var written = 0
    /// Bytes that came while the client read nothing, the number that it had read before, and since when.
    private var missed: (bytes: Int, taken: Int, since: UInt64)?
    /// When something was last written, in ns of the loop's clock.
    private var lastWrite: UInt64 = 0
    private var isEnding = false
    private(set) var isOver = false
    private var over: () -> Void = {}

    init(
        _ reply: Reply,
        isOnce: Bool,
        note: RequestNote?,
        loop: EventLoop,
        window: Int,
        metrics: LiveMetrics
    ) {
        self.reply = reply
        self.note = note
        self.loop = loop
        self.window = window
        self.metrics = metrics
        self.isOnce = isOnce
        metrics.streams.add()
    }

    /// Sets what to do once when the stream is over, and watches for disconnection.
    func whenOver(_ work: @escaping () -> Void) {
        over = work
        let reader = LoopReference(self, on: loop)
        reply.onDisconnect { reader.enqueue { $0.close() } }
    }

    /// Begins the response.
    func open(_ fields: Fields, retry: Duration) {
        isOpen = true
        reply.startEvents(fields)
        guard !isOnce else { return }
        put(EventStreamText.retry(after: Int(retry.nanoseconds / 1_000_000)))
    }

    // MARK: Events

    /// Sends a state of the document, which replaces one that still waits.
    func send(state: LiveMessage) {
        guard !isOver, mayWait(state) else { return }
        (waitingState, waitingNotice) = (state, nil)
        write()
    }

    /// Sends an event that leaves the state as it is.
    func send(notice: LiveMessage) {
        guard !isOver, mayWait(notice) else { return }
        waitingNotice = notice
        write()
    }

    /// Whether something waits for the client to read.
    var isBehind: Bool { current != nil }

    /// Counts what the client misses; returns false, and ends the stream, if that is too much.
    private func mayWait(_ message: LiveMessage) -> Bool {
        guard current != nil else {
            missed = nil
            return true
        }
        let taken = written - reply.backlog
        guard let before = missed, before.taken == taken else {
            missed = (0, taken, loop.now)
            return true
        }
        missed?.bytes += message.count
        let isTooMuch = before.bytes + message.count > window / 2
        guard isTooMuch, loop.now >= before.since + Self.patience else { return true }
        cutOff()
        return false
    }

    private func write() {
        while !isOver, !isResting {
            if current == nil {
                guard let message = waitingState ?? waitingNotice else { break }
                if waitingState == nil { waitingNotice = nil }
                waitingState = nil
                current = (message, message.pieces[...])
                metrics.events.add()
            }
            guard let piece = current?.rest.popFirst() else {
                current = nil
                continue
            }
            put(piece)
            if reply.backlog > window / 2 { rest() }
        }
        guard isEnding, !isOver, !isResting else { return }
        reply.finish()
        close()
    }

    private func put(_ bytes: [UInt8]) {
        written += bytes.count
        lastWrite = loop.now
        reply.write(bytes)
    }

    private func rest() {
        isResting = true
        let reader = LoopReference(self, on: loop)
        reply.onDrain(below: window / 4) {
            reader.enqueue {
                $0.isResting = false
                $0.write()
            }
        }
    }

    /// Sends an empty comment after a silence, which detects a client that is gone.
    func beat(_ heartbeat: Duration) {
        guard !isOver, isOpen, current == nil, reply.backlog == 0,
            loop.now >= lastWrite + heartbeat.nanoseconds
        else { return }
        put(EventStreamText.heartbeat)
    }

    // MARK: The end

    /// Whether the client has read all that was sent.
    var isUpToDate: Bool { current == nil && reply.backlog == 0 }

    /// Ends the stream after what was sent.
    func end() {
        guard !isOver else { return }
        guard isOpen else {
            reply.refuse(.stopping)
            return close()
        }
        isEnding = true
        write()
    }

    /// Cuts off a client that does not read.
    func cutOff() {
        guard !isOver else { return }
        metrics.cutOff.add()
        reply.abort()
        close()
    }

    private func close() {
        guard !isOver else { return }
        isOver = true
        (current, waitingState, waitingNotice) = (nil, nil, nil)
        metrics.streams.subtract()
        let work = over
        over = {}
        work()
    }
}

extension Reply {
    /// Keeps the client of a finished stream from connecting again (HTML, §9.2.3).
    func endEvents(_ request: ProxyRequest) {
        var fields: Fields = ["Cache-Control": "no-store", "Cache-Status": "larder; detail=live-over"]
        fields.vary(by: request.upstream.variesForAll)
        request.upstream.addCORS(to: &fields, for: request.message.fields)
        respond(status: 204, fields: fields)
    }

    /// Begins a response of events.
    func startEvents(_ fields: Fields) {
        let own: Fields = ["Content-Type": EventStreamText.mediaType, "Cache-Control": "no-store"]
        start(status: 200, fields: Fields(own.lines + fields.lines), framing: .chunked)
    }
}
