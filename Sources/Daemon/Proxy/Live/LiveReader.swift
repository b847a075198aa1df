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
    /// The phase of a stream's opening.
    enum Phase {
        /// Nothing was sent.
        case joining
        /// The known response was sent, and the upstream's is awaited.
        case opening
        /// Each change is sent.
        case following
    }

    /// The number of the last event that the client got on an earlier stream.
    let resumed: Int64?
    /// Whether the stream ends with the upstream's first response (`once`).
    let isOnce: Bool
    let note: RequestNote?
    var phase = Phase.joining
    /// The number of the inquiry whose response this stream awaits.
    var awaited = 0
    /// The edition of the document that it was sent last, if any.
    var edition: Int?
    /// The content of that edition.
    var shown: Digest128?

    /// How long a client may read nothing and still count as merely busy, in ns.
    private static let patience: UInt64 = 5_000_000_000

    private let reply: Reply
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
    private var over: (LiveReader) -> Void = { _ in }

    init(_ reply: Reply, _ mode: LiveMode, note: RequestNote?, loop: EventLoop, window: Int, metrics: LiveMetrics) {
        self.reply = reply
        self.note = note
        self.loop = loop
        self.window = window
        self.metrics = metrics
        (resumed, isOnce) = if case .on(let number) = mode { (number, false) } else { (nil, true) }
        metrics.streams.add()
    }

    /// Sets what to do once when the stream is over, and watches for disconnection.
    func whenOver(_ work: @escaping (LiveReader) -> Void) {
        over = work
        let reader = LoopReference(self, on: loop)
        reply.onDisconnect { reader.enqueue { $0.close() } }
    }

    /// Begins the response.
    func open(_ fields: Fields, retry: Duration) {
        reply.startEvents(fields)
        guard !isOnce else { return }
        put(EventStreamText.retry(after: Int(retry.nanoseconds / 1_000_000)))
    }

    // MARK: Events

    /// Sends a state of the document, which replaces one that still waits.
    func send(state: LiveMessage, edition: Int) {
        self.edition = edition
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
        guard !isOver, phase != .joining, current == nil, reply.backlog == 0,
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
        guard phase != .joining else {
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
        over = { _ in }
        work(self)
    }
}

extension Reply {
    /// Keeps the client of a finished stream from connecting again (HTML, §9.2.3).
    func endEvents(_ request: ProxyRequest) {
        let status = CacheStatus.refused("live-over")
        var fields: Fields = ["Cache-Control": "no-store", "Cache-Status": status.text]
        note?.served(as: status)
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

/// Schedules Larder's own inquiries about a followed document.
///
/// A value without a clock: times are nanoseconds of the loop's clock.
struct LiveRhythm {
    /// Why the upstream must be asked.
    enum Need: Equatable {
        /// The response is fresh for this many seconds.
        case expiry(Int64)
        /// The response is stale, or must not be stored.
        case stale
        /// The response is gone, or something newer is known that cannot be shown.
        case displaced
    }

    /// The least time between two requests for a response that is merely stale.
    let interval: UInt64
    /// When the last inquiry ended, successfully or not; nil if there was none.
    private(set) var lastConcluded: UInt64?
    /// The number of successive failures: no response, or an error.
    private(set) var failures = 0
    /// The number of successive inquiries because the response was displaced.
    private var displacements = 0

    private static let second: UInt64 = 1_000_000_000
    private static let firstDelay = second / 10
    /// Later times count as never.
    private static let farthest: Int64 = 100 * 365 * 86_400

    init(interval: Duration) { self.interval = interval.nanoseconds }

    /// Notes the end of an inquiry.
    mutating func concluded(hasFailed: Bool, now: UInt64) {
        lastConcluded = now
        failures = hasFailed ? failures + 1 : 0
    }

    /// When the upstream is to be asked; this may be in the past.
    ///
    /// Successive failures increase the delay. A displaced response is requested at once, unless that happens again and again:
    /// two documents whose responses displace one another must not become a poll loop.
    mutating func due(_ need: Need, now: UInt64) -> UInt64 {
        guard let lastConcluded else {
            if case .expiry(let seconds) = need { return now + Self.span(seconds) }
            return now
        }
        if failures > 0 { return lastConcluded + Refreshes.pause(after: failures) }
        if now > lastConcluded + 2 * interval { displacements = 0 }
        switch need {
        case .expiry(let seconds): return max(now + Self.span(seconds), lastConcluded + interval)
        case .stale: return lastConcluded + interval
        case .displaced:
            let wait = displacements == 0 ? 0 : min(interval, Self.firstDelay << UInt64(min(displacements - 1, 20)))
            return lastConcluded + wait
        }
    }

    /// Notes that an inquiry begins, for this need.
    mutating func began(_ need: Need) { if need == .displaced { displacements += 1 } }
    private static func span(_ seconds: Int64) -> UInt64 { UInt64(max(0, min(seconds, farthest))) * second }
}
