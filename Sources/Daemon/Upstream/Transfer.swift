import EventLoops
package import HTTPSemantics

/// One request on its way to an upstream, and its response on the way back.
///
/// The upstream loop only. The client keeps it alive until its end; whoever started it may forget it.
package final class Transfer {
    let client: UpstreamClient
    let request: UpstreamRequest
    private let timeouts: UpstreamTimeouts
    var delegate: (any TransferDelegate)?
    /// The handle while there is one.
    private(set) var curl: CurlTransfer?
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
        timeouts = client.options.timeouts
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
            bodyLength: body.map(\.declaredLength),
            waitsForMultiplexing: waitsForMultiplexing
        )
        self.curl = curl
        watch()
        return curl
    }

    /// Whether its origin is one of these.
    func isBound(for origins: Set<Substring>) -> Bool {
        !origins.isEmpty && origins.contains(request.origin)
    }

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

/// Events of libcurl, which is on the stack.
extension Transfer: CurlTransfer.Owner {
    func curlWillSend() -> Bool {
        guard
            !state.isCancelled,
            state.willSend(isSafe: request.isSafe, hasAnswer: !head.isEmpty, now: client.loop.now)
        else { return false }
        watch()
        return true
    }

    func curlReceived(headLine: UnsafeRawBufferPointer) -> Bool {
        guard !state.isCancelled else { return false }
        switch head.received(headLine) {
        case .incomplete:
            break
        case .informational(let status, let fields):
            state.progressed(now: client.loop.now)
            if status != 100 { delegate?.informational(status: status, fields: fields) }
        case .final(let response):
            state.headArrived(now: client.loop.now)
            dropsBody = response.status == 205
            if request.method != "HEAD" {
                decoder = response.decodedFrom.flatMap(ContentDecoder.Coding.init(named:)).map(ContentDecoder.init)
            }
            client.answered(request, version: response.version)
            watch()
            if decoder != nil, !response.isEventStream {
                withheldHead = response
            } else {
                delegate?.received(head: response)
            }
        case .failed(let error):
            state.stop(because: error)
            return false
        }
        return !state.isCancelled
    }

    func curlReceived(body bytes: UnsafeRawBufferPointer) -> CurlTransfer.Write {
        guard !state.isCancelled, delegate != nil else { return .abort }
        if bytes.isEmpty { return .taken }
        if dropsBody {
            state.progressed(now: client.loop.now)
            return .taken
        }
        guard let decoder else {
            let rest = passOnUntaken()
            return rest == .taken ? passOn(bytes) : rest
        }
        return decode(bytes, decoder)
    }

    /// Decodes a piece and passes it on; where the delegate pauses, it goes on with the same piece later.
    private func decode(_ bytes: UnsafeRawBufferPointer, _ decoder: ContentDecoder) -> CurlTransfer.Write {
        var input = UnsafeRawBufferPointer(rebasing: bytes[decodedBytes...])
        while true {
            let rest = passOnUntaken()
            guard rest == .taken else { return rest }
            let room = client.decodingRoom
            let count: Int
            do throws(ContentDecoder.Malformed) {
                count = try decoder.decode(&input, into: room)
            } catch {
                return broken(bytes, because: error.reason)
            }
            decodedBytes = bytes.count - input.count
            guard count > 0 else {
                decodedBytes = 0
                guard withheldHead != nil else { return .taken }
                // In case it turns out not to be in its coding.
                guard withheldBytes.count + bytes.count <= Self.withheldLimit else {
                    return broken(bytes, because: "nothing comes of it")
                }
                withheldBytes += bytes
                return .taken
            }
            passOnHead()
            let piece = UnsafeRawBufferPointer(rebasing: room[..<count])
            let write = passOn(piece)
            if write == .pause { untaken = Array(piece) }
            if write != .taken { return write }
        }
    }

    /// The body is not in its coding: it goes on as it came if nothing of it has been passed on, and fails if some has.
    private func broken(_ bytes: UnsafeRawBufferPointer, because reason: String) -> CurlTransfer.Write {
        guard withheldHead != nil, let garbled = head.garbled else {
            state.stop(because: .decoding(reason))
            return .abort
        }
        withheldHead = nil
        decoder = nil
        decodedBytes = 0
        untaken = withheldBytes
        withheldBytes = []
        delegate?.received(head: garbled)
        let rest = passOnUntaken()
        return rest == .taken && !bytes.isEmpty ? passOn(bytes) : rest
    }

    /// What may be withheld of a body of which nothing could be decoded yet.
    private static let withheldLimit = 256 << 10

    /// Offers the delegate once more what it did not take.
    private func passOnUntaken() -> CurlTransfer.Write {
        guard !untaken.isEmpty else { return .taken }
        let write = untaken.withUnsafeBytes { passOn($0) }
        if write == .taken { untaken = [] }
        return write
    }

    private func passOn(_ bytes: UnsafeRawBufferPointer) -> CurlTransfer.Write {
        // The head before it may have been the reason to give up.
        guard let delegate, !state.isCancelled else { return .abort }
        let flow = delegate.received(body: bytes)
        if state.isCancelled { return .abort }
        switch flow {
        case .proceed:
            state.received(bytes: bytes.count, now: client.loop.now)
            return .taken
        case .pause:
            state.receivingPaused()
            return .pause
        }
    }

    func passOnHead() {
        guard let head = withheldHead else { return }
        withheldHead = nil
        withheldBytes = []
        delegate?.received(head: head)
    }

    func curlWantsBody(_ room: UnsafeMutableRawBufferPointer) -> CurlTransfer.Read {
        guard !state.isCancelled, body != nil else { return .abort }
        let reference = LoopReference(self, on: client.loop)
        let step = body?.fill(room, available: { reference.enqueue { $0.bodyAvailable() } }) ?? .end
        switch step {
        case .bytes(let count):
            state.progressed(now: client.loop.now)
            return .bytes(count)
        case .end:
            state.progressed(now: client.loop.now)
            return .end
        case .pending:
            state.sendingPaused()
            return .pause
        case .failed(let reason):
            state.stop(because: .requestBodyFailed(reason))
            return .abort
        }
    }

    func curlRewinds() -> Bool {
        body.map { $0.taken == 0 } ?? true
    }

    /// There is more of the request's body than when libcurl last asked.
    private func bodyAvailable() {
        letGo(receiving: false, sending: true)
    }
}

/// Whether the next piece of a body may follow.
package enum Flow: Sendable, Equatable {
    case proceed
    /// The piece just offered was not taken; it is offered again after `Transfer.resume()`.
    case pause
}

/// Receives an upstream's response, always on the upstream loop.
///
/// The order is: any number of interim responses, the head, pieces of body, and in every case `completed`, once, as the last call.
/// From each of them `resume()`, `cancel()` and new requests are allowed; none of the calls comes from within one of those.
package protocol TransferDelegate: AnyObject {
    /// An interim response (102, 103 …); 100 is kept back, being between Larder and the upstream.
    func informational(status: Int, fields: Fields)
    /// The final response's head.
    func received(head: UpstreamHead)
    /// A piece of the body, decoded; the bytes are valid during the call only.
    func received(body: UnsafeRawBufferPointer) -> Flow
    /// The end: the whole response has been received, or it failed.
    func completed(_ result: Result<TransferSummary, UpstreamError>)
}

/// Facts about a transfer that went well.
package struct TransferSummary: Sendable, Equatable {
    /// Bytes of body given to the delegate.
    var bodyBytes: Int
    /// Bytes of body as they came over the wire, before decoding.
    var wireBytes: Int
    /// Whether a connection from the pool served it.
    var reusedConnection: Bool
    /// How often the request was sent; more than once only for a safe one whose pooled connection died.
    var attempts: Int
    /// Whether the body's content coding came to its end, checksum included, and did not break off in a message that is whole.
    package var isCodingWhole = true
}
