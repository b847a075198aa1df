import Store

/// The life of the responses under one cache key: which of them look-ups find, which are on their way to disk, and which documents
/// on disk are no longer what a reader may still find.
///
/// This is a value without I/O. It lives in its shard of the memory tier, under the shard's lock. `handle` takes an event and
/// returns actions; the tier and its owner perform them. `ResidenceTests` visits every reachable state.
///
/// ```
///            ┌─ shown ─────────────── committed ─┐
/// arrived ───┤                                   ├─► resident ─┬─► left: replaced, evicted, invalidated, dropped
///            └─ hidden ─┬─ committed, clean ─────┘        ▲    └─ an object changed ─► dirty ─► left, or read again
///                       ├─ committed, dirty ─► disk only ─┴─ read
///                       ├─ superseded by a later arrival ─► disk only
///                       └─ dropped ─► its commit removes it from disk
/// ```
///
/// A dirty resident keeps its place until it is read again, composed with the newest values, but no look-up serves it. Its entry's
/// flag says it: the index of objects sets that without this value, because one change may concern thousands of responses. What it
/// means is decided here.
///
/// Until its commit, the objects in a response are unknown: other responses that show them are served unchanged, and the disk has
/// an older response in its own place. So a response with objects is hidden until its commit, which updates all others at the same
/// moment. Its predecessor is hidden too, because clients have already seen newer bytes.
struct Residence<Response: MemoryResident> {
    /// Whether look-ups find a response that is on its way to disk, and what its commit does.
    enum Visibility: Hashable {
        /// It is resident, or has been.
        case shown
        /// Its commit makes it resident, if it is clean.
        case hidden
        /// No look-up may find it: a later response of its variant arrived meanwhile, or it may be the older one itself.
        case superseded
        /// It is outdated; its commit removes it from disk.
        case dropped
    }

    /// A response on its way to disk.
    struct Arrival {
        let response: Response
        var visibility: Visibility
    }

    /// How a commit ended.
    enum Commit: Hashable {
        /// The response is on disk or, if only memory may have it, its predecessors are no longer there.
        case stored(isClean: Bool)
        /// A clean or a write has outdated it.
        case refused
        /// The disk does not have it; `isLost` if memory may not keep it without its objects.
        case failed(isLost: Bool)
    }

    enum Event: Sendable {
        /// A response has arrived whole; its commit follows.
        case arrived(Response, Visibility)
        /// The commit of a response that was on its way is over; its document is noted in it.
        case committed(Response, Commit)
        /// A response turned out to be outdated.
        case dropped(Response)
        /// A 304 has given the document of a response new fields.
        ///
        /// It takes the place of the document's resident, or an empty one if nothing happened under the key after the number.
        case freshened(Response, FreshenedFields, since: Int)
        /// The disk has refused the fields: the document or its objects have changed.
        case freshenedInVain(Response, FreshenedFields)
        /// A 304 that confirms nothing has restricted the use of a document.
        case restricted(DocumentID, policy: [UInt8])
        /// A response was read from disk after a number; it takes the place of a dirty one of its variant only.
        case read(Response, since: Int)
        /// A response was made from another one that is resident, for a view or an address.
        case made(Response)
        /// These responses are gone from disk, or will be; readers may have found them before.
        case removed(@Sendable (Response) -> Bool)
        /// These responses leave memory: evicted, invalidated by a write or a clean (see `InvalidationLog`), or to be replaced.
        case left(@Sendable (Response) -> Bool)

        /// Whether it counts, for readers that do not see it on disk yet.
        var isNumbered: Bool {
            switch self {
            case .arrived, .committed, .dropped, .freshened, .restricted, .removed: true
            case .freshenedInVain, .read, .made, .left: false
            }
        }
    }

    /// An instruction for the tier, or for its owner.
    enum Action: Sendable {
        /// Look-ups find the response from now on.
        case enter(Response)
        /// It was resident, and is no longer.
        case leave(Response)
        /// It is not resident, and will not be.
        case discard(Response)
        /// It does not show the newest values.
        case markDirty(Response)
        case remove(DocumentID)
        /// Look-ups that wait for an arrival go on.
        case wake
    }

    /// What only misses need.
    struct Transit {
        /// In the order in which they are committed.
        var arrivals: [Arrival] = []
        /// Recent changes, each with its number.
        var changes: [DocumentID: (number: Int, change: DocumentChange)] = [:]
        /// The number of the last arrival or removal: a request sent before has an older response.
        var superseded = 0
        /// The number of the last of these, or of the last commit: a reader from before has found an older state.
        var altered = 0

        var isEmpty: Bool { arrivals.isEmpty && changes.isEmpty && superseded == 0 && altered == 0 }
    }

    /// A hit copies one reference more, mostly nil.
    ///
    /// Copies of a residence share it until one of them changes.
    final class Box {
        var transit: Transit
        init(_ transit: Transit) { self.transit = transit }
    }

    /// The responses that look-ups find, by precedence.
    var residents: [Response] = []
    var box: Box?

    var transit: Transit {
        get { box?.transit ?? Transit() }
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box?.transit ?? Transit()) }
            yield &box!.transit
            if box!.transit.isEmpty { box = nil }
        }
    }

    var isEmpty: Bool { residents.isEmpty && box == nil }

    /// Processes an event; returns the actions to perform, in order.
    ///
    /// - Parameters:
    ///   - number: of the event, or of the last one that counts.
    ///   - forgotten: up to which number nothing is known any more.
    mutating func handle(_ event: Event, number: Int, forgotten: Int = 0) -> [Action] {
        switch event {
        case .arrived(let response, let visibility):
            supersede(number)
            for index in transit.arrivals.indices where response.replaces(transit.arrivals[index].response) {
                if transit.arrivals[index].visibility == .hidden { transit.arrivals[index].visibility = .superseded }
            }
            transit.arrivals.append(Arrival(response: response, visibility: visibility))
            return leave { response.replaces($0) } + (visibility == .shown ? enter(response) : [])
        case .committed(let response, let commit): return committed(response, commit, number)
        case .dropped(let response): return dropped(response, number)
        case .freshened(let response, let fields, let since):
            return freshened(response, fields, isLatest: isLatest(since, forgotten), number)
        case .freshenedInVain(let response, let fields):
            if case .freshened(let latest) = change(of: response.documentID) {
                if latest == fields { transit.changes[response.documentID] = nil }
                // A restriction since then has kept its fields.
                if latest.isRestriction, latest.head == fields.head {
                    let policyAlone = FreshenedFields(restrictedTo: latest.policy)
                    transit.changes[response.documentID]?.change = .freshened(policyAlone)
                }
            }
            return [.markDirty(response)] + leave { $0 === response }
        case .restricted(let document, let policy):
            var fields = FreshenedFields(restrictedTo: policy)
            switch change(of: document) {
            case .dropped: return []
            case .freshened(let earlier): fields.head = earlier.head
            case nil: break
            }
            transit.changes[document] = (number, .freshened(fields))
            return []
        case .read(let response, let since):
            let isUseless = isArriving || isDropped(response.documentID) || hasChanged(since: since, forgotten)
            let other = residents.first { $0.isOfVariant(of: response) }
            guard !isUseless, other.map(\.isDirty) ?? true else { return [.discard(response)] }
            return leave { $0 === other } + enter(response)
        case .made(let response): return leave { $0.isOfVariant(of: response) } + enter(response)
        case .removed(let isMeant):
            supersede(number)
            return leave(where: isMeant)
        case .left(let isMeant): return leave(where: isMeant)
        }
    }

    private mutating func committed(_ response: Response, _ commit: Commit, _ number: Int) -> [Action] {
        guard let index = transit.arrivals.firstIndex(where: { $0.response === response }) else {
            return [.discard(response), .wake]
        }
        let visibility = transit.arrivals.remove(at: index).visibility
        transit.altered = number
        switch (commit, visibility) {
        case (.refused, _), (.failed(isLost: true), _): return leave { $0 === response } + [.wake]
        case (.stored, .shown), (.failed(isLost: false), .shown): return [.wake]
        case (.stored(isClean: true), .hidden): return leave { response.replaces($0) } + enter(response) + [.wake]
        case (.stored, .dropped): return [.discard(response)] + drop(response.documentID, number) + [.wake]
        case (.stored, .hidden), (.stored, .superseded), (.failed, _): return [.discard(response), .wake]
        }
    }

    private mutating func dropped(_ response: Response, _ number: Int) -> [Action] {
        let gone = leave { $0 === response }
        if let index = transit.arrivals.firstIndex(where: { $0.response === response }) {
            transit.arrivals[index].visibility = .dropped
            return gone
        }
        return gone + drop(response.documentID, number)
    }

    private mutating func drop(_ document: DocumentID, _ number: Int) -> [Action] {
        guard document != .zero else { return [] }
        transit.changes[document] = (number, .dropped)
        // Its successor has the same key.
        return leave { $0.documentID == document } + [.remove(document)]
    }

    private mutating func freshened(_ response: Response, _ fields: FreshenedFields, isLatest: Bool, _ number: Int)
        -> [Action]
    {
        let document = response.documentID
        guard !isDropped(document) else { return [.discard(response)] }
        transit.changes[document] = (number, .freshened(fields))
        // A response that arrived since the request was sent is newer, even if it has already left memory.
        guard isLatest || residents.contains(where: { $0.documentID == document }) else { return [.discard(response)] }
        return leave { $0.isOfVariant(of: response) } + enter(response)
    }

    private mutating func enter(_ response: Response) -> [Action] {
        residents.insert(
            response,
            at: residents.firstIndex { $0.precedence <= response.precedence } ?? residents.endIndex
        )
        return [.enter(response)]
    }

    private mutating func leave(where isMeant: (Response) -> Bool) -> [Action] {
        let gone = residents.filter(isMeant)
        guard !gone.isEmpty else { return [] }
        residents.removeAll { response in gone.contains { $0 === response } }
        return gone.map { .leave($0) }
    }

    /// What a reader of the disk must know of a document that it has found.
    func change(of document: DocumentID) -> DocumentChange? { box?.transit.changes[document]?.change }

    private func isDropped(_ document: DocumentID) -> Bool { change(of: document) == .dropped }

    /// Whether nothing has arrived or was removed after a number.
    func isLatest(_ since: Int, _ forgotten: Int) -> Bool { max(transit.superseded, forgotten) <= since }

    func hasChanged(since: Int, _ forgotten: Int) -> Bool { max(transit.altered, forgotten) > since }

    private mutating func supersede(_ number: Int) { (transit.superseded, transit.altered) = (number, number) }

    var isArriving: Bool { !transit.arrivals.isEmpty }

    mutating func forget(upTo number: Int) {
        guard box != nil else { return }
        transit.changes = transit.changes.filter { $0.value.number > number }
        if transit.superseded <= number { transit.superseded = 0 }
        if transit.altered <= number { transit.altered = 0 }
    }
}

/// What has become of a document, although a reader of the disk may find it as it was.
enum DocumentChange: Hashable {
    case dropped
    case freshened(FreshenedFields)
}

/// A document's fields after a 304, or after the response to a HEAD; the rest of it is unchanged.
struct FreshenedFields: Hashable {
    /// The fields as they are on disk; nil if they are the same.
    var head: [UInt8]?
    /// The input for computing freshness.
    var policy: [UInt8]
    /// When the validating request was sent, on the store's clock; 0 for a 304 that confirmed nothing.
    var sent: Int64

    var isRestriction: Bool { sent == 0 }
}

extension FreshenedFields {
    /// What a 304 leaves of a document that it does not confirm.
    init(restrictedTo policy: [UInt8]) { self.init(head: nil, policy: policy, sent: 0) }
}
