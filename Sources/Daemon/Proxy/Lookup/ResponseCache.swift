import CachePolicy
import HTTPSemantics
import HTTPServer
package import Logging
import Settings
package import Store
import Synchronization

/// The cached responses: the memory tier in front of the store.
///
/// Any thread. The store decomposes and commits kept responses in the background, in bounded amounts. A response without objects
/// is a hit before that; one with objects, once its commit has marked the other documents that show them (`admit`).
package final class ResponseCache: Sendable {
    package let store: ObjectStore
    package let memory: MemoryTier<ReadyResponse>
    /// Notifies the streams of followed documents when a response is kept, freshened or dropped.
    let watch: LiveWatch
    let log: Logger
    let repeated: RepeatedLines
    /// Writes that could not be stored; the disk may have older responses of their upstreams.
    let uncommittedWrites = UncommittedWrites()
    let doubts = OpenDoubts()
    /// Bytes of bodies that are only in memory, because their commit is pending.
    let uncommittedBytes = Atomic<Int>(0)
    /// The limit of `uncommittedBytes`; past it responses are not kept, because the store is too slow.
    static let uncommittedByteLimit = 128 << 20
    /// The length of the shortest body that the store last had no room for; `Int.max` if it has room, as far as that is known.
    ///
    /// On a full disk new responses replace old ones, so a shorter one may fit.
    private let refusedLength = Atomic<Int>(.max)

    package init(store: ObjectStore, memory: MemoryTier<ReadyResponse>, watch: LiveWatch, log: Logger) {
        self.store = store
        self.memory = memory
        self.watch = watch
        (self.log, repeated) = (log, RepeatedLines(log))
        store.observe { [memory] in memory.endWaiting() }
    }

    /// The store's clock, in µs.
    var now: Int64 { store.clock.now() }

    /// The store's clock in seconds; ages are counted by it.
    var seconds: Int64 { store.clock.seconds }

    // MARK: Look-up

    /// A stored policy as of now: its age may have become unknown.
    func aged(_ policy: StoredPolicy) -> StoredPolicy {
        policy.aged(at: seconds, knownSince: store.clock.agesKnownSince / 1_000_000)
    }

    /// The preferred ready response in memory for a request, dirty or not, if there is one.
    ///
    /// - Parameter now: in seconds of the store's clock.
    func inMemory(_ request: ProxyRequest, now: Int64) -> ReadyResponse? {
        memory.responses(at: request.digest)?
            .filter { $0.matches(request) }
            .max { $1.isPreferred(to: $0, for: request.directives, now: now) }
    }

    /// Whether anything may be stored under a digest, or is on its way to disk; looks into memory only.
    func mayKnow(_ digest: Digest128) -> Bool { store.mayHave(digest) || memory.knows(digest) }

    /// Whether a response is on its way to disk under a request's key.
    func isArriving(_ request: ProxyRequest) -> Bool { memory.isArriving(at: request.digest) }

    /// What a document of any principal that was read from disk is by now; nil if it was dropped.
    ///
    /// Call it after reading; every reading of documents does. It applies what is on its way to disk, drops an age that is no longer
    /// known, and marks as outdated what may be older than a write that the disk does not have.
    func current(_ document: StoredDocument) -> StoredDocument? {
        var document = document
        switch memory.change(of: document.id, at: store.hasher.digest(document.key)) {
        case .dropped: return nil
        case .freshened(let new): (document.head, document.policy) = (new.head ?? document.head, new.policy)
        case nil: break
        }
        if let policy = StoredPolicy(bytes: document.policy) { document.policy = aged(policy).bytes }
        if uncommittedWrites.mayBeNewer(than: document.start, of: document.key.upstream) {
            document.form = .outdated(reason: "a write whose effects could not be stored may have changed it")
        }
        return document
    }

    /// The same without composed documents that may be older than a write which the disk does not have: they are neither the received
    /// bytes nor the current state.
    package func currentUnlessOlder(_ document: StoredDocument) -> StoredDocument? {
        current(document).flatMap { document.form == .composed && $0.form != .composed ? nil : $0 }
    }

    /// The responses in documents of a request's principal, as they are by now, by `currentUnlessOlder`.
    ///
    /// - Parameter unreadable: called with each document that cannot be restored as it was received.
    func current(
        _ documents: [StoredDocument],
        for request: ProxyRequest,
        unreadable: (StoredDocument) -> Void = { _ in }
    ) -> [(document: StoredDocument, response: CachedResponse)] {
        documents.compactMap { found in
            guard let document = currentUnlessOlder(found) else { return nil }
            guard let response = CachedResponse(document, for: request) else {
                unreadable(document)
                return nil
            }
            return (document, response)
        }
    }

    /// Puts documents into memory that were read from disk after a number; returns the preferred one for the request, if any
    /// matches.
    ///
    /// A document that cannot be composed with the newest values is not put into memory, nor one with values for this request
    /// only.
    func admit(_ documents: [StoredDocument], for request: ProxyRequest, since number: Int, now: Int64)
        -> ReadyResponse?
    {
        preferred(among: documents, for: request, admittedSince: number, now: now)
    }

    /// The preferred one for a request among documents that were read from disk, if any matches; puts nothing into memory.
    func preferred(among documents: [StoredDocument], for request: ProxyRequest, now: Int64) -> ReadyResponse? {
        preferred(among: documents, for: request, admittedSince: nil, now: now)
    }

    /// - Parameter number: after which they were read, if they are put into memory; nil if they are not.
    private func preferred(
        among documents: [StoredDocument],
        for request: ProxyRequest,
        admittedSince number: Int?,
        now: Int64
    ) -> ReadyResponse? {
        var found: ReadyResponse?
        let current = current(documents, for: request) { document in
            // What an earlier Larder stored with redacted fields is no damage.
            let level: Logger.Level = FieldsOnDisk.isEarlier(document.head) ? .debug : .warning
            log.log(
                level: level,
                "a stored response cannot be restored as it was received, and was dropped",
                metadata: ["url": "\(request.shownURL)"]
            )
            store.remove(document.id)
        }
        for (document, response) in current {
            var ready = ReadyResponse(response, for: request)
            setNextInquiry(of: ready)
            if let newer = admitted(insteadOf: ready, for: request) {
                ready = newer
            } else if let number, !response.isOutdated, !document.isForRequestOnly {
                register(ready, under: document.objects, asOf: document.sequence)
                handle(ready) { [ready] in .read(ready, since: number) }
            }
            guard ready.matches(request) else { continue }
            if found.map({ !$0.isPreferred(to: ready, for: request.directives, now: now) }) ?? true { found = ready }
        }
        return found
    }

    private func setNextInquiry(of ready: ReadyResponse) {
        guard !ready.response.doubts.isEmpty else { return doubts.forget(ready.entry.digest) }
        let lag = ready.upstream.settings.lag.lists.seconds
        let next = doubts.nextInquiry(for: ready.entry.digest, about: ready.response.doubts, lag: lag)
        // A hit compares seconds. What is due is due at once, all else not before its time.
        let seconds = next / 1_000_000 + (next > now && next < .max ? 1 : 0)
        ready.asksAgain.store(seconds, ordering: .relaxed)
    }

    /// Records an inquiry about a document that may show a member in doubt.
    func recordInquiry(about ready: ReadyResponse) {
        guard !ready.response.doubts.isEmpty else { return }
        doubts.recordInquiry(for: ready.entry.digest, about: ready.response.doubts, at: now)
        setNextInquiry(of: ready)
    }

    /// Serves hits for a second although a doubt is due, because the upstream is not asked now.
    func postponeInquiry(about ready: ReadyResponse) {
        if ready.isDoubtDue(at: seconds) { ready.asksAgain.store(seconds + 1, ordering: .relaxed) }
    }

    /// The response put into memory while another was read from disk; it is no older than that one.
    private func admitted(insteadOf ready: ReadyResponse, for request: ProxyRequest) -> ReadyResponse? {
        let kept = memory.responses(at: ready.entry.digest)?
            .first { $0.variant == ready.variant && $0.key == ready.key && $0.isClean }
        guard let kept, kept.upstream !== ready.upstream else { return kept }
        // It was made by the rules of another configuration. If the disk has the same response, that takes its place.
        guard kept.documentID == ready.documentID else { return ReadyResponse(kept.response, for: request) }
        memory.remove(kept, at: kept.entry.digest)
        return nil
    }

    /// Registers a response under its objects, whose changes mark it dirty.
    ///
    /// - Parameter isDirty: whether they had changed by then.
    func register(
        _ ready: ReadyResponse,
        under objects: [ObjectID],
        asOf sequence: CommitNumber,
        isDirty: Bool = false
    ) {
        ready.sequence.store(sequence, ordering: .relaxed)
        // A commit between the snapshot and the registration has not marked it.
        memory.register(ready, under: objects) { isDirty || store.mayHaveChanged(objects, since: sequence) }
    }

    /// Whether a response that was looked up a while ago still shows the newest values.
    ///
    /// It may have left memory since then, so that no change has marked it dirty.
    func isStillClean(_ ready: ReadyResponse) -> Bool {
        guard ready.isClean else { return false }
        guard !ready.entry.followsChanges, let (_, objects) = ready.stored else { return true }
        return !store.mayHaveChanged(objects, since: ready.sequence.load(ordering: .relaxed))
    }

    /// Reports to the store which documents were used, so that it keeps those.
    package func reportUse() {
        let used = memory.takeUsed()
        if !used.isEmpty { store.touchUsed(used) }
    }

    func drop(_ ready: ReadyResponse) {
        handle(ready) { .dropped(ready) }
        watch.documentChanged(ready.entry.digest)
    }

    /// Replaces a validated response by the one that a 304 has freshened.
    ///
    /// A response kept since the request was sent is newer, even if it has already left memory. Then the freshened one is not put
    /// into memory, and the store decides.
    ///
    /// - Parameters:
    ///   - head: its fields as they are on disk.
    ///   - sent: when the request of the 304 was sent, on the store's clock.
    ///   - number: taken from memory at that time.
    func replace(_ stored: ReadyResponse, by ready: ReadyResponse, head: [UInt8], sent: Int64, since number: Int) {
        let document = ready.documentID
        // Until the original is committed, the objects whose changes it must follow are unknown.
        guard document != .zero else { return }
        ready.sequence.store(stored.sequence.load(ordering: .relaxed), ordering: .relaxed)
        // If the original has become dirty, so is its successor.
        memory.register(ready, under: ready.response.objects) { !isStillClean(stored) }
        let policy = ready.response.policy
        let fields = FreshenedFields(head: head, policy: policy.bytes, sent: sent)
        handle(ready) { .freshened(ready, fields, since: number) }
        let digest = ready.entry.digest
        // A 304 from a cache before the upstream is as old as its `Age`.
        let age = policy.knownAge
        let end = now
        let restricted = stored.response.policy.restricted(by: policy)
        let ifDirty = restricted == stored.response.policy ? nil : restricted.bytes
        Task { [self] in
            do throws(StoreError) {
                let outcome = try await store.freshen(
                    document,
                    head: head,
                    policy: policy.bytes,
                    observedFrom: sent - age,
                    observedTo: end,
                    policyIfDirty: ifDirty
                )
                if outcome != .freshened {
                    // The document was replaced, or a change of its objects was committed first: the 304 confirms nothing.
                    handle(ready) { .freshenedInVain(ready, fields) }
                }
                watch.documentChanged(digest)
            } catch {
                log.storeFailed("an updated response could not be stored", error, url: ready.key.url)
            }
        }
    }

    /// Restricts the use of a stored response by the policy of a 304 that does not confirm it, because its objects have changed.
    func restrict(_ stored: ReadyResponse, by policy: StoredPolicy) -> ReadyResponse {
        let restricted = stored.response.policy.restricted(by: policy)
        guard restricted != stored.response.policy else { return stored }
        if let (document, _) = stored.stored {
            handle(stored) { .restricted(document, policy: restricted.bytes) }
            store.restrict(document, policy: restricted.bytes)
        }
        return stored.with(restricted)
    }

    /// Why a look-up found nothing, in terms of RFC 9211: nothing under the URL, or only other variants.
    ///
    /// Asks the disk only if it may have something under the key, and reads no bodies.
    func absence(of request: ProxyRequest) async -> CacheStatus.Forward {
        if memory.responses(at: request.digest)?.contains(where: { $0.key == request.key }) == true { return .varyMiss }
        guard store.mayHave(request.digest) else { return .uriMiss }
        guard let variants = try? await store.variants(at: request.key) else { return .miss }
        return current(variants, for: request).isEmpty ? .uriMiss : .varyMiss
    }
}

/// Several responses to one URL, distinguished by the fields in `Vary` (RFC 9111 §4.1).
extension ResponseCache {
    /// The responses stored under a request's key for other selecting fields that a 304 may confirm, the newest first.
    ///
    /// Bounded by the limits of memory and store; reads no body. A response restricted to requests that agree in their
    /// `OtherFields` is included for other requests only if a 304 may release it to them, and its tag is strong: a weak tag, or a
    /// date, may not distinguish two clients' data.
    func variants(besides request: ProxyRequest) async throws(StoreError) -> [Variant] {
        let fields = request.message.fields
        var known: Set<[UInt8]> = []
        var variants: [Variant] = []
        func add(_ response: CachedResponse, isClean: Bool) {
            let selection = response.selection
            let isOthers = !selection.agrees(with: fields)
            guard !selection.matches(fields), !isOthers || response.isReleasable,
                known.insert(selection.bytes).inserted, isClean, response.form == .asReceived
            else { return }
            let validators = response.validators
            variants.append(
                Variant(selection: selection.bytes, validators: validators, needsStrongTag: isOthers)
            )
        }
        for ready in memory.responses(at: request.digest) ?? [] where ready.key == request.key {
            add(ready.response, isClean: ready.isClean)
        }
        let documents = try await store.variants(at: request.key)
        for (_, response) in current(documents, for: request) { add(response, isClean: true) }
        return variants.sorted { ($0.validators.date ?? .min) > ($1.validators.date ?? .min) }
    }

    /// Whether variants besides the chosen one may be stored under a request's key; looks into memory only.
    func mayHaveVariants(besides stored: ReadyResponse?, of request: ProxyRequest) -> Bool {
        if let stored, stored.response.selection.named == .none { return false }
        return store.mayHave(request.digest) || memory.responses(at: request.digest) != nil
    }
}

extension ReadyResponse {
    /// The precedence among several responses that a request selects.
    ///
    /// Responses with `Vary` precede those without it, because some servers omit the field from their default responses. Then the
    /// most recent by `Date` comes first.
    static func precedence(of response: CachedResponse) -> Int64 {
        response.policy.date &+ (response.selection.named == .none ? 0 : 1 << 40)
    }

    /// Whether this response is preferred to another that the request selects as well.
    ///
    /// A fresh one is preferred to a stale one; then precedence decides, then the later arrival.
    func isPreferred(to other: ReadyResponse, for directives: RequestDirectives, now: Int64) -> Bool {
        let (isFresh, isOtherFresh) = (isFresh(for: directives, now: now), other.isFresh(for: directives, now: now))
        if isFresh != isOtherFresh { return isFresh }
        if precedence != other.precedence { return precedence > other.precedence }
        return policy.responseTime > other.policy.responseTime
    }

    private func isFresh(for directives: RequestDirectives, now: Int64) -> Bool {
        // One that does not show the newest values has to be asked for, however long it would last.
        guard !response.isOutdated else { return false }
        return if case .fresh = policy.reuse(at: now, for: directives) { true } else { false }
    }
}

/// Whether the store has room, as its commits show.
extension ResponseCache {
    /// - Parameter length: nil for a body that may have any length.
    func hasRoom(for length: Int?) -> Bool { (length ?? Int.max - 1) < refusedLength.load(ordering: .relaxed) }

    /// Runs on the writer's thread, and nowhere else.
    func recordRoom(for length: Int, _ result: Result<Receipt, StoreError>) {
        let refused = refusedLength.load(ordering: .relaxed)
        switch result {
        case .success where length >= refused: refusedLength.store(.max, ordering: .relaxed)
        case .failure(.full), .failure(.unwritable): refusedLength.store(min(refused, length), ordering: .relaxed)
        case .success, .failure: break
        }
    }
}
