import EventLoops

/// One request on its way to an upstream, and its response on the way back.
///
/// The upstream loop only. The client keeps it alive until its end; whoever started it may forget it.
package final class Transfer {
    let client: UpstreamClient
    let request: UpstreamRequest
    private let timeouts: UpstreamTimeouts
    var delegate: (any TransferDelegate)?
    var curl: CurlTransfer?
    var state: TransferState
    var head: ResponseHeadReader
    var body: RequestBodySender?
    private var watchdog: EventTimer?
    /// The wire bytes when the watchdog last looked: a body that decodes to nothing for long is progress too.
    private var watchedBytes = 0
    private var stallTimeout: Duration?
    /// Takes the response's content coding off; nil where it has none.
    var decoder: ContentDecoder?
    /// The head of a response that says it is coded, until its first decoded byte shows that it is.
    var withheldHead: UpstreamHead?
    /// What has come of its body meanwhile.
    var withheldBytes: [UInt8] = []
    /// How much of the piece that libcurl will offer again has been decoded.
    var decodedBytes = 0
    /// What the delegate did not take yet of what has been decoded.
    var untaken: [UInt8] = []
    /// Whether what comes as a body is none: of a response that has no content.
    var dropsBody = false

    init(client: UpstreamClient, request: UpstreamRequest, delegate: any TransferDelegate) {
        self.client = client
        self.request = request
        self.delegate = delegate
        timeouts = request.timeouts ?? client.options.timeouts
        stallTimeout = timeouts.stall
        state = TransferState(now: client.loop.now)
        head = ResponseHeadReader(limit: client.options.maxHeadBytes, decodes: request.decodes)
    }

    // MARK: For the user

    /// Lets the body come again after `Flow.pause`, with the piece that was not taken first.
    ///
    /// The delegate is called later, not from in here.
    package func resume() {
        client.later(.resume(self))
    }

    /// Gives the transfer up; the delegate hears `completed(.failure(.cancelled))` later, and nothing else.
    package func cancel() {
        guard state.cancelled() else { return }
        client.later(.cancel(self))
    }

    /// Replaces the time allowed between two pieces of the body; nil for no limit.
    ///
    /// For the delegate that sees an event stream's head.
    package func setStallTimeout(_ timeout: Duration?) {
        stallTimeout = timeout
        if state.phase == .receiving { watch() }
    }

    // MARK: For the client

    /// Makes the handle that the client puts to work; throws what cannot be sent.
    func prepare(waitsForMultiplexing: Bool) throws(UpstreamError) -> CurlTransfer {
        let curl = CurlTransfer(owner: self)
        let sendsBody = request.body != nil && request.body?.declaredLength != 0 && request.method != "HEAD"
        if body == nil { body = sendsBody ? request.body.map(RequestBodySender.init) : nil }
        try curl.prepare(
            request,
            options: client.options,
            timeouts: timeouts,
            bodyLength: body.map(\.declaredLength),
            waitsForMultiplexing: waitsForMultiplexing
        )
        self.curl = curl
        watch()
        return curl
    }

    /// The handle while there is one.
    var handle: CurlTransfer? { curl }

    /// Whether its origin is one of these.
    func isBound(for origins: Set<Substring>) -> Bool {
        !origins.isEmpty && origins.contains(request.origin)
    }

    /// Whether the user gave up before it ended.
    var isCancelled: Bool { state.isCancelled }

    /// Lets libcurl go on with what rests and no longer should; on a clean stack.
    func letGo(receiving: Bool, sending: Bool) {
        let now = client.loop.now
        let resumesReceiving = receiving && state.receivingResumed(now: now)
        let resumesSending = sending && state.sendingResumed(now: now)
        guard resumesReceiving || resumesSending, let curl else { return }
        client.pause(curl, receiving: state.isReceivingPaused, sending: state.isSendingPaused)
        watch()
    }

    /// libcurl is done with the transfer.
    func ended(_ result: CurlResult) {
        guard let curl else { return }
        passOnHead()
        if let error = error(of: result, curl) {
            end(.failure(error))
        } else {
            end(
                .success(
                    TransferSummary(
                        bodyBytes: state.bodyBytes,
                        wireBytes: curl.receivedBytes,
                        reusedConnection: curl.madeConnections == 0,
                        attempts: state.attempts,
                        isCodingWhole: decoder?.isAtEnd ?? true
                    )
                )
            )
        }
    }

    /// Informs the delegate of the end and lets everything go; on a clean stack.
    func end(_ result: Result<TransferSummary, UpstreamError>) {
        guard state.ended() else { return }
        watchdog = nil
        curl = nil
        body = nil
        let delegate = delegate
        self.delegate = nil
        delegate?.completed(result)
    }

    private func error(of result: CurlResult, _ curl: CurlTransfer) -> UpstreamError? {
        if let reason = state.ownReason { return reason }
        switch state.phase {
        case .waiting: return result.errorBeforeSending()
        // libcurl takes a head that breaks off for a response without a body.
        case .sent: return result.isSuccess ? .reset(afterBytes: 0) : result.errorBeforeHead()
        case .receiving, .ended:
            let received = curl.receivedBytes
            if result.isSuccess { return nil }
            // The response was whole before the connection broke under the rest of the request's body.
            if result.isLostConnection, curl.announcedBytes == received { return nil }
            return result.errorInBody(announced: curl.announcedBytes, received: received)
        }
    }

    /// Its pace in bytes a second; see `TransferState.pace`.
    func pace(now: UInt64) -> Int? {
        guard let curl, !state.isCancelled, state.ownReason == nil else { return nil }
        let sent = body.flatMap { $0.hasEnded ? nil : $0.taken }
        return state.pace(sent: sent, received: curl.receivedBytes, now: now)
    }

    // MARK: Time

    /// Arms the watchdog for the deadline that now runs.
    ///
    /// It is not moved with every piece that comes: when it fires too early it is armed for the rest.
    func watch() {
        guard let deadline = currentDeadline() else {
            watchdog?.cancel()
            return
        }
        let now = client.loop.now
        let rest = deadline.at > now ? Int64(deadline.at - now) : 0
        let timer = watchdog ?? EventTimer(loop: client.loop) { [unowned self] in watchdogFired() }
        watchdog = timer
        // A little later than needed: the loop's clock is coarse.
        timer.schedule(after: .nanoseconds(rest) + .milliseconds(5))
    }

    private func watchdogFired() {
        if let received = curl?.receivedBytes, received != watchedBytes {
            watchedBytes = received
            state.progressed(now: client.loop.now)
        }
        guard let deadline = currentDeadline(), deadline.at <= client.loop.now else { return watch() }
        state.stop(because: deadline.error)
        client.later(.stop(self, deadline.error))
    }

    private func currentDeadline() -> (at: UInt64, error: UpstreamError)? {
        var timeouts = timeouts
        timeouts.stall = stallTimeout
        return state.deadline(timeouts)
    }
}
