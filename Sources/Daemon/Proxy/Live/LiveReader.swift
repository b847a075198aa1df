import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer

/// One client's stream: what it was sent, and what waits for it.
///
/// It is written no faster than the client reads. While it waits, newer states take the place of older ones, so that what
/// waits is at most one state and one notice, however many come. A client that takes nothing is cut off.
/// The upstream loop only.
final class LiveReader {
    /// How far the opening has come.
    enum Phase {
        /// Nothing was sent.
        case joining
        /// What is known was sent, and the upstream's word is to come.
        case opening
        /// Each change is sent.
        case following
    }

    /// The number of the last event that the client had before.
    let resumed: Int64?
    /// Whether the stream ends with the upstream's first word (`once`).
    let endsAfterWord: Bool
    /// Its request, for those who watch requests.
    let note: RequestNote?
    var phase = Phase.joining
    /// The inquiry whose response is the upstream's word for this stream.
    var awaited = 0
    /// Which edition of the document it was sent last; nil: none.
    var edition: Int?

    /// Who takes nothing for less than this, in ns, may just be busy.
    private static let patience: UInt64 = 5_000_000_000

    private let reply: Reply
    private let loop: EventLoop
    private let metrics: LiveMetrics
    /// Bytes that may wait for the client.
    private let window: Int
    /// What is being sent; as long as the message is kept, its encoded body counts as held.
    private var current: (message: LiveMessage, rest: ArraySlice<[UInt8]>)?
    private var waitingState: LiveMessage?
    private var waitingNotice: LiveMessage?
    private var isResting = false
    /// Bytes given to the connection so far.
    private var written = 0
    /// Bytes that came while the client took nothing, how many it had taken before, and since when.
    private var missed: (bytes: Int, taken: Int, since: UInt64)?
    /// When something was last written, in ns of the loop's clock.
    private var lastWrite: UInt64 = 0
    private var isEnding = false
    private(set) var isOver = false
    private var over: (LiveReader) -> Void = { _ in }

    init(
        _ reply: Reply,
        mode: LiveMode,
        note: RequestNote?,
        loop: EventLoop,
        window: Int,
        metrics: LiveMetrics
    ) {
        self.reply = reply
        self.note = note
        (resumed, endsAfterWord) = if case .on(let number) = mode { (number, false) } else { (nil, true) }
        self.loop = loop
        self.window = window
        self.metrics = metrics
        metrics.streams.add()
    }

    /// Has this done once, when the stream is over; and watches for the client's leaving.
    func whenOver(_ work: @escaping (LiveReader) -> Void) {
        over = work
        let reader = LoopReference(self, on: loop)
        reply.onDisconnect { reader.enqueue { $0.close() } }
    }

    /// Begins the response.
    func open(_ fields: Fields, retry: Duration) {
        reply.startEvents(fields)
        guard !endsAfterWord else { return }
        put(EventStreamText.retry(after: Int(retry.nanoseconds / 1_000_000)))
    }

    // MARK: Events

    /// Sends a state of the document; one that still waits is of no interest any more.
    func send(state: LiveMessage, edition: Int) {
        self.edition = edition
        guard !isOver, mayWait(state) else { return }
        (waitingState, waitingNotice) = (state, nil)
        write()
    }

    /// Sends what leaves the state as it is.
    func send(notice: LiveMessage) {
        guard !isOver, mayWait(notice) else { return }
        waitingNotice = notice
        write()
    }

    /// Whether something waits for the client to read.
    var isBehind: Bool { current != nil }

    /// Counts what the client misses; false, and the stream is over, where that is too much.
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

    /// Breaks a silence with an empty comment, by which a client that is gone is found.
    func beat(_ heartbeat: Duration) {
        guard !isOver, phase != .joining, current == nil, reply.backlog == 0,
            loop.now >= lastWrite + heartbeat.nanoseconds
        else { return }
        put(EventStreamText.heartbeat)
    }

    // MARK: The end

    /// Refuses the stream before it has begun.
    func refuse(_ problem: ProblemDocument) {
        reply.refuse(problem)
        close()
    }

    /// Whether all that was sent has been taken.
    var isUpToDate: Bool { current == nil && reply.backlog == 0 }

    /// Ends the stream after what was sent.
    func end() {
        guard !isOver else { return }
        guard phase != .joining else { return refuse(.stopping) }
        isEnding = true
        write()
    }

    /// Ends the stream of a client that does not read.
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
        all.append("Content-Type", EventStreamText.mediaType)
        all.append("Cache-Control", "no-store")
        all.lines += fields.lines
        start(status: 200, fields: all, framing: .chunked)
    }
}

/// When a followed document is asked for anew, although no client asked for it.
///
/// A value without a clock of its own: times are nanoseconds of the loop's.
struct LiveRhythm {
    /// Why the upstream has to be asked.
    enum Need: Equatable {
        /// What is known is fresh for so many seconds.
        case expiry(Int64)
        /// What is known is stale, or nothing may be kept.
        case stale
        /// What was known is gone, or something newer is known than can be shown.
        case displaced
    }

    /// The least time between two requests for what is merely stale.
    let interval: UInt64
    /// When the upstream was last asked in vain or not; nil: never.
    private(set) var lastWord: UInt64?
    /// How many times in succession it did not answer, or with an error.
    private(set) var failures = 0
    /// How many times it was asked in succession because something was displaced.
    private var haste = 0

    private static let second: UInt64 = 1_000_000_000
    private static let firstHaste = second / 10
    /// Times beyond are as good as never.
    private static let farthest: Int64 = 100 * 365 * 86_400

    init(interval: Duration) {
        self.interval = interval.nanoseconds
    }

    /// The upstream has given its word, or failed to.
    mutating func concluded(hasFailed: Bool, now: UInt64) {
        lastWord = now
        failures = hasFailed ? failures + 1 : 0
    }

    /// When the upstream is to be asked; it may be in the past.
    ///
    /// After failures with growing distance. What is displaced is asked for at once, unless that happens again and again:
    /// two documents whose responses displace one another must not become a poll loop.
    mutating func due(_ need: Need, now: UInt64) -> UInt64 {
        guard let lastWord else {
            if case .expiry(let seconds) = need { return now + Self.span(seconds) }
            return now
        }
        if failures > 0 { return lastWord + Refreshes.pause(after: failures) }
        if now > lastWord + 2 * interval { haste = 0 }
        switch need {
        case .expiry(let seconds): return max(now + Self.span(seconds), lastWord + interval)
        case .stale: return lastWord + interval
        case .displaced:
            let wait = haste == 0 ? 0 : min(interval, Self.firstHaste << UInt64(min(haste - 1, 20)))
            return lastWord + wait
        }
    }

    /// A question to the upstream begins, for this need.
    mutating func began(_ need: Need) {
        if need == .displaced { haste += 1 }
    }

    private static func span(_ seconds: Int64) -> UInt64 { UInt64(max(0, min(seconds, farthest))) * second }
}
