import EventLoops
import HTTPSemantics
import HTTPServer
package import Mapping
import Settings
package import Store
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
    private var nextNumber = 0
    /// Collects changes for a moment, so that those of one write come together, with its effects after them.
    private var delivery: EventTimer?
    /// Sends heartbeats and starts due inquiries; runs while there are any streams.
    private var clock: EventTimer?
    /// How often it does, as the stream with the shortest times needs it.
    private var tick = Duration.zero
    private var ending: EventTimer?
    private(set) var isEnding = false

    private static let patience: Duration = .milliseconds(4)
    /// How long a client that is behind has to take the rest when the daemon stops.
    private static let lastGrace: Duration = .milliseconds(200)

    init(of proxy: ProxyCore) {
        loop = proxy.loop
        (watch, metrics) = (proxy.cache.watch, proxy.metrics.live)
        self.proxy = proxy
        memory.onExcess { [unowned self] in
            for reader in allReaders where reader.isBehind { reader.cutOff() }
        }
    }

    subscript(number: Int) -> LiveDocument? { documents[number] }

    // MARK: Streams

    func open(_ request: ProxyRequest, _ reply: Reply, _ mode: LiveMode) {
        let limits = request.upstream.daemon.limits
        memory.limit = 8 * limits.document
        let window = limits.relayWindow
        let reader = LiveReader(reply, note: request.note, loop: loop, window: window, metrics: metrics)
        let document = document(of: request)
        nextNumber += 1
        let number = nextNumber
        document.add(reader, mode, number, now: loop.now)
        reader.whenOver { [unowned self] in left(number, document) }
    }

    /// Why no stream can be opened; nil if one can.
    func refusal(of request: ProxyRequest) -> ProblemDocument? {
        if isEnding { return .stopping }
        let limit = request.upstream.daemon.live.streams
        return metrics.streams.value < limit ? nil : .liveTooMany(limit: limit)
    }

    private func document(of request: ProxyRequest) -> LiveDocument {
        let key = LiveDocument.Key(request)
        if let number = numbers[key], let known = documents[number] { return known }
        nextNumber += 1
        let live = request.upstream.daemon.live
        let interval = live.interval
        let document = LiveDocument(nextNumber, key, request, interval: interval, memory: memory) { [unowned proxy] in
            let number = $0.number
            proxy.assumeIsolated { $0.look(atNumber: number) }
        }
        numbers[key] = nextNumber
        documents[nextNumber] = document
        watch.watch(nextNumber, at: request.digest)
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
        delivery = loop.after(Self.patience) { [unowned self] in
            delivery = nil
            deliver()
        }
    }

    func deliver() {
        for (number, causes) in watch.take() {
            documents[number]?.handle(causes.contains(.objects) ? .objectsChanged : .lookRequested)
        }
    }

    /// Invalidates what a write or a clean covers; its effects are yet to be committed.
    func invalidate(_ invalidation: Invalidation) {
        for document in documents.values where invalidation.covers(document.request) {
            document.handle(.invalidated)
        }
    }

    /// Examines the invalidated documents once the write's effects are committed.
    func invalidationsCommitted() {
        for document in documents.values { document.handle(.committed) }
    }

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
            if document.isCutOff, !proxy.assumeIsolated({ $0.fetches.isUnreachable(for: request) }) {
                document.isCutOff = false
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

    private var allReaders: [LiveReader] { documents.values.flatMap(\.readers.values) }
}

/// The objects whose changes may change the response of a followed document.
struct WatchedObjects: Equatable {
    /// Those that it shows.
    var shown: Set<ObjectID> = []
    /// Those that its mapped view names, and of which nothing is known yet.
    ///
    /// One without an identity stands for all objects of its model: which of them has a key is not known.
    private(set) var awaited: Set<BoundObject> = []

    init(_ shown: some Sequence<ObjectID> = [], awaiting names: some Sequence<BoundObject> = []) {
        self.shown = Set(shown)
        awaited = Set(names.map { BoundObject(model: $0.model, identity: $0.identity) })
    }

    func union(_ other: WatchedObjects) -> WatchedObjects {
        WatchedObjects(shown.union(other.shown), awaiting: awaited.union(other.awaited))
    }
}

/// Notices what might change the responses of followed documents.
///
/// Any thread. While no document is followed, each report costs one load of a flag.
package final class LiveWatch: Sendable {
    struct Causes: OptionSet, Sendable {
        let rawValue: UInt8

        static let objects = Causes(rawValue: 1)
        /// It was stored, freshened or dropped.
        static let document = Causes(rawValue: 2)
        /// It was removed from the store, for whatever reason.
        static let removal = Causes(rawValue: 4)
    }

    // Not private: the compiler (6.3.1) cannot lay out structs in a mutex from other files if they are.
    struct State {
        var objects: [ObjectID: Set<Int>] = [:]
        var awaited: [BoundObject: Set<Int>] = [:]
        var documents: [Digest128: Set<Int>] = [:]
        /// Changes that the loop has not taken yet.
        var pending: [Int: Causes] = [:]
        var wake: (@Sendable () -> Void)?
    }

    private let isWatching = Atomic(false)
    private let state = Mutex(State())

    package init() {}

    /// Sets what to do, on any thread, when something happens to a document; `take` returns the changes.
    func onChange(_ wake: @escaping @Sendable () -> Void) { state.withLock { $0.wake = wake } }

    /// The changes since the last call, by the documents' numbers.
    func take() -> [Int: Causes] {
        state.withLock { state in
            defer { state.pending = [:] }
            return state.pending
        }
    }

    // MARK: For followed documents

    func watch(_ number: Int, at digest: Digest128) {
        state.withLock { state in
            _ = state.documents[digest, default: []].insert(number)
            isWatching.store(true, ordering: .releasing)
        }
    }

    /// Watches objects for a document in place of the previous ones.
    func watch(_ objects: WatchedObjects, insteadOf others: WatchedObjects, for number: Int) {
        guard objects != others else { return }
        state.withLock { state in
            for object in objects.shown.subtracting(others.shown) { state.objects[object, default: []].insert(number) }
            for name in objects.awaited.subtracting(others.awaited) { state.awaited[name, default: []].insert(number) }
            for object in others.shown.subtracting(objects.shown) { state.objects.remove(number, of: object) }
            for name in others.awaited.subtracting(objects.awaited) { state.awaited.remove(number, of: name) }
        }
    }

    /// Stops watching for a document that has no more readers.
    func end(_ number: Int, at digest: Digest128, _ objects: WatchedObjects) {
        watch(WatchedObjects(), insteadOf: objects, for: number)
        state.withLock { state in
            state.documents.remove(number, of: digest)
            state.pending[number] = nil
            if state.documents.isEmpty { isWatching.store(false, ordering: .releasing) }
        }
    }

    // MARK: Reports of changes

    /// Reports that a document was stored, freshened or dropped.
    func documentChanged(_ digest: Digest128) { record(.document, of: CollectionOfOne(digest)) { $0.documents[$1] } }

    private func record<Elements: Sequence>(
        _ cause: Causes,
        of elements: Elements,
        _ concerned: (inout State, Elements.Element) -> Set<Int>?
    ) {
        guard isWatching.load(ordering: .acquiring) else { return }
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
            let wasEmpty = state.pending.isEmpty
            for element in elements {
                for number in concerned(&state, element) ?? [] { state.pending[number, default: []].insert(cause) }
            }
            return wasEmpty && !state.pending.isEmpty ? state.wake : nil
        }
        wake?()
    }
}

extension LiveWatch: ChangeListener {
    package func objectsChanged(_ objects: [ObjectID]) { record(.objects, of: objects) { $0.objects[$1] } }
    package var awaitsObjects: Bool {
        isWatching.load(ordering: .acquiring) && state.withLock { !$0.awaited.isEmpty }
    }

    package func objectsWritten(_ objects: Set<ObjectName>) {
        let models = Set(objects.map(\.model)).map { BoundObject(model: $0) }
        record(.document, of: objects.map { BoundObject($0) } + models) { $0.awaited[$1] }
    }

    package func documentsRemoved(_ keys: [Digest128]) { record(.removal, of: keys) { $0.documents[$1] } }

    package func storeEmptied() {
        record(.removal, of: CollectionOfOne(())) { state, _ in
            state.documents.values.reduce(into: Set<Int>()) { $0.formUnion($1) }
        }
    }
}

extension Dictionary where Value == Set<Int> {
    fileprivate mutating func remove(_ number: Int, of key: Key) {
        self[key]?.remove(number)
        if self[key]?.isEmpty == true { self[key] = nil }
    }
}

/// Passes commits on to several listeners, in their order.
package struct ChangeListeners: ChangeListener {
    let all: [any ChangeListener]

    package init(_ all: any ChangeListener...) { self.all = all }

    package func objectsWillChange(_ objects: [ObjectID]) { all.forEach { $0.objectsWillChange(objects) } }
    package func objectsChanged(_ objects: [ObjectID]) { all.forEach { $0.objectsChanged(objects) } }
    package var awaitsObjects: Bool { all.contains { $0.awaitsObjects } }
    package func objectsWritten(_ objects: Set<ObjectName>) { all.forEach { $0.objectsWritten(objects) } }
    package func documentsRemoved(_ keys: [Digest128]) { all.forEach { $0.documentsRemoved(keys) } }
    package func principalsForgotten() { all.forEach { $0.principalsForgotten() } }
    package func storeEmptied() { all.forEach { $0.storeEmptied() } }
}
