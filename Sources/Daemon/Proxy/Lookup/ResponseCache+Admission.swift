import CachePolicy
import Logging
import Mapping
import Settings
import Store
import Synchronization

/// A response that has arrived whole, with what its exchange says about it.
struct Arrival {
    let ready: ReadyResponse
    /// When its request was sent, on the store's clock.
    let sent: Int64
    /// Its `Age` in µs: it shows the state at that time before the request.
    var age: Int64 = 0
    var match: CompiledUpstream.BodyMatch?
    /// When the first write to its upstream since then completed, in µs of the store's clock; nil without one.
    var writtenAt: Int64?
    /// The number in memory when its request was sent.
    var number: Int?
    /// How much of it may be on disk; if that is nothing, it is kept in memory, and only if it contains no objects.
    let share: DiskShare
    /// Whether a client waits for the commit, which is then not delayed to form a batch.
    var isAwaited = false
    /// As in `ReceivedDocument`, like `resembled`.
    var findCoverage: (@Sendable ([UInt8]) -> TagCoverage?)?
    var resembled: DocumentID?
    /// The same as another machine has shared it; nil if it has just arrived here.
    var shared: SharedDocument?
    /// Whether only its commit decides that it may be served.
    var needsCommit = false

    /// The earliest time whose state it may show.
    var start: Int64 { sent - age }

    fileprivate var rule: BodyRule? { ready.isJSON && !ready.response.body.isEmpty ? match?.rule : nil }

    fileprivate var isForDisk: Bool {
        switch share {
        case .whole: true
        case .objects: rule != nil
        case .nothing: false
        }
    }

    /// What the store gets, at a time of its clock.
    fileprivate func document(now: Int64, reportsNames: Bool) -> ReceivedDocument {
        let (response, selection) = (ready.response, ready.response.selection)
        let head: [UInt8]? = if case .whole(let fields) = share { fields } else { nil }
        var document = ReceivedDocument(
            key: ready.key,
            variant: selection.bytes,
            selectedBy: ready.upstream.context.rest(of: selection),
            status: response.status,
            head: head ?? [],
            policy: response.policy.bytes,
            body: response.body,
            start: start,
            end: shared?.completed ?? now,
            sent: sent,
            kind: match?.kind ?? .detail,
            rule: rule,
            mappingContext: match?.context(url: ready.key.url, fields: response.fields) ?? .none
        )
        document.isInMemoryOnly = head == nil
        document.upstreamWrittenAt = writtenAt
        document.variantForAllFields = ready.variantForAllFields
        (document.findCoverage, document.resembled) = (findCoverage, resembled)
        document.dividedBy = ready.otherFields?.division
        (document.isShared, document.fetch, document.namesObjects) = (shared != nil, shared?.fetch, reportsNames)
        return document
    }
}

/// Admitting new responses to memory, and submitting them to the store.
extension ResponseCache {
    /// Admits a response to memory, and submits it to the store.
    ///
    /// A response without objects is a hit at once. One with objects becomes a hit with its commit, however long that takes: the
    /// commit marks the other documents that show those objects, and checks whether the response has their newest values. A
    /// response that a write has invalidated never comes here. Until the commit, the predecessor is hidden too, because clients have
    /// already seen newer bytes.
    ///
    /// - Parameters:
    ///   - foreseen: called when it contains objects and will be a hit with the commit that follows at once; on the writer's thread.
    ///   - stored: called with the names of its objects when it is stored and shows all that is known; on the writer's thread.
    ///   - done: called once, on the writer's thread, when it is committed, or never will be; with whether its objects are known
    ///     now.
    /// - Returns: whether it contains objects; if not, `done` is not called.
    @discardableResult
    func admit(
        _ arrival: Arrival,
        foreseen: (@Sendable () -> Void)? = nil,
        stored: (@Sendable ([ObjectName]) -> Void)? = nil,
        done: @escaping @Sendable (_ isKnown: Bool) -> Void = { _ in }
    ) -> Bool {
        let (ready, start) = (arrival.ready, arrival.start)
        let (digest, size) = (ready.entry.digest, ready.response.body.count)
        guard uncommittedBytes.load(ordering: .relaxed) + size <= Self.uncommittedByteLimit else {
            let url: Logger.Metadata = ["url": "\(ready.key.url)"]
            repeated.log(.warning, "the store cannot keep up: a response was not kept", about: [:], url)
            memory.remove(digest)
            store.remove(at: ready.key)
            return false
        }
        let (containsObjects, isForDisk) = (arrival.rule != nil, arrival.isForDisk)
        let waitsForCommit = containsObjects || arrival.needsCommit
        // From here on, writes that complete find it among the arrivals.
        let isLatest = arrival.number.map { memory.isLatest(at: digest, since: $0) } ?? true
        let mayBeOlder: @Sendable () -> Bool = { [uncommittedWrites] in
            uncommittedWrites.mayBeNewer(than: start, of: ready.upstream.storeKey)
        }
        handle(ready) {
            // A response requested before a write may be older than the stored one, so its commit decides. Without a commit, only
            // one that has arrived meanwhile may be newer: the write did not cover this one.
            let isHidden = waitsForCommit || arrival.writtenAt != nil && (isForDisk || !isLatest) || mayBeOlder()
            return .arrived(ready, !isHidden ? .shown : isForDisk ? .hidden : .superseded)
        }
        guard isForDisk else {
            store.remove(at: ready.key) { [self] result in
                let isRemoved = if case .success = result { true } else { false }
                handle(ready) { .committed(ready, isRemoved ? .stored(isClean: true) : .failed(isLost: false)) }
                watch.documentChanged(digest)
            }
            watch.documentChanged(digest)
            return false
        }
        uncommittedBytes.add(size, ordering: .relaxed)
        let isForeseen = foreseen.map { foreseen -> @Sendable () -> Void in { if !mayBeOlder() { foreseen() } } }
        store.receive(
            arrival.document(now: now, reportsNames: stored != nil),
            isAwaited: arrival.isAwaited && waitsForCommit,
            foreseen: containsObjects ? isForeseen : nil
        ) { [self] result in
            if let stored, case .success(let receipt) = result, receipt.document != nil, !receipt.isDirty {
                stored(receipt.names)
            }
            committed(result, ready, containsObjects: containsObjects, mayBeOlder: mayBeOlder)
            uncommittedBytes.subtract(size, ordering: .relaxed)
            if containsObjects { done((try? result.get())?.isObserved ?? false) }
        }
        return containsObjects
    }

    /// Whether a response that may be stored will be kept, on disk or in memory, as far as that is known.
    ///
    /// Memory keeps it without the disk if it is not too large, but not if it contains objects: it would not follow their changes.
    ///
    /// - Parameter length: the length of its body; nil if that is not known yet.
    func hasPlace(for length: Int?, withObjects containsObjects: Bool) -> Bool {
        if containsObjects, store.isBlocked { return false }
        return hasRoom(for: length) || !containsObjects && (length ?? 0) <= memory.largest
    }

    /// Runs on the writer's thread, so that later commits find the response registered under its objects.
    private func committed(
        _ result: Result<Receipt, StoreError>,
        _ ready: ReadyResponse,
        containsObjects: Bool,
        mayBeOlder: () -> Bool
    ) {
        defer { watch.documentChanged(ready.entry.digest) }
        recordRoom(for: ready.response.body.count, result)
        switch result {
        case .success(let receipt):
            // A clean or a write has outdated it, if there is no document. A response with a secret is kept in memory only.
            guard receipt.document != nil || receipt.isInMemoryOnly else {
                return handle(ready) { .committed(ready, .refused) }
            }
            register(ready, under: receipt.objects, asOf: receipt.sequence, isDirty: receipt.isDirty)
            if let id = receipt.document { ready.committed(as: id, showing: receipt.objects) }
            handle(ready) { .committed(ready, .stored(isClean: ready.isClean && !mayBeOlder())) }
        case .failure(.closed):
            // The daemon is stopping, and logs how many commits it gave up.
            handle(ready) { .committed(ready, .failed(isLost: true)) }
        case .failure(let error):
            log.storeFailed("a response could not be stored", error, url: ready.key.url)
            // Without its objects in the store it would not follow their changes.
            handle(ready) { .committed(ready, .failed(isLost: containsObjects)) }
        }
    }

    /// Has the responses under a response's key process an event, and the disk follow.
    func handle(_ ready: ReadyResponse, _ event: () -> Residence<ReadyResponse>.Event) {
        for document in memory.handle(at: ready.entry.digest, of: ready.key, event) { store.remove(document) }
    }
}
