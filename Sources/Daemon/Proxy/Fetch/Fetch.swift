/// One miss: a request sent upstream, and the clients that wait for its response.
///
/// This is a value without I/O. `handle` takes an event and returns actions in order, and `RunningFetch` performs them. In
/// whatever order events come, each client's response ends exactly once, and the store gets the response at most once.
/// `FetchTests` visits every reachable state.
///
/// ```
/// asking ─┬─ head ─┬─ relaying ─── whole ─┬──────────────────────► over
///         │        ├─ gathering ── whole ─┴─ committing ─ commit ─► over
///         │        ├─ freshening ─ freshened (a 304) ──┘
///         │        └─ served from the store, or fetched anew ─────► over
///         └─ absence ─ noting ─ noted, then the head as above
/// ```
struct Fetch: Hashable {
    /// A client that waits for the response.
    struct Client: Hashable {
        let id: Int
        /// Whether this client started the fetch; the others joined it.
        var isLeader = false
        /// Whether it gets transformed JSON (the mapped view, or rewritten links), which takes the whole body.
        var wantsRendering = false
        /// Whether it asked for a range, which is cut from the whole body.
        var wantsCut = false
    }

    enum Phase: Hashable {
        /// No head has come yet.
        case asking
        /// The head says that an object is gone. The fetch waits until that is committed.
        case noting
        /// Clients get the body as it arrives.
        case relaying
        /// The body is buffered until it is whole, because clients get something made from it.
        case gathering
        /// The head is a 304. The fetch determines which stored response it freshens.
        case freshening
        /// The response is whole. Its end waits for the commit of its objects.
        case committing
        /// No client waits any more, and nothing remains to be stored.
        case over
    }

    /// What the cache policy makes of a response's head.
    struct Head: Hashable {
        enum Kind: Hashable {
            /// A 304 to Larder's own conditions.
            case notModified
            /// A partial response that does not complete the stored parts.
            case unfitPart
            case ordinary
        }

        var kind = Kind.ordinary
        /// The clients that get a stored response instead; nil if the response is no failure, or nothing is stored.
        var canHaveStale: Set<Int>?
        /// Whether the response is stored once its body is whole.
        var isStorable = false
        /// Whether the response, though not stored, shows that the stored one is outdated.
        var outdatesStored = false
        /// The followers that asked for another variant.
        var others: Set<Int> = []
        var isRenderable = false
        /// Whether the body is the whole document.
        var isWhole = true
        var completesParts = false
    }

    /// How the transfer ended.
    enum End: Hashable {
        case whole
        /// The content is whole, but the message is not as it should be: it is not worth storing.
        case odd
        /// Nothing shows that the response is whole.
        case cut
        case failed
    }

    /// The result of storing a whole body, or of a 304.
    enum Admission: Hashable {
        /// It cannot be used.
        case unusable
        case ready
        /// It can be served once its objects are committed.
        case withheld
    }

    enum Event {
        case joined(Client)
        case left(Int)
        /// The head says that an object is gone.
        case absence
        /// The head; after `absence`, it comes once that is committed.
        case head(Head)
        /// A piece of the body, and whether there is memory to buffer it.
        case body([UInt8], fits: Bool)
        /// These clients lag too far behind the fastest one.
        case lagging([Int])
        case ended(End)
        case admitted(Admission)
        case freshened(Admission)
        /// The objects in the response are committed, or never will be.
        case committed
        /// The commit takes longer than clients may be made to wait.
        case commitIsLate
        /// A client gets a stored response, because it has waited long enough.
        case lostPatience(Int)
    }

    /// Why a response that should be stored is not.
    enum Loss: Equatable {
        case tooLarge, truncated, odd
    }

    /// An instruction for `RunningFetch`.
    ///
    /// `serve`, `serveStale`, `serveMeanwhile`, `serveUnstored`, `fail`, `finish`, `abort` and the three `fetch…` are final: the client has its
    /// response, or waits elsewhere.
    enum Action: Equatable {
        /// Commit that the object is gone, then send the event `head`.
        case commitAbsence
        /// Let no more clients join.
        case stopJoining
        case resume
        case cancel
        /// Send a client the head and these pieces of the body.
        case begin(Int, [[UInt8]])
        /// Send all clients a piece of the body.
        case write([UInt8])
        /// The fetch no longer holds the pieces that this client was sent.
        case keptNoLonger(Int)
        case finish(Int)
        case abort(Int)
        /// Serve the response that was admitted or freshened.
        case serve([Int])
        /// Serve the whole body without storing it.
        case serveUnstored([Int])
        /// Serve the stored response in place of the upstream's error.
        case serveStale([Int])
        /// Serve the client the stored response while the fetch goes on.
        case serveMeanwhile(Int)
        /// Serve the stored response because no response came, or report the failure.
        case fail([Int])
        /// Start other fetches for these clients, which asked for another variant.
        case fetchApart([Int])
        /// Fetch the whole document instead of its missing part.
        case fetchWhole([Int])
        case fetchUnconditionally([Int])
        /// Drop the stored response: it is outdated, and nothing replaces it.
        case supersede
        case explainLoss(Loss)
        /// Store the whole body, then send the event `admitted`.
        case admit
        /// Determine which stored response the 304 freshens, then send the event `freshened`.
        case freshen
        case end
    }

    private(set) var clients: [Client] = []
    private(set) var phase = Phase.asking
    private(set) var body: BodyBuffer
    private(set) var isStoring = false
    /// Whether the fetch has achieved what a background refresh is for.
    private(set) var hasRefreshed = false
    private(set) var isTransferred = false
    /// Whether it is a background refresh, for which no client waits.
    let isRefresh: Bool
    /// Whether it goes on without a client until the response has begun.
    private var goesOn: Bool
    private var completesParts = false
    /// How the transfer ended while the phase was `noting`.
    private var endWhileNoting: End?
    private var isOver = false

    /// - Parameter limit: the largest body that is buffered, in bytes.
    init(isRefresh: Bool = false, limit: Int) {
        (self.isRefresh, goesOn) = (isRefresh, isRefresh)
        body = BodyBuffer(limit: limit)
    }

    /// Processes an event; returns the actions to perform, in order.
    mutating func handle(_ event: Event) -> [Action] {
        var actions: [Action] = []
        step(event, &actions)
        if phase == .over, isTransferred, !isOver {
            isOver = true
            actions.append(.end)
        }
        return actions
    }

    private mutating func step(_ event: Event, _ actions: inout [Action]) {
        switch event {
        case .joined(let client):
            clients.append(client)
            if phase == .relaying { actions.append(.begin(client.id, body.pieces)) }
        case .left(let id): left(id, &actions)
        case .absence:
            phase = .noting
            actions.append(.commitAbsence)
        case .head(let head): received(head, &actions)
        case .body(let piece, let fits): received(piece, fits, &actions)
        case .lagging(let ids): for id in take(where: { ids.contains($0.id) }) { actions.append(.abort(id)) }
        case .ended(let end): ended(end, &actions)
        case .admitted(let admission): admitted(admission, &actions)
        case .freshened(.unusable):
            phase = .over
            actions.append(.fetchUnconditionally(take()))
        case .freshened(.ready): serve(&actions)
        case .freshened(.withheld): (phase, isServedWhole) = (.committing, true)
        case .committed: conclude(&actions)
        case .commitIsLate:
            guard phase == .committing else { return }
            conclude(&actions)
            phase = .committing
        case .lostPatience(let id): lostPatience(id, &actions)
        }
    }

    // MARK: Clients

    private mutating func take(where isTaken: (Client) -> Bool) -> [Int] {
        let taken = clients.filter(isTaken)
        clients.removeAll(where: isTaken)
        return taken.map(\.id)
    }

    private mutating func take() -> [Int] {
        defer { clients = [] }
        return clients.map(\.id)
    }

    private mutating func left(_ id: Int, _ actions: inout [Action]) {
        guard !take(where: { $0.id == id }).isEmpty, !isTransferred else { return }
        if phase == .freshening || phase == .committing { return }
        // The transfer may have been paused for this client.
        actions.append(.resume)
        cancelIfUseless(&actions)
    }

    private mutating func lostPatience(_ id: Int, _ actions: inout [Action]) {
        guard phase == .asking || phase == .gathering, !take(where: { $0.id == id }).isEmpty else { return }
        goesOn = true
        actions.append(.serveMeanwhile(id))
        if phase == .gathering { cancelIfUseless(&actions) }
    }

    /// Cancels a transfer that no client waits for and that stores nothing.
    ///
    /// A body to be stored is worth finishing once it has begun to arrive. A background refresh never had a client, and clients
    /// that lost patience were served in the hope that the next ones find the new response.
    private func cancelIfUseless(_ actions: inout [Action]) {
        let isUseful = isStoring && body.isWhole || goesOn && phase == .asking
        if clients.isEmpty, !isUseful { actions += [.stopJoining, .cancel] }
    }

    // MARK: The response

    private mutating func received(_ head: Head, _ actions: inout [Action]) {
        let wasNoting = phase == .noting
        // Clients may have the whole response before the transfer ends, so later requests need a new fetch.
        if wasNoting { actions.append(.stopJoining) }
        switch head.kind {
        case .notModified:
            phase = .freshening
            hasRefreshed = true
            actions.append(.freshen)
        case .unfitPart:
            phase = .over
            // No client asked for a part, so the stored parts are of no use.
            fetchWhole(&actions)
            actions.append(.cancel)
        case .ordinary: begin(head, &actions)
        }
        if let end = endWhileNoting {
            endWhileNoting = nil
            ended(end, &actions)
        } else if wasNoting, phase != .over {
            actions.append(.resume)
        }
    }

    private mutating func begin(_ head: Head, _ actions: inout [Action]) {
        if let able = head.canHaveStale {
            let served = take { able.contains($0.id) }
            if !served.isEmpty { actions.append(.serveStale(served)) }
            if clients.isEmpty {
                phase = .over
                // The error's body is not worth waiting for.
                actions.append(.cancel)
                return
            }
        }
        isStoring = head.isStorable
        completesParts = head.completesParts
        if !isStoring, head.outdatesStored {
            hasRefreshed = true
            actions.append(.supersede)
        }
        let others = head.others.isEmpty ? [] : take { !$0.isLeader && head.others.contains($0.id) }
        if !others.isEmpty { actions.append(.fetchApart(others)) }
        let isRendered = head.isRenderable && clients.contains(where: \.wantsRendering)
        // A body that is not stored is buffered only if a client gets it transformed.
        if !isStoring, !isRendered { body.letGo() }
        let isMadeOfWhole = head.completesParts || head.isWhole && clients.contains(where: \.wantsCut)
        if isRendered || isStoring && isMadeOfWhole {
            phase = .gathering
            return
        }
        phase = .relaying
        for client in clients { actions.append(.begin(client.id, [])) }
        cancelIfUseless(&actions)
    }

    private mutating func received(_ piece: [UInt8], _ fits: Bool, _ actions: inout [Action]) {
        guard phase == .relaying || phase == .gathering else { return }
        if body.isWhole, !fits || !body.hasRoom(for: piece.count) {
            outgrew(with: piece, &actions)
        } else {
            body.append(piece)
        }
        if phase == .relaying { actions.append(.write(piece)) }
    }

    /// Stops buffering, because the body or all bodies together are too large; from now on the body is only relayed.
    private mutating func outgrew(with piece: [UInt8], _ actions: inout [Action]) {
        let held = body.pieces
        body.append(piece)
        body.letGo()
        if isStoring { actions += [.supersede, .explainLoss(.tooLarge)] }
        isStoring = false
        actions.append(.stopJoining)
        guard phase == .gathering else {
            for client in clients { actions.append(.keptNoLonger(client.id)) }
            return
        }
        passOn(held, &actions)
        if phase == .relaying { cancelIfUseless(&actions) }
    }

    /// Sends the gathered body untransformed.
    private mutating func passOn(_ pieces: [[UInt8]], _ actions: inout [Action]) {
        if completesParts {
            phase = .over
            return fetchWhole(&actions)
        }
        phase = .relaying
        for client in clients { actions.append(.begin(client.id, pieces)) }
    }

    // MARK: The end

    private mutating func ended(_ end: End, _ actions: inout [Action]) {
        guard phase != .noting else {
            endWhileNoting = end
            return
        }
        isTransferred = true
        actions.append(.stopJoining)
        switch (phase, end) {
        case (.over, _), (.freshening, _), (.committing, _), (.noting, _): break
        case (_, .whole) where phase != .asking:
            if isStoring { actions.append(.admit) } else { endUnstored(&actions) }
        case (_, .odd) where phase != .asking:
            if isStoring { actions += [.supersede, .explainLoss(.odd)] }
            isStoring = false
            endUnstored(&actions)
        case (.relaying, _), (.gathering, .cut):
            // A truncated response reaches the clients as it came, must look truncated, and is not stored (law 8).
            if isStoring { actions.append(.explainLoss(.truncated)) }
            if phase == .gathering { passOn(body.pieces, &actions) }
            phase = .over
            for id in take() { actions.append(.abort(id)) }
        case (.asking, _), (.gathering, _):
            if isStoring { actions.append(.explainLoss(.truncated)) }
            phase = .over
            if !clients.isEmpty { actions.append(.fail(take())) }
        }
    }

    private mutating func admitted(_ admission: Admission, _ actions: inout [Action]) {
        hasRefreshed = hasRefreshed || admission != .unusable
        switch (admission, phase) {
        case (.withheld, _):
            isServedWhole = phase == .gathering
            phase = .committing
        case (.unusable, .gathering): finishUnstored(&actions)
        case (_, .gathering): serve(&actions)
        default: finish(&actions)
        }
    }

    /// Whether clients have got nothing so far, and get the whole response after the commit.
    private var isServedWhole = false

    private mutating func conclude(_ actions: inout [Action]) {
        if isServedWhole { serve(&actions) } else { finish(&actions) }
    }

    private mutating func serve(_ actions: inout [Action]) {
        phase = .over
        if !clients.isEmpty { actions.append(.serve(take())) }
    }

    private mutating func fetchWhole(_ actions: inout [Action]) {
        if !clients.isEmpty { actions.append(.fetchWhole(take())) }
    }

    private mutating func finish(_ actions: inout [Action]) {
        phase = .over
        for id in take() { actions.append(.finish(id)) }
    }

    private mutating func endUnstored(_ actions: inout [Action]) {
        if phase == .relaying { finish(&actions) } else { finishUnstored(&actions) }
    }

    /// Ends a gathered response that is not stored: transformed for the clients that want that, untransformed for the others.
    private mutating func finishUnstored(_ actions: inout [Action]) {
        let rendered = body.isWhole ? take(where: \.wantsRendering) : []
        if !rendered.isEmpty { actions.append(.serveUnstored(rendered)) }
        passOn(body.pieces, &actions)
        if phase == .relaying { finish(&actions) }
    }
}

/// The body of a response while it arrives, buffered once for all clients that wait for it.
///
/// Up to the limit the pieces are kept, so that late followers get them and the whole can be stored. Past the limit they are
/// dropped, and the body is only relayed.
struct BodyBuffer: Hashable {
    /// The largest body that is buffered, in decoded bytes.
    let limit: Int
    private(set) var pieces: [[UInt8]] = []
    private(set) var received = 0
    /// Whether everything received so far is still buffered.
    private(set) var isWhole = true

    /// Whether it would still be whole after this many more bytes.
    func hasRoom(for count: Int) -> Bool { isWhole && received + count <= limit }

    mutating func append(_ piece: [UInt8]) {
        received += piece.count
        guard isWhole else { return }
        if received > limit { letGo() } else { pieces.append(piece) }
    }

    /// Drops the buffered pieces and stops buffering.
    mutating func letGo() {
        isWhole = false
        pieces = []
    }

    /// Merges the pieces into one, so that `joined` needs no copy.
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
