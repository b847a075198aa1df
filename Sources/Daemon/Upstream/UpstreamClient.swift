package import EventLoops

/// Sends requests to upstreams over one pool of connections.
///
/// Lives on the upstream loop: all calls and all callbacks are made there. libcurl must not be entered from its own
/// callbacks; what users ask for from in there is done as soon as libcurl has returned.
package final class UpstreamClient {
    let loop: EventLoop
    let options: UpstreamOptions
    /// Where bodies are decoded, piece by piece.
    let decodingRoom = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 << 10, alignment: 16)

    private let multi: CurlMulti
    /// What keeps transfers alive until their end.
    private(set) var active: [ObjectIdentifier: Transfer] = [:]
    private var waiting: [PendingAction] = []
    private var actionTimer: EventTimer!
    private var slots: UpstreamSlots
    /// Runs while requests have to wait for a slot.
    private var slotTimer: EventTimer!
    /// Called when requests begin to have to wait, and when none had to for some time.
    package var crowdChanged: ((UpstreamSlots.Change) -> Void)?
    /// Origins that have answered in HTTP/2, which a burst of requests had better share one connection to.
    private var http2Origins: Set<Substring> = []

    /// What has to wait until libcurl is off the stack.
    package enum PendingAction {
        case add(Transfer)
        case resume(Transfer)
        case cancel(Transfer)
        case stop(Transfer, UpstreamError)
    }

    package init(loop: EventLoop, options: UpstreamOptions = UpstreamOptions()) {
        self.loop = loop
        self.options = options
        slots = UpstreamSlots(exchanges: options.maxConnectionsPerHost, uploads: options.maxUploads)
        let isLimited = options.maxConnectionsPerHost > 0 && options.maxUploads > 0
        multi = CurlMulti(
            loop: loop,
            maxConnectionsPerHost: isLimited
                ? UpstreamSlots.total(options.maxConnectionsPerHost) + UpstreamSlots.total(options.maxUploads) : 0,
            maxIdleConnections: options.maxIdleConnections
        )
        actionTimer = EventTimer(loop: loop) { [unowned self] in performWaiting() }
        slotTimer = EventTimer(loop: loop, isRepeating: true) { [unowned self] in lookAtSlots() }
        multi.completed = { [unowned self] curl, result in completed(curl, result) }
        multi.worked = { [unowned self] in performWaiting() }
    }

    deinit { decodingRoom.deallocate() }

    // MARK: For the user

    /// Sends a request; the delegate, kept until the end, hears of everything, but not before this has returned.
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
            later(.add(transfer))
        } else {
            add(transfer)
        }
        return transfer
    }

    // MARK: Slots

    /// A transfer is over: its slot goes to the next one.
    private func release(_ transfer: Transfer) -> Bool {
        guard active.removeValue(forKey: ObjectIdentifier(transfer)) != nil else { return false }
        for next in slots.leave(ObjectIdentifier(transfer)) {
            if let transfer = active[next] { later(.add(transfer)) }
        }
        return true
    }

    /// Ends the slowest of those that hold a slot which others wait for, as many as wait.
    private func lookAtSlots() {
        for (holders, waiting) in slots.contested {
            let slow = holders.compactMap { id -> (transfer: Transfer, pace: Int)? in
                guard let transfer = active[id], let pace = transfer.pace(now: loop.now) else { return nil }
                return pace < options.minimumRate ? (transfer, pace) : nil
            }
            for (transfer, pace) in slow.sorted(by: { $0.pace < $1.pace }).prefix(waiting) {
                transfer.state.stop(because: .tooSlow(bytesPerSecond: pace))
                later(.stop(transfer, .tooSlow(bytesPerSecond: pace)))
            }
        }
        for change in slots.tick(now: loop.now) { crowdChanged?(change) }
        if !slots.isCrowded { slotTimer.cancel() }
    }

    // MARK: For transfers

    /// Keeps something for the time when libcurl is off the stack.
    func later(_ action: PendingAction) {
        waiting.append(action)
        if !actionTimer.isScheduled { actionTimer.schedule(after: .zero) }
    }

    /// Passes a change of what rests on to libcurl, which may deliver at once.
    func pause(_ curl: CurlTransfer, receiving: Bool, sending: Bool) {
        multi.pause(curl, receiving: receiving, sending: sending)
        multi.tellCompleted()
        if !waiting.isEmpty, !actionTimer.isScheduled { actionTimer.schedule(after: .zero) }
    }

    /// Learns from a response how the origin is best connected to.
    func answered(_ request: UpstreamRequest, version: UpstreamHead.Version) {
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
            for action in actions { perform(action) }
        }
    }

    private func perform(_ action: PendingAction) {
        switch action {
        case .add(let transfer): add(transfer)
        case .resume(let transfer): transfer.letGo(receiving: true, sending: false)
        case .cancel(let transfer): drop(transfer, .cancelled)
        case .stop(let transfer, let error): drop(transfer, error)
        }
    }

    private func add(_ transfer: Transfer) {
        guard !transfer.state.isCancelled else { return }
        do throws(UpstreamError) {
            let curl = try transfer.prepare(waitsForMultiplexing: transfer.isBound(for: http2Origins))
            guard multi.add(curl) else { throw .invalidRequest("libcurl does not take it") }
        } catch {
            later(.stop(transfer, error))
        }
    }

    private func drop(_ transfer: Transfer, _ error: UpstreamError) {
        guard release(transfer) else { return }
        if let curl = transfer.curl { multi.remove(curl) }
        transfer.end(.failure(error))
    }

    private func completed(_ curl: CurlTransfer, _ result: CurlResult) {
        guard let transfer = curl.owner as? Transfer else { return }
        _ = release(transfer)
        transfer.ended(result)
    }
}

/// How an upstream client behaves; every property has a default that suits a REST API.
package struct UpstreamOptions: Sendable {
    /// The times a request may take.
    package var timeouts = UpstreamTimeouts()
    /// The most that a response's head may have, interim responses included, in bytes; libcurl allows no more than 300 KiB.
    package var maxHeadBytes = 256 << 10
    /// The file with the certificates of trusted authorities (PEM); the system's if nil.
    package var caFile: String?
    package var proxy = ProxyChoice.environment
    /// Requests of one client under way at a time, uploads apart, and so connections over HTTP/1.1; further ones wait; 0 for no
    /// limit.
    package var maxConnectionsPerHost = 256
    /// Uploads of one client under way at a time, on connections besides; further ones wait; 0 for no limit.
    package var maxUploads = 128
    /// Bytes a second: what moves more slowly is ended while others wait for its slot.
    package var minimumRate = 1 << 10
    /// How many idle connections, of all hosts, are kept for reuse.
    var maxIdleConnections = 64
    /// How long a connection may have been idle to carry an unsafe request, or one with a body, in whole seconds; libcurl
    /// rounds the idle time down, so that 1 s means less than two.
    ///
    /// Such a request is not repeated if the server closes the connection at this very moment, which servers do to
    /// connections that have been idle for some time; a fresh connection is made instead.
    var unsafeReuseAge: Duration = .seconds(1)
    /// Whether HTTP/2 is offered over TLS.
    package var http2 = true

    package init() {}

    /// The way to the upstream.
    package enum ProxyChoice: Sendable, Equatable {
        /// As `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` say.
        case environment
        case none
        /// A proxy's URL, such as `http://proxy:3128` or `socks5h://proxy`.
        case url(String)
    }
}

/// How long the steps of a request may take.
package struct UpstreamTimeouts: Sendable, Equatable {
    /// For name resolution, the connection and its TLS handshake together.
    package var connect: Duration = .seconds(5)
    /// For a place among the connections that may be open.
    var queue: Duration = .seconds(30)
    /// From the whole request sent, or the last interim response, to the response's whole head.
    package var firstByte: Duration = .seconds(30)
    /// Between two pieces of the body; nil for no limit, as event streams want it.
    package var stall: Duration? = .seconds(30)
}
