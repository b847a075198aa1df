package import CachePolicy
import HTTPSemantics
import HTTPServer
package import Logging
import Settings
package import Store
import Synchronization

/// What Larder knows, as responses: the memory tier in front of the store.
///
/// Any thread. What is kept is taken apart into objects and committed on the store's side, in bounded amounts. A response
/// without objects is a hit before that; one with objects, once its commit has marked what shows them (`keep`).
package final class ResponseCache: Sendable {
    package let store: ObjectStore
    package let memory: MemoryTier<ReadyResponse>
    /// Tells those who follow a document of what is kept, freshened or dropped.
    let watch: LiveWatch
    let log: Logger
    /// Documents that were dropped, of which a reader of the store may still find some.
    private let dropped = Mutex(RecentDocuments<Void>())
    /// What a 304 or a HEAD has made of a document's fields; the rest of it is as it was.
    private struct FreshenedFields {
        /// In the form of `StoredHead`.
        var head: [UInt8]
        var policy: StoredPolicy
        /// When it was asked about, on the store's clock.
        var sent: Int64
    }

    /// Documents whose fields were freshened, of which a reader of the store may still find the old ones.
    private let freshened = Mutex(RecentDocuments<FreshenedFields>())
    /// Answers whose commit is still to come: what the disk has in their place is older.
    let commits = PendingCommits()
    /// Writes that could not be stored: what the disk has of their upstreams may be older.
    let unsettled = UnsettledWrites()
    /// Documents that show a member in doubt.
    let doubts = OpenDoubts()
    /// Bytes of bodies that are kept in memory only, because their commit is still to come.
    let uncommitted = Atomic<Int>(0)
    /// Past this, answers are not kept: the store cannot follow.
    static let uncommittedLimit = 128 << 20

    package init(store: ObjectStore, memory: MemoryTier<ReadyResponse>, watch: LiveWatch, log: Logger) {
        self.store = store
        self.memory = memory
        self.watch = watch
        self.log = log
    }

    /// The store's clock, in µs.
    var now: Int64 { store.clock.now() }

    /// The store's clock in seconds; ages are counted by it.
    var seconds: Int64 { store.clock.seconds }

    // MARK: Looking up

    /// The preferred ready response in memory for a request, dirty or not; nil where memory knows none.
    ///
    /// - Parameter now: in seconds of the store's clock.
    package func inMemory(_ request: ProxyRequest, now: Int64) -> ReadyResponse? {
        memory.responses(at: request.digest)?
            .filter { $0.matches(request) }
            .max { $1.isPreferred(to: $0, for: request.directives, now: now) }
    }

    /// Keeps in memory what was read from disk, and gives the preferred one that answers the request; nil where none does.
    ///
    /// What cannot be composed, though something newer is known, is not kept.
    func admit(_ documents: [StoredDocument], for request: ProxyRequest, now: Int64) -> ReadyResponse? {
        var found: ReadyResponse?
        // Before memory is looked into: what is committed from then on is found there.
        let isPending = commits.contains(request.digest)
        for document in documents {
            guard !isDropped(document.id) else { continue }
            guard var response = CachedResponse(document) else {
                log.warning("a stored response is unreadable and was dropped", metadata: ["url": "\(request.key.url)"])
                store.remove(document.id)
                continue
            }
            if let fresh = freshened.withLock({ $0[document.id] }) {
                (response.fields, response.policy) = (StoredHead.decode(fresh.head), fresh.policy)
            }
            response.policy = response.policy.aged(at: now, knownSince: store.clock.agesKnownSince / 1_000_000)
            if unsettled.mayBeNewer(than: document.start, of: request.upstream.storeKey) {
                // Composed, it is neither what was received nor what is known.
                guard response.form != .composed else { continue }
                response.form = .outdated
            }
            var ready = ReadyResponse(response, for: request)
            noteDoubts(of: ready)
            if let newer = kept(insteadOf: ready) {
                ready = newer
            } else if response.form != .outdated, !isPending {
                register(ready, under: document.objects, asOf: document.sequence)
                memory.insert(ready, at: request.digest, insteadOf: { !$0.isClean })
            }
            guard ready.matches(request) else { continue }
            if found.map({ !$0.isPreferred(to: ready, for: request.directives, now: now) }) ?? true { found = ready }
        }
        return found
    }

    private func noteDoubts(of ready: ReadyResponse) {
        guard !ready.response.doubts.isEmpty else { return doubts.forget(ready.residence.digest) }
        ready.asksAgain.store(
            doubts.nextInquiry(
                for: ready.residence.digest,
                about: ready.response.doubts,
                lag: ready.upstream.settings.lag.lists.seconds
            ),
            ordering: .relaxed
        )
    }

    /// Notes that a document is being asked for, which may show a member in doubt.
    func noteInquiry(about ready: ReadyResponse) {
        guard !ready.response.doubts.isEmpty else { return }
        doubts.noteInquiry(for: ready.residence.digest, about: ready.response.doubts, at: seconds)
        noteDoubts(of: ready)
    }

    /// What memory was given in the place of a response while that was read: it is no older than what the disk had.
    private func kept(insteadOf ready: ReadyResponse) -> ReadyResponse? {
        memory.responses(at: ready.residence.digest)?
            .first { $0.variant == ready.variant && $0.key == ready.key && $0.isClean }
    }

    /// Puts a response among those that are flipped when one of its objects changes.
    func register(_ ready: ReadyResponse, under objects: [ObjectID], asOf sequence: Int64) {
        ready.asOf.store(sequence, ordering: .relaxed)
        memory.register(ready, under: objects)
        // A commit between the snapshot and the registration has not marked it.
        if store.mayHaveChanged(objects, since: sequence) { ready.residence.isDirty.store(true, ordering: .relaxed) }
    }

    /// Whether nothing newer is known than a response shows that was looked up a while ago, and may have left memory since:
    /// then nobody has flipped it.
    func isStillClean(_ ready: ReadyResponse) -> Bool {
        guard ready.isClean else { return false }
        guard !ready.residence.followsChanges, let (_, objects) = ready.stored else { return true }
        return !store.mayHaveChanged(objects, since: ready.asOf.load(ordering: .relaxed))
    }

    /// Tells the store which documents were used, so that it keeps those.
    package func reportUse() {
        let used = memory.takeUsed().map { $0.document.load(ordering: .relaxed) }.filter { $0 != .zero }
        if !used.isEmpty { store.touchUsed(used) }
    }

    /// Whether a document was dropped, which a reader of the store may still find.
    package func isDropped(_ document: DocumentID) -> Bool { dropped.withLock { $0[document] != nil } }

    /// Forgets a response that is good for nothing any more, in memory and on disk.
    func drop(_ ready: ReadyResponse) {
        let digest = ready.residence.digest
        memory.remove(ready, at: digest)
        defer { watch.documentChanged(digest) }
        // Its commit is still to come, and drops it then.
        if ready.stored == nil, commits.refute(ready) { return }
        guard let (document, _) = ready.stored else { return }
        // By name: what is kept in its place from now on lies under the same digest.
        for response in memory.responses(at: digest) ?? [] where response.stored?.document == document {
            memory.remove(response, at: digest)
        }
        dropped.withLock { $0.insert((), of: document) }
        store.remove(document)
    }

    /// Puts a response that a 304 has freshened in the place of the one that was asked about.
    ///
    /// What was kept since the request was sent is newer, also where memory has let go of it already: then this one is not
    /// put into memory, and the store says what it is.
    ///
    /// - Parameters:
    ///   - sent: when the request that the 304 answers was sent, on the store's clock.
    ///   - isLatest: whether nothing has been kept under the cache key since.
    func freshen(_ stored: ReadyResponse, with ready: ReadyResponse, sent: Int64, isLatest: Bool) {
        let document = ready.document.load(ordering: .relaxed)
        // Until the commit of what it freshens, nobody knows whose changes it would have to follow.
        guard document != .zero else { return }
        ready.asOf.store(stored.asOf.load(ordering: .relaxed), ordering: .relaxed)
        memory.register(ready, under: ready.response.objects)
        // Dirty in the meantime: so is its successor.
        if !isStillClean(stored) { ready.residence.isDirty.store(true, ordering: .relaxed) }
        let (head, policy) = (StoredHead.encode(ready.upstream.storable(ready.response.fields)), ready.response.policy)
        freshened.withLock { $0.insert(FreshenedFields(head: head, policy: policy, sent: sent), of: document) }
        let digest = ready.residence.digest
        let isResident = memory.responses(at: digest)?.contains { $0.stored?.document == document } == true
        if !commits.contains(digest, besides: document), !isDropped(document),
            isResident || isLatest
        {
            memory.insert(ready, at: digest, insteadOf: { $0.stored?.document == document })
        } else {
            memory.discard(ready)
        }
        // A 304 out of a cache between us and the upstream is as old as that says.
        let age = policy.knownAge
        let end = now
        Task { [self] in
            do throws(StoreError) {
                let outcome = try await store.freshen(
                    document,
                    head: head,
                    policy: policy.bytes,
                    observedFrom: sent - age,
                    observedTo: end
                )
                if outcome != .freshened {
                    // It was replaced, or what had come before the 304 was committed after it: the 304 does not count.
                    freshened.withLock { $0.remove(document) { $0.sent == sent } }
                    ready.residence.isDirty.store(true, ordering: .relaxed)
                    memory.remove(ready, at: digest)
                }
                watch.documentChanged(digest)
            } catch {
                log.log(
                    level: error.logLevel,
                    "a renewal could not be stored",
                    metadata: ["error": "\(error)", "url": "\(ready.key.url)"]
                )
            }
        }
    }
}

extension ResponseCache {
    /// Why a request found nothing, as RFC 9211 distinguishes it: nothing under its URL, or other variants only.
    ///
    /// Asks the disk only where something may be under the key, and reads no bodies.
    package func absence(of request: ProxyRequest) async -> CacheStatus.Forward {
        if memory.responses(at: request.digest)?.contains(where: { $0.key == request.key }) == true { return .varyMiss }
        guard store.mayHave(request.digest) else { return .uriMiss }
        let isFound = Locked(false)
        do {
            _ = try await store.documents(at: request.key) { _ in
                isFound.value = true
                return false
            }
        } catch {
            return .miss
        }
        return isFound.value ? .varyMiss : .uriMiss
    }
}

/// Several responses to one URL, distinguished by what `Vary` names (RFC 9111 §4.1).
extension ResponseCache {
    /// What is stored under a request's key for requests with other selecting fields, the newest first.
    ///
    /// Bounded by the limits of memory and store; no body is read. What is for requests alone that agree in their
    /// `OtherFields` is none of them for others: a tag may not distinguish two clients' data.
    package func variants(besides request: ProxyRequest) async throws(StoreError) -> [Variant] {
        let fields = request.message.fields
        var known: Set<[UInt8]> = []
        var variants: [Variant] = []
        for ready in memory.responses(at: request.digest) ?? [] where ready.key == request.key {
            let selection = ready.response.selection
            guard !selection.matches(fields), selection.agrees(with: fields), known.insert(selection.bytes).inserted
            else { continue }
            let isAskable = ready.isClean && ready.response.form == .received
            let validators = Preconditions.Stored(fields: ready.response.fields, policy: ready.response.policy)
            variants.append(Variant(selection: selection.bytes, validators: isAskable ? validators : nil))
        }
        for stored in try await store.variants(at: request.key) {
            guard let selection = VarySelection(bytes: stored.variant), !selection.matches(fields),
                selection.agrees(with: fields), known.insert(stored.variant).inserted,
                let policy = StoredPolicy(bytes: stored.policy)
            else { continue }
            let validators = Preconditions.Stored(fields: StoredHead.decode(stored.head), policy: policy)
            variants.append(Variant(selection: stored.variant, validators: stored.isSuspicious ? nil : validators))
        }
        return variants.sorted { ($0.validators?.date ?? .min) > ($1.validators?.date ?? .min) }
    }

    /// Whether others than the one chosen may be stored under a request's key; memory only.
    func mayHaveVariants(besides stored: ReadyResponse?, of request: ProxyRequest) -> Bool {
        if let stored, stored.response.selection.without(OtherFields.name) == .none { return false }
        return store.mayHave(request.digest) || memory.responses(at: request.digest) != nil
    }
}

extension ReadyResponse {
    /// The order of several responses that a request selects: those that `Vary` selected before those that came without it,
    /// since some servers forget the field in their default responses, and the most recent by `Date` before older ones.
    static func precedence(of response: CachedResponse) -> Int64 {
        response.policy.date &+ (response.selection.without(OtherFields.name) == .none ? 0 : 1 << 40)
    }

    /// Whether this one is rather used than another one that the request selects as well: a fresh one before a stale one,
    /// then by precedence, then the later arrival.
    package func isPreferred(to other: ReadyResponse, for directives: RequestDirectives, now: Int64) -> Bool {
        let (isFresh, isOtherFresh) = (isFresh(for: directives, now: now), other.isFresh(for: directives, now: now))
        if isFresh != isOtherFresh { return isFresh }
        if precedence != other.precedence { return precedence > other.precedence }
        return policy.responseTime > other.policy.responseTime
    }

    private func isFresh(for directives: RequestDirectives, now: Int64) -> Bool {
        if case .fresh = policy.reuse(at: now, for: directives) { true } else { false }
    }
}

/// Which documents show a member in doubt, and when each is to be asked for again (law 3).
///
/// Any thread. In memory, and bounded: what is forgotten is asked for at once.
final class OpenDoubts: Sendable {
    private static let capacity = 4096

    private struct Inquiry {
        /// When the document was asked for last, in seconds of the store's clock.
        var asked: Int64
        /// How often it was, in vain.
        var count: Int
    }

    private let inquiries = Mutex<[Digest128: Inquiry]>([:])

    /// When a document is to be asked for again, in seconds of the store's clock.
    ///
    /// Once for each doubt; where that does not settle it, again after `lag`, twice `lag`, and so on.
    ///
    /// - Parameters:
    ///   - doubts: from when on each doubt that it shows is to be settled, in µs of the store's clock.
    ///   - lag: how far lists may lag, in seconds.
    func nextInquiry(for digest: Digest128, about doubts: [Int64], lag: Int64) -> Int64 {
        let times = doubts.map { $0 / 1_000_000 }
        guard let first = times.min() else { return .max }
        guard let inquiry = inquiries.withLock({ $0[digest] }) else { return first }
        let again = inquiry.asked + max(lag, 1) << Int64(min(inquiry.count - 1, 10))
        return min(again, times.filter { $0 > inquiry.asked }.min() ?? .max)
    }

    /// Notes that a document is being asked for.
    func noteInquiry(for digest: Digest128, about doubts: [Int64], at now: Int64) {
        inquiries.withLock { inquiries in
            if inquiries.count >= Self.capacity, inquiries[digest] == nil { inquiries = [:] }
            let known = inquiries[digest]
            let isNew = known.map { known in doubts.contains { $0 / 1_000_000 > known.asked } } ?? true
            inquiries[digest] = Inquiry(asked: now, count: isNew ? 1 : (known?.count ?? 0) + 1)
        }
    }

    /// Forgets a document that shows no doubt any more.
    func forget(_ digest: Digest128) {
        inquiries.withLock { inquiries in
            if !inquiries.isEmpty { inquiries[digest] = nil }
        }
    }
}

/// What a closure on another thread finds out, on its way back.
final class Locked<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) { state = Mutex(value) }

    var value: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
