import EventLoops
import HTTPSemantics
import HTTPServer
import Settings
import Store

/// All documents that streams are open on.
///
/// The upstream loop only.
final class LiveDocuments {
    let watch: LiveWatch
    let memory: LiveMemory
    private let settings: Configuration
    private let loop: EventLoop
    private let metrics: LiveMetrics
    private unowned let proxy: ProxyCore
    private var documents: [Int: LiveDocument] = [:]
    private var numbers: [LiveDocument.Key: Int] = [:]
    private var nextNumber = 0
    /// Told of changes, a moment later: those of one write come together, and its consequences after them.
    private var delivery: EventTimer?
    /// Looks after heartbeats and what has to be asked for; there while anybody follows anything.
    private var clock: EventTimer?
    private var ending: EventTimer?
    private(set) var isEnding = false

    /// How long news wait for others.
    private static let patience: Duration = .milliseconds(4)
    private static let tick: Duration = .milliseconds(200)
    /// How long a client that is behind has to take the rest when the daemon stops.
    private static let lastGrace: Duration = .milliseconds(200)

    init(
        settings: Configuration,
        loop: EventLoop,
        watch: LiveWatch,
        metrics: LiveMetrics,
        proxy: ProxyCore
    ) {
        self.settings = settings
        self.loop = loop
        self.watch = watch
        self.metrics = metrics
        self.proxy = proxy
        memory = LiveMemory(limit: 8 * settings.limits.document)
        memory.onExcess { [unowned self] in
            for reader in allReaders where reader.isBehind { reader.cutOff() }
        }
    }

    subscript(number: Int) -> LiveDocument? { documents[number] }

    // MARK: Streams

    /// Opens a stream on the document of a demand.
    func open(_ demand: Demand, _ reply: Reply, resumed: Int64?) {
        let reader = LiveReader(
            reply,
            resumed: resumed,
            loop: loop,
            window: settings.limits.relayWindow,
            metrics: metrics
        )
        let document = document(of: demand)
        document.add(reader, now: loop.now)
        reader.whenOver { [unowned self] in left($0, document) }
        look(document)
    }

    /// Why no stream can be opened; nil where one can.
    var refusal: ProblemDocument? {
        if isEnding { return .stopping }
        let limit = settings.live.streams
        return metrics.streams.value < limit ? nil : .liveTooMany(limit: limit)
    }

    private func document(of demand: Demand) -> LiveDocument {
        let key = LiveDocument.Key(demand)
        if let number = numbers[key], let known = documents[number] { return known }
        nextNumber += 1
        let document = LiveDocument(nextNumber, key, demand, interval: settings.live.interval) { [unowned self] in
            look($0)
        }
        numbers[key] = nextNumber
        documents[nextNumber] = document
        watch.begin(nextNumber, at: demand.digest)
        metrics.documents.set(documents.count)
        if clock == nil { clock = loop.every(Self.tick) { [unowned self] in ticked() } }
        return document
    }

    private func left(_ reader: LiveReader, _ document: LiveDocument) {
        document.remove(reader)
        guard document.readers.isEmpty, !document.isOver else { return }
        document.end()
        watch.end(document.number, at: document.demand.digest, objects: document.objects)
        documents[document.number] = nil
        numbers[document.key] = nil
        metrics.documents.set(documents.count)
    }

    /// Watches for a document the objects that its response shows, besides those watched already; false where it did so.
    func watches(_ objects: [ObjectID], for document: LiveDocument) -> Bool {
        let wanted = Set(objects)
        if wanted.isSubset(of: document.objects) { return true }
        let all = document.objects.union(wanted)
        watch.watch(all, insteadOf: document.objects, for: document.number)
        document.objects = all
        return false
    }

    /// Watches for a document these objects and no others.
    func watchOnly(_ objects: [ObjectID], for document: LiveDocument) {
        let wanted = Set(objects)
        guard wanted != document.objects else { return }
        watch.watch(wanted, insteadOf: document.objects, for: document.number)
        document.objects = wanted
    }

    // MARK: News

    /// Something has happened to a document.
    func wake() {
        guard delivery == nil else { return }
        delivery = loop.after(Self.patience) { [unowned self] in
            delivery = nil
            deliver()
        }
    }

    /// Gives the documents the news of them, and has them looked at.
    func deliver() {
        for (number, causes) in watch.take() {
            guard let document = documents[number] else { continue }
            document.note(causes)
            look(document)
        }
    }

    /// A write has completed that invalidates this; its consequences are to be committed.
    func forget(_ invalidation: Invalidation) {
        for document in documents.values where invalidation.covers(document.demand) { document.invalidate() }
    }

    /// Everything was cleaned.
    func forgetAll() {
        for document in documents.values { document.invalidate() }
    }

    /// What was forgotten is committed.
    func settled() {
        for document in documents.values where document.settled() { look(document) }
    }

    /// Has a document looked at.
    private func look(_ document: LiveDocument) {
        let number = document.number
        proxy.assumeIsolated { $0.look(atNumber: number) }
    }

    /// Has all documents looked at.
    func lookAtAll() {
        for document in documents.values { look(document) }
    }

    private func ticked() {
        memory.forget()
        guard !documents.isEmpty else {
            clock = nil
            return
        }
        let now = loop.now
        for document in documents.values {
            if document.due <= now { look(document) }
            for reader in document.readers { reader.beat(settings.live.heartbeat) }
        }
    }

    // MARK: The end

    /// Ends all streams, without waiting for those who do not read.
    func end() {
        isEnding = true
        for reader in allReaders where reader.isUpToDate { reader.end() }
        guard !documents.isEmpty else { return }
        ending = loop.after(Self.lastGrace) { [unowned self] in
            for reader in allReaders { reader.isUpToDate ? reader.end() : reader.cutOff() }
        }
    }

    private var allReaders: [LiveReader] { documents.values.flatMap(\.readers) }
}
