import EventLoops
import HTTPSemantics
import HTTPServer
import Mapping
import Settings
import Store
import Synchronization

/// All documents with open streams; the upstream loop only.
final class LiveDocuments {
    let watch: LiveWatch
    let memory = LiveMemory()
    private let loop: EventLoop
    private let metrics: LiveMetrics
    private unowned let proxy: ProxyCore
    private var documents: [Int: LiveDocument] = [:]
    private var numbers: [LiveDocument.Key: Int] = [:]
    /// The latest number of a document or reader; events have those of commits.
    private var lastNumber = 0
    /// Collects changes for a moment, so that those of one write come together, with its effects after them.
    private var delivery: EventTimer?
    /// Sends heartbeats and starts due inquiries; runs while there are any streams.
    private var clock: EventTimer?
    /// How often it does, as the stream with the shortest times needs it.
    private var tick = Duration.zero
    private var ending: EventTimer?
    private(set) var isEnding = false

    /// How long changes are collected before streams look again.
    private static let collectingTime: Duration = .milliseconds(4)
    /// How long a client that is behind has to take the rest when the daemon stops.
    private static let lastGrace: Duration = .milliseconds(200)

    init(of proxy: ProxyCore) {
        loop = proxy.loop
        (watch, metrics) = (proxy.cache.watch, proxy.metrics.live)
        self.proxy = proxy
        memory.onExcess = { [unowned self] in
            for reader in allReaders where reader.isBehind { reader.cutOff() }
        }
    }

    subscript(number: Int) -> LiveDocument? { documents[number] }

    // MARK: Streams

    /// Opens a stream, unless there are too many.
    func open(_ request: ProxyRequest, _ reply: Reply, _ mode: LiveMode) {
        if isEnding { return reply.refuse(.stopping) }
        let limit = request.upstream.daemon.live.streams
        guard metrics.streams.value < limit else { return reply.refuse(.liveTooMany(limit: limit)) }
        let limits = request.upstream.daemon.limits
        memory.limit = 8 * limits.document
        let window = limits.relayWindow
        let reader = LiveClient(reply, note: request.note, loop: loop, window: window, metrics: metrics)
        let document = document(of: request)
        lastNumber += 1
        document.add(reader, mode, lastNumber, now: loop.now)
        reader.whenOver { [unowned self, number = lastNumber] in left(number, document) }
    }

    private func document(of request: ProxyRequest) -> LiveDocument {
        let key = LiveDocument.Key(request)
        if let number = numbers[key], let known = documents[number] { return known }
        lastNumber += 1
        let live = request.upstream.daemon.live
        let document = LiveDocument(lastNumber, key, request, memory: memory) { [unowned proxy, number = lastNumber] in
            proxy.assumeIsolated { $0.look(atNumber: number) }
        }
        numbers[key] = lastNumber
        documents[lastNumber] = document
        watch.watch(lastNumber, at: request.digest)
        metrics.documents.set(documents.count)
        if clock == nil || live.tick < tick {
            tick = live.tick
            clock = loop.every(tick) { [unowned self] in ticked() }
        }
        return document
    }

    private func left(_ reader: Int, _ document: LiveDocument) {
        document.remove(reader)
        guard document.isOver else { return }
        watch.end(document.number, at: document.request.digest, document.watched)
        documents[document.number] = nil
        numbers[document.key] = nil
        metrics.documents.set(documents.count)
    }

    /// Whether all of these objects are watched for a document already.
    ///
    /// If so, from then on only they are; otherwise they are added.
    func watchCovers(_ wanted: WatchedObjects, for document: LiveDocument) -> Bool {
        let all = document.watched.union(wanted)
        let isComplete = all == document.watched
        let watched = isComplete ? wanted : all
        watch.watch(watched, insteadOf: document.watched, for: document.number)
        document.watched = watched
        return isComplete
    }

    // MARK: Changes

    func wake() {
        guard delivery == nil else { return }
        delivery = loop.after(Self.collectingTime) { [unowned self] in
            delivery = nil
            deliver()
        }
    }

    func deliver() {
        for (number, haveObjectsChanged) in watch.take() {
            documents[number]?.handle(haveObjectsChanged ? .objectsChanged : .lookRequested)
        }
    }

    /// Invalidates what a write or a clean covers; its effects are yet to be committed.
    func invalidate(_ invalidation: Invalidation) {
        for document in documents.values where invalidation.covers(document.request.key, proxy.principals.label(of:)) {
            document.handle(.invalidated)
        }
    }

    /// Examines the invalidated documents once the write's effects are committed.
    func invalidationsCommitted() { for document in documents.values { document.handle(.committed) } }

    func lookAtAll() { documents.values.forEach { $0.handle(.lookRequested) } }

    private func ticked() {
        memory.forget()
        guard !documents.isEmpty else {
            clock = nil
            return
        }
        let now = loop.now
        for document in documents.values {
            let request = document.request
            if document.following.isCutOff, !proxy.assumeIsolated({ $0.fetches.isUnreachable(for: request) }) {
                document.handle(.upstreamIsBack)
            }
            if document.following.due <= now { document.handle(.lookRequested) }
            for reader in document.readers.values { reader.beat(document.request.upstream.daemon.live.heartbeat) }
        }
    }

    // MARK: The end

    /// Ends all streams without waiting for clients that do not read.
    func end() {
        isEnding = true
        for reader in allReaders where reader.isUpToDate { reader.end() }
        guard !documents.isEmpty else { return }
        ending = loop.after(Self.lastGrace) { [unowned self] in
            for reader in allReaders { reader.isUpToDate ? reader.end() : reader.cutOff() }
        }
    }

    private var allReaders: [LiveClient] { documents.values.flatMap(\.readers.values) }
}
