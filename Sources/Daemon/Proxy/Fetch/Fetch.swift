/// One miss: a request on its way to the upstream, and everybody who waits for its response.
///
/// A value without I/O. What happens is given to `handle` as an event; what is to be done about it comes back as actions, in
/// order, and `RunningFetch` does it. However the events come, each client gets one end of its response, and the store is
/// given the response at most once: `FetchTests` visits every state that it can come to.
///
/// ```
/// asking ─┬─ head ─┬─ relaying ─── whole ─┬──────────────────────► over
///         │        ├─ gathering ── whole ─┴─ committing ─ commit ─► over
///         │        ├─ freshening ─ freshened (a 304) ──┘
///         │        └─ served from the store, or fetched anew ─────► over
///         └─ absence ─ noting ─ noted, then the head as above
/// ```
struct Fetch: Hashable {
    /// Somebody who waits for the response.
    struct Client: Hashable {
        let id: Int
        /// Whether the fetch began for it; the others joined.
        var isLeader = false
        /// Whether it is given JSON in another form than it comes, which takes the whole body: in the mapped view, or with other
        /// links.
        var wantsRendering = false
        /// Whether it asked for a part, which is cut from the whole body.
        var wantsCut = false
    }

    /// Where a fetch is.
    enum Phase: Hashable {
        /// No head has come yet.
        case asking
        /// The head says that an object is gone. It waits until that is committed.
        case noting
        /// The body is passed on as it arrives.
        case relaying
        /// The body is kept until it is whole, because clients are given something that is made of it.
        case gathering
        /// The head is a 304: it is found out which stored response it freshens.
        case freshening
        /// The response is whole. Its end waits for the commit of the objects in it.
        case committing
        /// Nobody waits any more, and nothing is to be stored.
        case over
    }

    /// What the head of a response means, as policy has it.
    struct Head: Hashable {
        enum Kind: Hashable {
            /// A 304 to Larder's own conditions.
            case notModified
            /// A part that does not make the stored parts whole.
            case unfitPart
            case ordinary
        }

        var kind = Kind.ordinary
        /// The clients that a stored response is served to instead; nil where this is no failure, or nothing is stored.
        var canHaveStale: Set<Int>?
        /// Whether the response is stored once its body is whole.
        var isStorable = false
        /// Whether a response that is not stored shows all the same that the stored one is outdated.
        var isNews = false
        /// The followers that asked for another variant.
        var others: Set<Int> = []
        /// Whether the body can be given in another form.
        var isRenderable = false
        /// Whether the body is the whole document.
        var isWhole = true
        /// Whether the body makes stored parts whole.
        var completesParts = false
    }

    /// How the transfer ended.
    enum End: Hashable {
        case whole
        /// The message is whole, its content coding is not.
        case cut
        case failed
    }

    /// What has become of a body that is whole, or of a 304.
    enum Kept: Hashable {
        /// It cannot be used.
        case unusable
        /// It can be served now.
        case ready
        /// It can be served once the objects in it are committed.
        case withheld
    }

    enum Event {
        case joined(Client)
        /// A client is gone.
        case left(Int)
        /// The head says that an object is gone.
        case absence
        /// The head; after `absence`, once that is committed.
        case head(Head)
        /// A piece of the body, and whether there is memory to keep it.
        case body([UInt8], fits: Bool)
        /// These clients are too far behind the fastest one.
        case lagging([Int])
        case ended(End)
        /// What `keep` led to.
        case kept(Kept)
        /// What `freshen` led to.
        case freshened(Kept)
        /// The objects in the response are committed, or never will be.
        case committed
        /// The commit takes longer than clients are made to wait.
        case commitIsLate
    }

    /// Why a response that was to be stored is not.
    enum Loss: Equatable {
        case tooLarge, truncated
    }

    /// What is to be done.
    ///
    /// `serve`, `serveStale`, `serveUnstored`, `fail`, `finish`, `abort` and the three `fetch…` are ends: the
    /// client has got its response, or waits elsewhere.
    enum Action: Equatable {
        /// Commit that the object is gone, then give the head.
        case noteAbsence
        /// Let nobody join any more.
        case stopJoining
        case resume
        case cancel
        /// Pass on the head, and these pieces of the body.
        case begin(Int, [[UInt8]])
        /// Pass on a piece of the body to everybody.
        case write([UInt8])
        /// The pieces that a client was given are kept no longer.
        case keptNoLonger(Int)
        case finish(Int)
        case abort(Int)
        /// Serve what was kept or freshened.
        case serve([Int])
        /// Serve the whole body, which is not stored.
        case serveUnstored([Int])
        /// Serve what is stored in place of an upstream's failure.
        case serveStale([Int])
        /// Serve what is stored in place of a response that never came, or say what went wrong.
        case fail([Int])
        /// Fetch what these clients want instead.
        case fetchApart([Int])
        /// Fetch the whole instead of what is missing.
        case fetchWhole([Int])
        /// Fetch without conditions.
        case fetchUnconditionally([Int])
        /// Drop what was stored before: it is outdated, and nothing takes its place.
        case supersede
        case explainLoss(Loss)
        /// Keep the whole body, then say by `kept` what came of it.
        case keep
        /// Find out what a 304 freshens, then say by `freshened` what came of it.
        case freshen
        /// Let what was kept be found before its commit.
        case show
        /// The fetch is over.
        case end
    }

    private(set) var clients: [Client] = []
    private(set) var phase = Phase.asking
    private(set) var body: BodyBuffer
    /// Whether the response is to be stored.
    private(set) var isStoring = false
    /// Whether the fetch has brought what a refresh in the background is for.
    private(set) var hasRefreshed = false
    /// Whether the transfer is over.
    private(set) var isTransferred = false
    /// Whether it is a refresh in the background, which nobody waits for.
    let isRefresh: Bool
    private var completesParts = false
    /// How the transfer ended while the head waited.
    private var endWhileNoting: End?
    private var isOver = false

    /// - Parameter limit: the largest body that is kept, in bytes.
    init(isRefresh: Bool = false, limit: Int) {
        self.isRefresh = isRefresh
        body = BodyBuffer(limit: limit)
    }

    /// Takes an event in; returns what is to be done about it, in order.
    mutating func handle(_ event: Event) -> [Action] {
        var actions = step(event)
        if phase == .over, isTransferred, !isOver {
            isOver = true
            actions.append(.end)
        }
        return actions
    }

    private mutating func step(_ event: Event) -> [Action] {
        switch event {
        case .joined(let client):
            clients.append(client)
            return phase == .relaying ? [.begin(client.id, body.pieces)] : []
        case .left(let id): return left(id)
        case .absence:
            phase = .noting
            return [.noteAbsence]
        case .head(let head): return received(head)
        case .body(let piece, let fits): return received(piece, fits)
        case .lagging(let ids): return take { ids.contains($0.id) }.map { .abort($0) }
        case .ended(let end): return ended(end)
        case .kept(let kept): return self.kept(kept)
        case .freshened(.unusable):
            phase = .over
            return [.fetchUnconditionally(take())]
        case .freshened(.ready): return serve()
        case .freshened(.withheld), .committed, .commitIsLate: return committing(event)
        }
    }

    // MARK: Clients

    private mutating func take(where isTaken: (Client) -> Bool = { _ in true }) -> [Int] {
        let taken = clients.filter(isTaken)
        clients.removeAll(where: isTaken)
        return taken.map(\.id)
    }

    private mutating func left(_ id: Int) -> [Action] {
        guard !take(where: { $0.id == id }).isEmpty, !isTransferred else { return [] }
        if phase == .freshening || phase == .committing { return [] }
        // It may have been the one that the transfer was paused for.
        return [.resume] + cancelIfUseless()
    }

    /// Ends a transfer that nobody waits for and that brings nothing to store.
    ///
    /// A body that is stored is worth finishing once it has begun to arrive, and a refresh was nobody's from the start.
    private func cancelIfUseless() -> [Action] {
        let isUseful = isStoring && body.isWhole || isRefresh && phase == .asking
        return clients.isEmpty && !isUseful ? [.stopJoining, .cancel] : []
    }

    // MARK: The response

    private mutating func received(_ head: Head) -> [Action] {
        let wasNoting = phase == .noting
        // Clients may have all of it before the transfer is over. Who asks from now on asks anew.
        var actions: [Action] = wasNoting ? [.stopJoining] : []
        switch head.kind {
        case .notModified:
            phase = .freshening
            hasRefreshed = true
            actions.append(.freshen)
        case .unfitPart:
            phase = .over
            // Nobody here asked for a part: what is stored is of no use.
            actions += fetchWhole() + [.cancel]
        case .ordinary:
            actions += begin(head)
        }
        if let end = endWhileNoting {
            endWhileNoting = nil
            return actions + ended(end)
        }
        return wasNoting && phase != .over ? actions + [.resume] : actions
    }

    private mutating func begin(_ head: Head) -> [Action] {
        var actions: [Action] = []
        if let able = head.canHaveStale {
            let served = take { able.contains($0.id) }
            if !served.isEmpty { actions.append(.serveStale(served)) }
            if clients.isEmpty {
                phase = .over
                // The error's body is not worth waiting for.
                return actions + [.cancel]
            }
        }
        isStoring = head.isStorable
        completesParts = head.completesParts
        if !isStoring, head.isNews {
            hasRefreshed = true
            actions.append(.supersede)
        }
        let others = take { !$0.isLeader && head.others.contains($0.id) }
        if !others.isEmpty { actions.append(.fetchApart(others)) }
        let isRendered = head.isRenderable && clients.contains(where: \.wantsRendering)
        // What is not stored is kept only for those who are given it in another form.
        if !isStoring, !isRendered { body.letGo() }
        let isMadeOfWhole = head.completesParts || head.isWhole && clients.contains(where: \.wantsCut)
        if isRendered || isStoring && isMadeOfWhole {
            phase = .gathering
            return actions
        }
        phase = .relaying
        return actions + clients.map { .begin($0.id, []) } + cancelIfUseless()
    }

    private mutating func received(_ piece: [UInt8], _ fits: Bool) -> [Action] {
        guard phase == .relaying || phase == .gathering else { return [] }
        var actions: [Action] = []
        let (held, wasWhole) = (body.pieces, body.isWhole)
        body.append(piece)
        if !fits { body.letGo() }
        if wasWhole, !body.isWhole { actions = outgrew(held) }
        return phase == .relaying ? actions + [.write(piece)] : actions
    }

    /// The body is larger than what is kept, or all bodies together are: from now on it is only relayed.
    private mutating func outgrew(_ held: [[UInt8]]) -> [Action] {
        var actions: [Action] = isStoring ? [.supersede, .explainLoss(.tooLarge)] : []
        isStoring = false
        actions.append(.stopJoining)
        guard phase == .gathering else { return actions + clients.map { .keptNoLonger($0.id) } }
        return actions + passOn(held) + (phase == .relaying ? cancelIfUseless() : [])
    }

    /// Sends as it came what was gathered.
    private mutating func passOn(_ pieces: [[UInt8]]) -> [Action] {
        if completesParts {
            phase = .over
            return fetchWhole()
        }
        phase = .relaying
        return clients.map { .begin($0.id, pieces) }
    }

    // MARK: The end

    private mutating func ended(_ end: End) -> [Action] {
        guard phase != .noting else {
            endWhileNoting = end
            return []
        }
        isTransferred = true
        switch (phase, end) {
        case (.over, _), (.freshening, _), (.committing, _), (.noting, _):
            return [.stopJoining]
        case (_, .whole) where phase != .asking:
            if isStoring { return [.stopJoining, .keep] }
            return [.stopJoining] + (phase == .relaying ? finish() : finishUnstored())
        case (.relaying, _), (.gathering, .cut):
            // What broke off reaches the clients as it came, must look so, and is not stored (law 8).
            var actions: [Action] = isStoring ? [.stopJoining, .explainLoss(.truncated)] : [.stopJoining]
            if phase == .gathering { actions += passOn(body.pieces) }
            phase = .over
            return actions + take().map { .abort($0) }
        case (.asking, _), (.gathering, _):
            let loss: [Action] = isStoring ? [.explainLoss(.truncated)] : []
            phase = .over
            return [.stopJoining] + loss + (clients.isEmpty ? [] : [.fail(take())])
        }
    }

    private mutating func kept(_ kept: Kept) -> [Action] {
        hasRefreshed = hasRefreshed || kept != .unusable
        switch (kept, phase) {
        case (.withheld, _):
            isServedWhole = phase == .gathering
            phase = .committing
            return []
        case (.unusable, .gathering): return finishUnstored()
        case (_, .gathering): return serve()
        default: return finish()
        }
    }

    /// Whether clients are given the whole once it is committed, having been given nothing so far.
    private var isServedWhole = false

    private mutating func committing(_ event: Event) -> [Action] {
        switch event {
        case .freshened:
            isServedWhole = true
            phase = .committing
            return []
        case .commitIsLate:
            guard phase == .committing else { return [] }
            let actions = isServedWhole ? serve() : finish()
            phase = .committing
            return [.show] + actions
        default:
            return isServedWhole ? serve() : finish()
        }
    }

    private mutating func serve() -> [Action] {
        phase = .over
        return clients.isEmpty ? [] : [.serve(take())]
    }

    private mutating func fetchWhole() -> [Action] {
        clients.isEmpty ? [] : [.fetchWhole(take())]
    }

    private mutating func finish() -> [Action] {
        phase = .over
        return take().map { .finish($0) }
    }

    /// The body was gathered, and is not stored: who wants it in another form gets it so, all others as it came.
    private mutating func finishUnstored() -> [Action] {
        let rendered = body.isWhole ? take(where: \.wantsRendering) : []
        let rest = passOn(body.pieces)
        return (rendered.isEmpty ? [] : [.serveUnstored(rendered)]) + rest + (phase == .relaying ? finish() : [])
    }
}

/// A body while it arrives: kept once, shared by all who wait for it.
///
/// Up to the limit the pieces are kept, so that late followers get them and the whole can be stored. Past it they are let go
/// of, and the body is only relayed.
struct BodyBuffer: Hashable {
    /// The largest body that is kept, in decoded bytes.
    let limit: Int
    private(set) var pieces: [[UInt8]] = []
    private(set) var received = 0
    /// Whether everything received so far is still here.
    private(set) var isWhole = true

    init(limit: Int) {
        self.limit = limit
    }

    /// Whether it would still keep everything with so many more bytes.
    func hasRoom(for count: Int) -> Bool { isWhole && received + count <= limit }

    mutating func append(_ piece: [UInt8]) {
        received += piece.count
        guard isWhole else { return }
        if received > limit { letGo() } else { pieces.append(piece) }
    }

    /// Stops keeping what arrives.
    mutating func letGo() {
        isWhole = false
        pieces = []
    }

    /// Keeps what there is as one piece, which `joined` then gives without a copy.
    mutating func join() {
        if isWhole, pieces.count > 1 { pieces = [joined()] }
    }

    /// The body in one piece; only meaningful while it is whole.
    func joined() -> [UInt8] {
        if pieces.count == 1 { return pieces[0] }
        var body: [UInt8] = []
        body.reserveCapacity(received)
        for piece in pieces { body.append(contentsOf: piece) }
        return body
    }
}
