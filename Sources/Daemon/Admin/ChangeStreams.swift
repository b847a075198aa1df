import EventLoops
import HTTPSemantics
import HTTPServer
import Proxy
import Store
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

    private static let pageSize = (plain: 512, valued: 128)
    /// How far a stream that once kept up may fall behind while its client does not read, in commit sequences.
    private static let maximumLag: Int64 = 10_000

    private let store: ObjectStore
    private let streams: OpenStreams<ChangeStream>
    private var isReading = false
    private var isOldestsTurn = false
    /// Whether a commit was announced that the loop has not yet read.
    private nonisolated let isPending = Atomic(false)

    init(store: ObjectStore, loop: EventLoop, metrics: Metrics) {
        (self.store, self.loop) = (store, loop)
        streams = OpenStreams(loop: loop, metrics)
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
        guard let stream = streams.stream(for: reply) else { return }
        // Read before the head is sent, so that the client gets every change it makes after receiving the head.
        let (position, reset) = request.start.position(in: store)
        var opening: [UInt8] = []
        if let reset {
            opening = reset.event
        } else if request.start != .oldest {
            // A client that loses its connection before its first change needs a number to resume from.
            opening = EventStreamText.position(store.publicSequence(position))
        }
        let client = ChangeStream(stream, request, from: position, in: store)
        streams.add(client, fields, opening, send: { [weak self] in self?.enqueue { $0.read() } }, left: {})
        read()
    }

    /// Ends all streams in order, and accepts no more; any thread.
    package nonisolated func close() { enqueue { $0.streams.close() } }

    // MARK: Sending

    private func read() {
        let newest = store.sequence
        let waiting = streams.ready.filter { $0.position < newest }
        guard !isReading, !streams.isClosed, let some = waiting.first else { return }
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
        guard let page else { return streams.close() }
        send(page, after: start, withValues: withValues)
        read()
    }

    private func send(_ page: ChangePage, after start: CommitNumber, withValues: Bool) {
        let store = store
        var events = ChangeEvents(page) { store.publicSequence($0) }
        for stream in streams.ready {
            guard stream.position >= start, stream.position < page.end else { continue }
            // A stream opened while the page was read gets its members with the next.
            if stream.wantsValues, !withValues { continue }
            send(&events, to: stream)
        }
    }

    private func send(_ events: inout ChangeEvents, to stream: ChangeStream) {
        let page = events.page
        if stream.position < page.floor {
            if !stream.beginsAtOldest {
                stream.write(ChangeReset.evicted(after: stream.position, upTo: page.floor, in: store).event)
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
                after: stream.position,
                upTo: page.end,
                isSelection: !stream.filter.isEverything,
                in: store
            )
            stream.write(reset.event)
            stream.sentPosition = page.end
        }
        stream.position = max(stream.position, page.end)
        if page.isLast { stream.isLive = true }
    }

    private func cutOffLaggards() {
        let newest = store.sequence
        for client in streams.clients where client.stream.isResting && client.isLive {
            if newest.rawValue - client.position.rawValue > Self.maximumLag { streams.cutOff(client) }
        }
    }
}

/// One client's stream of changes: its filter, its position, and whether it keeps up; the admin loop only.
final class ChangeStream: StreamClient {
    let stream: EventStream
    let filter: ChangeFilter
    let wantsValues: Bool
    private let store: ObjectStore
    /// The commit sequence up to which it has received all wanted changes.
    var position: CommitNumber
    /// The last number sent to it from which it can resume.
    var sentPosition: CommitNumber
    /// Whether it begins with the oldest kept change, so that it misses none.
    var beginsAtOldest: Bool
    /// Whether it has once received everything; from then on it must keep up.
    var isLive = false

    init(_ stream: EventStream, _ request: ChangeRequest, from position: CommitNumber, in store: ObjectStore) {
        (self.stream, self.store) = (stream, store)
        filter = request.filter
        wantsValues = request.wantsValues
        self.position = position
        sentPosition = position
        beginsAtOldest = request.start == .oldest
    }

    func write(_ bytes: [UInt8]) { stream.write(bytes) }

    func beat() {
        guard position > sentPosition else { return stream.beat() }
        // Changes that the filter rejects need not be examined again when the client reconnects.
        sentPosition = position
        write(EventStreamText.position(store.publicSequence(position)))
    }
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
