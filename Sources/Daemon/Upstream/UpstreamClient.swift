package import EventLoops
package import HTTPSemantics

/// Sends requests to upstreams over one pool of connections.
///
/// Used on the upstream loop only, which also runs all callbacks. libcurl must not be called from its own callbacks, so
/// actions requested there are carried out as soon as libcurl has returned.
package final class UpstreamClient {
    let loop: EventLoop
    package let options: UpstreamOptions
    /// The buffer in which bodies are decoded, piece by piece.
    let decodingRoom = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 << 10, alignment: 16)

    private let multi: CurlMulti
    /// Keeps transfers alive until their end.
    package private(set) var active: [ObjectIdentifier: Transfer] = [:]
    /// Actions that must wait until libcurl is off the stack.
    private var waiting: [() -> Void] = []
    private var actionTimer: EventTimer!
    private var slots: UpstreamSlots
    /// Runs while requests wait for a slot.
    private var slotTimer: EventTimer!
    /// Called when requests start to wait for slots, and when none has waited for some time.
    package var crowdChanged: ((UpstreamSlots.Change) -> Void)?
    /// Fires at the earliest deadline of a transfer, or at one that has moved since.
    private var watchdog: EventTimer!
    /// When it fires, in ns of the loop's clock; `.max` for never.
    private var watchdogDue = UInt64.max
    /// Origins that respond in HTTP/2, so that a burst of requests should share one connection.
    private var http2Origins: Set<Substring> = []
    /// Handles for the next transfers, because making one takes longer than setting its URL and its fields.
    private var handles: [CurlTransfer] = []

    package init(loop: EventLoop, options: UpstreamOptions = UpstreamOptions()) {
        (self.loop, self.options) = (loop, options)
        slots = UpstreamSlots(
            exchanges: options.maxConnectionsPerHost,
            uploads: options.maxUploads,
            perCredential: options.maxPerCredential
        )
        let isLimited = options.maxConnectionsPerHost > 0 && options.maxUploads > 0
        multi = CurlMulti(
            loop: loop,
            maxConnectionsPerHost: isLimited
                ? UpstreamSlots.total(options.maxConnectionsPerHost) + UpstreamSlots.total(options.maxUploads) : 0,
            maxIdleConnections: options.maxIdleConnections
        )
        actionTimer = EventTimer(loop: loop) { [unowned self] in performWaiting() }
        slotTimer = EventTimer(loop: loop, isRepeating: true) { [unowned self] in lookAtSlots() }
        watchdog = EventTimer(loop: loop) { [unowned self] in lookAtDeadlines() }
        multi.completed = { [unowned self] curl, result in completed(curl, result) }
        multi.worked = { [unowned self] in performWaiting() }
    }

    deinit { decodingRoom.deallocate() }

    // MARK: For the user

    /// Sends a request; `delegate` is kept until the end, and is not called before this has returned.
    @discardableResult
    package func start(_ request: UpstreamRequest, _ delegate: any TransferDelegate) -> Transfer {
        loop.proveOwnership()
        let transfer = Transfer(client: self, request: request, delegate: delegate)
        active[ObjectIdentifier(transfer)] = transfer
        let (kind, client) = (request.slotKind, request.client)
        let (isFree, change) = slots.enter(ObjectIdentifier(transfer), kind, of: client, now: loop.now)
        if let change { crowdChanged?(change) }
        if !isFree {
            transfer.watch()
            if !slotTimer.isScheduled { slotTimer.schedule(after: .seconds(1)) }
        } else if multi.isInside {
            later { [unowned self] in add(transfer) }
        } else {
            add(transfer)
        }
        return transfer
    }

    // MARK: Slots

    /// Releases the slot of a finished transfer, and starts the next ones.
    private func release(_ transfer: Transfer) -> Bool {
        guard active.removeValue(forKey: ObjectIdentifier(transfer)) != nil else { return false }
        for next in slots.leave(ObjectIdentifier(transfer)) {
            if let transfer = active[next] { later { [unowned self] in addAfterWait(transfer) } }
        }
        return true
    }

    private func addAfterWait(_ transfer: Transfer) {
        guard !transfer.state.isCancelled else { return }
        if transfer.delegate?.isStillWanted() == false { drop(transfer, .cancelled) } else { add(transfer) }
    }

    /// Ends the slowest holders of contested slots, at most as many as requests wait.
    private func lookAtSlots() {
        for (holders, waiting) in slots.contested {
            let slow = holders.compactMap { id -> (transfer: Transfer, pace: Int)? in
                guard let transfer = active[id], let pace = transfer.pace(now: loop.now) else { return nil }
                return pace < options.minimumRate ? (transfer, pace) : nil
            }
            for (transfer, pace) in slow.sorted(by: { $0.pace < $1.pace }).prefix(waiting) {
                transfer.stop(because: .tooSlow(bytesPerSecond: pace))
            }
        }
        for change in slots.tick(now: loop.now) { crowdChanged?(change) }
        if !slots.isCrowded { slotTimer.cancel() }
    }

    // MARK: Deadlines

    /// Has all transfers look at their deadlines at a time of the loop's clock, or before.
    func watch(until deadline: UInt64) {
        guard deadline < watchdogDue else { return }
        watchdogDue = deadline
        let rest = deadline > loop.now ? Int64(deadline - loop.now) : 0
        // A little later than needed, because the loop's clock is coarse.
        watchdog.schedule(after: .nanoseconds(rest) + .milliseconds(5))
    }

    private func lookAtDeadlines() {
        watchdogDue = .max
        for transfer in active.values { transfer.lookAtDeadline() }
    }

    // MARK: For transfers

    /// The handle for a transfer: one that an earlier GET has left, if it is for another.
    func handle(for transfer: Transfer, isForPlainGet: Bool) -> CurlTransfer {
        guard isForPlainGet, let handle = handles.popLast() else { return CurlTransfer(owner: transfer) }
        handle.reuse(for: transfer)
        return handle
    }

    /// Keeps the handle of a transfer that is over and has succeeded.
    func giveBack(_ handle: CurlTransfer) {
        if handle.isReusable, handles.count < Self.maxHandles { handles.append(handle) }
    }

    private static let maxHandles = 16

    /// Schedules an action for when libcurl is off the stack.
    func later(_ action: @escaping () -> Void) {
        waiting.append(action)
        if !actionTimer.isScheduled { actionTimer.schedule(after: .zero) }
    }

    /// Passes a change of paused directions to libcurl, which may deliver at once.
    func pause(_ curl: CurlTransfer, receiving: Bool, sending: Bool) {
        multi.pause(curl, receiving: receiving, sending: sending)
        multi.reportCompleted()
        if !waiting.isEmpty, !actionTimer.isScheduled { actionTimer.schedule(after: .zero) }
    }

    /// Notes the HTTP version of a response, which decides how to connect to its origin.
    func recordVersion(of request: UpstreamRequest, _ version: UpstreamHead.Version) {
        if version == .http2 {
            http2Origins.insert(request.origin)
        } else if !http2Origins.isEmpty {
            http2Origins.remove(request.origin)
        }
    }

    // MARK: Waiting actions

    private func performWaiting() {
        while !waiting.isEmpty {
            let actions = waiting
            waiting = []
            for action in actions { action() }
        }
    }

    private func add(_ transfer: Transfer) {
        guard !transfer.state.isCancelled else { return }
        do throws(UpstreamError) {
            let curl = try transfer.prepare(waitsForMultiplexing: transfer.isBound(for: http2Origins))
            guard multi.add(curl) else { throw .invalidRequest("libcurl does not take it") }
        } catch {
            later { [unowned self] in drop(transfer, error) }
        }
    }

    /// Ends a transfer early; must be called with libcurl off the stack.
    func drop(_ transfer: Transfer, _ error: UpstreamError) {
        guard release(transfer) else { return }
        if let curl = transfer.curl { multi.remove(curl) }
        transfer.end(.failure(error))
    }

    private func completed(_ curl: CurlTransfer, _ result: CurlResult) {
        guard let transfer = curl.owner as? Transfer else { return }
        if transfer.mayRepeat(after: result) { return add(transfer) }
        _ = release(transfer)
        transfer.ended(result)
    }
}

/// The requests to one upstream that are under way or waiting, and the order in which waiting ones start.
///
/// Uploads have slots of their own, so that clients that send slowly do not block other requests. Each kind has a quarter
/// more slots than one client may have. A free slot goes to the waiting client with the fewest. A credential may have a limit of its
/// own, for both kinds and all addresses together.
/// It is a value; `UpstreamClient` acts.
package struct UpstreamSlots {
    typealias ID = ObjectIdentifier

    package enum Kind: CaseIterable {
        /// A request without a body, or with a body that had arrived as a whole when it was made.
        case exchange
        /// A request whose body is still arriving.
        case upload
    }

    /// The client that made a request, as far as clients can be distinguished.
    package struct Client: Hashable, Sendable {
        let principal: Int64
        /// The address of the client, or the user at the other end of a Unix socket.
        let host: [UInt8]

        package init(principal: Int64 = 0, host: [UInt8] = []) { (self.principal, self.host) = (principal, host) }
    }

    /// Reports that requests of a kind start to wait, or that none has waited for some time.
    package struct Change: Equatable {
        package var kind: Kind
        package var isCrowded: Bool
        package var limit: Int
        /// Whether it is the limit of a credential.
        package var isForCredential = false
    }

    private struct Pool {
        /// The number of slots that one client may hold; 0 for no limit.
        let limit: Int
        var holders: [ID: Client] = [:]
        var counts: [Client: Int] = [:]
        var waiting: [(id: ID, client: Client)] = []
        /// When a request last waited, in ns of the loop's clock; nil if none has for some time.
        var lastWaited: UInt64?

        func isFree(for client: Client, _ credentials: Credentials) -> Bool {
            guard credentials.isFree(for: client) else { return false }
            // With so few holders, the client is below its own limit, too.
            return limit == 0 || holders.count < limit
                || holders.count < UpstreamSlots.total(limit) && counts[client, default: 0] < limit
        }

        mutating func occupy(_ id: ID, _ client: Client) {
            holders[id] = client
            counts[client, default: 0] += 1
        }

        mutating func giveBack(_ id: ID) -> Client? {
            guard !holders.isEmpty, let client = holders.removeValue(forKey: id) else { return nil }
            let rest = counts[client, default: 1] - 1
            counts[client] = rest == 0 ? nil : rest
            return client
        }

        /// Gives a slot to the next waiting request, if one is free for it.
        mutating func next(_ credentials: inout Credentials) -> ID? {
            if waiting.isEmpty { return nil }
            let eligible = waiting.indices.filter { isFree(for: waiting[$0].client, credentials) }
            let fewest = eligible.min {
                counts[waiting[$0].client, default: 0] < counts[waiting[$1].client, default: 0]
            }
            guard let fewest else { return nil }
            let (id, client) = waiting.remove(at: fewest)
            occupy(id, client)
            credentials.add(1, to: client)
            return id
        }
    }

    /// The slots that each credential holds.
    private struct Credentials {
        /// 0 for no limit; then they are not counted.
        let limit: Int
        private var counts: [Int64: Int] = [:]

        init(limit: Int) { self.limit = limit }

        func isFree(for client: Client) -> Bool { limit == 0 || counts[client.principal, default: 0] < limit }

        mutating func add(_ number: Int, to client: Client) {
            guard limit > 0 else { return }
            let count = counts[client.principal, default: 0] + number
            counts[client.principal] = count == 0 ? nil : count
        }
    }

    private var credentials: Credentials
    private var exchanges: Pool
    private var uploads: Pool

    private subscript(kind: Kind) -> Pool {
        get { kind == .exchange ? exchanges : uploads }
        _modify { if kind == .exchange { yield &exchanges } else { yield &uploads } }
    }

    /// The time without waiting requests after which a kind no longer counts as crowded.
    static let relief: UInt64 = 10_000_000_000

    /// The number of slots for all clients together, if one may have `limit` of them.
    package static func total(_ limit: Int) -> Int { limit + max(1, limit / 4) }

    /// - Parameters: The number of slots of each kind that one client may have, and of all that one credential may have; 0 for no
    ///   limit.
    init(exchanges: Int, uploads: Int, perCredential: Int = 0) {
        (self.exchanges, self.uploads) = (Pool(limit: exchanges), Pool(limit: uploads))
        credentials = Credentials(limit: perCredential)
    }

    /// Whether requests wait, or did until a moment ago.
    var isCrowded: Bool { exchanges.lastWaited != nil || uploads.lastWaited != nil }

    /// Requests a slot; the result says whether it is free, or the request must wait.
    ///
    /// - Returns: Also the change for the kind as a whole, if any.
    mutating func enter(_ id: ID, _ kind: Kind, of client: Client, now: UInt64) -> (isFree: Bool, change: Change?) {
        if self[kind].isFree(for: client, credentials) {
            self[kind].occupy(id, client)
            credentials.add(1, to: client)
            return (true, nil)
        }
        let wasCrowded = self[kind].lastWaited != nil
        self[kind].waiting.append((id, client))
        self[kind].lastWaited = now
        let isForCredential = !credentials.isFree(for: client)
        let limit = isForCredential ? credentials.limit : self[kind].limit
        let change = Change(kind: kind, isCrowded: true, limit: limit, isForCredential: isForCredential)
        return (false, wasCrowded ? nil : change)
    }

    /// Removes a request that is over, or gave up waiting; returns the ids of those to start now.
    mutating func leave(_ id: ID) -> [ID] {
        for kind in Kind.allCases {
            if let client = self[kind].giveBack(id) { credentials.add(-1, to: client) }
            if !self[kind].waiting.isEmpty { self[kind].waiting.removeAll { $0.id == id } }
        }
        var started: [ID] = []
        // A credential's slot may be what a request of the other kind waits for.
        for kind in Kind.allCases {
            while let next = next(kind) { started.append(next) }
        }
        return started
    }

    private mutating func next(_ kind: Kind) -> ID? {
        kind == .exchange ? exchanges.next(&credentials) : uploads.next(&credentials)
    }

    /// For each kind with waiting requests: the holders of its slots, and how many wait.
    var contested: [(holders: [ID], waiting: Int)] {
        [exchanges, uploads].filter { !$0.waiting.isEmpty }.map { (Array($0.holders.keys), $0.waiting.count) }
    }

    /// Updates the state after some time; returns the kinds that are no longer crowded.
    mutating func tick(now: UInt64) -> [Change] {
        var changes: [Change] = []
        for kind in Kind.allCases {
            guard let last = self[kind].lastWaited else { continue }
            if !self[kind].waiting.isEmpty {
                self[kind].lastWaited = now
            } else if now >= last + Self.relief {
                self[kind].lastWaited = nil
                changes.append(Change(kind: kind, isCrowded: false, limit: self[kind].limit))
            }
        }
        return changes
    }
}
