package import EventLoops
import HTTPSemantics
import HTTPServer
package import Proxy
package import Store
import Synchronization

/// All open streams of `/changes`: reads the journal once for all of them, and sends each the changes that it wants.
///
/// It lives on the admin loop. A stream is a position in the journal: whatever happens to it, its client continues from the last
/// number it has seen. One page is read at a time, alternately from the newest and the oldest stream's position, and sent to
/// every stream with a position in it. Streams that keep up share one read for each commit, and those that catch up do not delay
/// them. Memory holds only one page, and the bytes that clients have not yet read.
package actor ChangeStreams {
    nonisolated let loop: EventLoop
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }

    /// The number of changes in a page, without and with members.
    private static let pageSize = (plain: 512, valued: 128)
    /// How far a stream that once kept up may fall behind while its client does not read, in commit sequences.
    private static let maximumLag: Int64 = 10_000
    private static let heartbeat: Duration = .seconds(15)
    /// Milliseconds after which a browser reconnects.
    private static let retry = 1000

    private let store: ObjectStore
    private let metrics: Metrics
    private var streams: [Int: ChangeStream] = [:]
    private var lastNumber = 0
    private var isReading = false
    private var isOldestsTurn = false
    private var isClosed = false
    private var timer: EventTimer?
    /// Whether a commit was announced that the loop has not yet read.
    private nonisolated let isPending = Atomic(false)

    package init(store: ObjectStore, loop: EventLoop, metrics: Metrics) {
        (self.store, self.loop, self.metrics) = (store, loop, metrics)
        store.onChanges { [weak self] in self?.committed() }
    }

    /// Runs on the writer's thread.
    private nonisolated func committed() {
        guard !isPending.exchange(true, ordering: .acquiringAndReleasing) else { return }
        enqueue { streams in
            streams.isPending.store(false, ordering: .releasing)
            streams.cutOffLaggards()
            streams.read()
        }
    }

    private nonisolated func enqueue(_ work: @escaping @Sendable (isolated ChangeStreams) -> Void) {
        loop.enqueue { [weak self] in self?.assumeIsolated { work($0) } }
    }

    // MARK: Opening and closing

    /// Responds with a stream; any thread.
    nonisolated func open(_ request: ChangeRequest, _ reply: Reply, fields: Fields) {
        enqueue { $0.begin(request, reply, fields) }
    }

    private func begin(_ request: ChangeRequest, _ reply: Reply, _ fields: Fields) {
        guard !isClosed else { return reply.respond(ProblemDocument(status: 503, detail: "the daemon is stopping")) }
        // Read before the head is sent, so that the client gets every change it makes after receiving the head.
        let (position, reset) = request.start.position(in: store)
        reply.start(status: 200, fields: fields, framing: .chunked)
        var opening = EventStreamText.retry(after: Self.retry)
        if let reset {
            opening += reset.event
        } else if request.start != .oldest {
            // A client that loses its connection before its first change needs a number to resume from.
            opening += EventStreamText.position(store.publicSequence(position))
        }
        reply.write(opening)
        lastNumber += 1
        let number = lastNumber
        streams[number] = ChangeStream(reply, request, from: position)
        metrics.changeStreams.set(streams.count)
        reply.onDisconnect { [weak self] in self?.enqueue { $0.remove(number) } }
        if timer == nil { timer = loop.every(Self.heartbeat) { [unowned self] in self.assumeIsolated { $0.beat() } } }
        read()
    }

    private func remove(_ number: Int) {
        streams[number] = nil
        metrics.changeStreams.set(streams.count)
    }

    /// Ends all streams in order, and accepts no more; any thread.
    package nonisolated func close() { enqueue { $0.end() } }

    private func end() {
        isClosed = true
        for (number, stream) in streams {
            stream.reply.finish()
            remove(number)
        }
    }

    private func cutOff(_ number: Int, _ stream: ChangeStream) {
        metrics.changeStreamsCut.add()
        stream.reply.abort()
        remove(number)
    }

    // MARK: Sending

    private func read() {
        let newest = store.sequence
        let waiting = streams.values.filter { !$0.isResting && $0.position < newest }
        guard !isReading, !isClosed, let some = waiting.first else { return }
        isReading = true
        isOldestsTurn.toggle()
        let start = waiting.reduce(some.position) { isOldestsTurn ? min($0, $1.position) : max($0, $1.position) }
        let withValues = waiting.contains { $0.wantsValues && $0.position >= start }
        Task { await readPage(after: start, withValues: withValues) }
    }

    private func readPage(after start: CommitNumber, withValues: Bool) async {
        let size = withValues ? Self.pageSize.valued : Self.pageSize.plain
        let page = try? await store.changes(after: start, limit: size, values: withValues)
        isReading = false
        // The store failed: clients reconnect, and then get the reason.
        guard let page else { return end() }
        send(page, after: start, withValues: withValues)
        read()
    }

    private func send(_ page: ChangePage, after start: CommitNumber, withValues: Bool) {
        let store = store
        var events = ChangeEvents(page) { store.publicSequence($0) }
        for (number, stream) in streams where !stream.isResting {
            guard stream.position >= start, stream.position < page.end else { continue }
            // A stream opened while the page was read gets its members with the next.
            if stream.wantsValues, !withValues { continue }
            send(&events, to: stream)
            if stream.reply.backlog > EventStreamClient.window { rest(stream, number) }
        }
    }

    private func send(_ events: inout ChangeEvents, to stream: ChangeStream) {
        let page = events.page
        if stream.position < page.floor {
            if !stream.beginsAtOldest {
                let reset = ChangeReset.evicted(
                    after: store.publicSequence(stream.position),
                    upTo: store.publicSequence(page.floor)
                )
                stream.write(reset.event)
                stream.sentPosition = page.floor
            }
            stream.position = page.floor
        }
        stream.beginsAtOldest = false
        let (bytes, last) = events.bytes(for: stream)
        if !bytes.isEmpty { stream.write(bytes) }
        stream.sentPosition = last ?? stream.sentPosition
        if page.erased > 0 {
            // Sent whatever the filter is, because it is no longer known whose changes these were.
            let reset = ChangeReset.cleaned(
                page.erased,
                after: store.publicSequence(stream.position),
                upTo: store.publicSequence(page.end)
            )
            stream.write(reset.event)
            stream.sentPosition = page.end
        }
        stream.position = max(stream.position, page.end)
        if page.isLast { stream.isLive = true }
    }

    // MARK: Keeping up

    /// Pauses reading for a stream until its client has read some of what is waiting.
    private func rest(_ stream: ChangeStream, _ number: Int) {
        stream.isResting = true
        stream.reply.onDrain(below: EventStreamClient.window / 2) { [weak self] in
            self?.enqueue { streams in
                streams.streams[number]?.isResting = false
                streams.read()
            }
        }
    }

    /// Cuts off streams that once kept up and no longer do.
    private func cutOffLaggards() {
        let newest = store.sequence
        for (number, stream) in streams where stream.isResting && stream.isLive {
            if newest.rawValue - stream.position.rawValue > Self.maximumLag { cutOff(number, stream) }
        }
    }

    private func beat() {
        for (number, stream) in streams {
            guard stream.makesProgress() else {
                cutOff(number, stream)
                continue
            }
            guard !stream.isResting else { continue }
            if stream.position > stream.sentPosition {
                // Changes that the filter rejects need not be examined again when the client reconnects.
                stream.sentPosition = stream.position
                stream.write(EventStreamText.position(store.publicSequence(stream.position)))
            } else {
                stream.write(EventStreamText.heartbeat)
            }
        }
        read()
    }
}

/// One client's stream of changes: its filter, its position, and whether it keeps up; the admin loop only.
final class ChangeStream {
    let reply: Reply
    let filter: ChangeFilter
    let wantsValues: Bool
    /// The commit sequence up to which it has received all wanted changes.
    var position: CommitNumber
    /// The last number sent to it from which it can resume.
    var sentPosition: CommitNumber
    /// Whether it begins with the oldest kept change, so that it misses none.
    var beginsAtOldest: Bool
    /// Whether it is paused until its client reads.
    var isResting = false
    /// Whether it has once received everything; from then on it must keep up.
    var isLive = false
    private var client = EventStreamClient()

    init(_ reply: Reply, _ request: ChangeRequest, from position: CommitNumber) {
        self.reply = reply
        filter = request.filter
        wantsValues = request.wantsValues
        self.position = position
        sentPosition = position
        beginsAtOldest = request.start == .oldest
    }

    func write(_ bytes: [UInt8]) { reply.write(bytes) }

    /// Whether a client that is behind still reads; checked from time to time.
    func makesProgress() -> Bool { client.makesProgress(isBehind: isResting, backlog: reply.backlog) }
}

/// A page of changes as events, made once for all streams.
struct ChangeEvents {
    let page: ChangePage
    private let number: (CommitNumber) -> Int64
    private var events: [Bool: [[UInt8]]] = [:]
    /// The bytes for streams without a filter, by start.
    private var blocks: [Block: [UInt8]] = [:]

    private struct Block: Hashable {
        var first: Int
        var withValues: Bool
    }

    /// - Parameter number: the public number of a commit sequence.
    init(_ page: ChangePage, number: @escaping (CommitNumber) -> Int64) { (self.page, self.number) = (page, number) }

    /// The events in the page for a stream, and the number of the last one; empty if it wants none.
    mutating func bytes(for stream: ChangeStream) -> (bytes: [UInt8], last: CommitNumber?) {
        guard let first = page.changes.firstIndex(where: { $0.sequence > stream.position }) else { return ([], nil) }
        let withValues = stream.wantsValues
        if events[withValues] == nil {
            events[withValues] = page.changes.map {
                ChangeResponse($0, number: number($0.sequence), withValues: withValues).event
            }
        }
        guard let events = events[withValues] else { return ([], nil) }
        if stream.filter.isEverything {
            let block = Block(first: first, withValues: withValues)
            let bytes = blocks[block] ?? Array(events[first...].joined())
            blocks[block] = bytes
            return (bytes, page.changes.last?.sequence)
        }
        var (bytes, last): ([UInt8], CommitNumber?) = ([], nil)
        for index in first..<page.changes.count where stream.filter.accepts(page.changes[index]) {
            bytes += events[index]
            last = page.changes[index].sequence
        }
        return (bytes, last)
    }
}

/// Checks at each heartbeat whether a stream's client still reads.
struct EventStreamClient {
    /// The number of waiting bytes from which it counts as behind.
    static let window = 256 << 10

    /// The bytes waiting at the last check; nil if it was not behind then.
    private var lastBacklog: Int?

    /// Whether it keeps up, or has read something since the last check.
    mutating func makesProgress(isBehind: Bool, backlog: Int) -> Bool {
        defer { lastBacklog = isBehind ? backlog : nil }
        guard isBehind, let lastBacklog else { return true }
        return backlog < lastBacklog
    }
}

/// All open streams of `/requests`.
///
/// It lives on the admin loop. New requests in the `RequestLog` are collected for a moment, then sent to all streams.
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
    /// Keeps hits noted while there are streams.
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

    package init(_ log: RequestLog, loop: EventLoop) { (self.log, self.loop) = (log, loop) }

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
        if listening == nil {
            listening = log.listen { [weak self] _ in self?.noted() }
            heartbeatTimer = loop.every(Self.heartbeat) { [unowned self] in self.assumeIsolated { $0.beat() } }
        }
        let last = log.lastID
        let position = id.map { $0 > last ? 0 : $0 } ?? last
        reply.start(status: 200, fields: fields, framing: .chunked)
        reply.write(EventStreamText.retry(after: 1_000) + EventStreamText.position(position))
        lastNumber += 1
        let number = lastNumber
        streams[number] = Stream(reply: reply, position: position)
        reply.onDisconnect { [weak self] in self?.enqueue { $0.remove(number) } }
        send()
    }

    private func remove(_ number: Int) {
        streams[number] = nil
        guard streams.isEmpty, let listening else { return }
        log.stopListening(listening)
        (self.listening, heartbeatTimer) = (nil, nil)
    }

    /// Ends all streams in order, and accepts no more; any thread.
    package nonisolated func close() { enqueue { $0.end() } }

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
        let newest = log.lastID
        let ready = streams.filter { $1.position < newest && $1.reply.backlog <= EventStreamClient.window }
        guard let first = ready.values.map(\.position).min() else { return }
        let (requests, last) = log.requests(after: first)
        // Made once for all streams.
        let events = requests.map { (id: $0.id, bytes: RequestsResponse.Request($0).event) }
        for (number, stream) in ready {
            var text: [UInt8] = []
            let oldest = events.first?.id ?? last + 1
            if stream.position + 1 < oldest {
                let missed = AdminJSON.encode(RequestsMissed(missed: oldest - stream.position - 1))
                text += EventStreamText.event(RequestsMissed.eventName, id: oldest - 1, data: missed)
            }
            for event in events where event.id > stream.position { text += event.bytes }
            stream.reply.write(text)
            streams[number]?.position = last
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
