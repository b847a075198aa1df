import EventLoops
package import HTTPSemantics

/// One request to an upstream, with its response.
///
/// Used on the upstream loop only. The client keeps it alive until its end, so the caller need not.
package final class Transfer {
    let client: UpstreamClient
    let request: UpstreamRequest
    private let timeouts: UpstreamTimeouts
    var delegate: (any TransferDelegate)?
    /// The handle, while there is one.
    private(set) var curl: CurlTransfer?
    var state: TransferState
    var head: ResponseHeadReader
    var body: RequestBodySender?
    /// The wire bytes at the last look: input that decodes to nothing for a while is progress, too.
    private var watchedBytes = 0
    private var stallTimeout: Duration?
    /// The decoder for the response's content coding; nil if there is none.
    var decoder: ContentDecoder?
    /// Checks a body that is passed on in its codings; nil if there is none.
    private var codingCheck: CodingCheck?
    /// The head of a coded response, withheld until the first decoded byte confirms the coding.
    var withheldHead: UpstreamHead?
    /// The bytes of the body received while its head is withheld.
    var withheldBytes: [UInt8] = []
    /// The number of bytes already decoded of the piece that libcurl will offer again.
    var decodedBytes = 0
    /// Decoded bytes that the delegate has not accepted yet.
    var untaken: [UInt8] = []
    /// Whether body bytes are dropped, because the response has no content.
    var dropsBody = false
    /// What shows that the response's body is whole, once its head has come.
    private var endProof = EndProof.none
    /// The end of a TLS connection with which the body ends.
    private var closure: CurlClosure?

    init(client: UpstreamClient, request: UpstreamRequest, delegate: any TransferDelegate) {
        (self.client, self.request, self.delegate) = (client, request, delegate)
        timeouts = client.options.timeouts.applying(request.timeouts)
        stallTimeout = timeouts.stall
        state = TransferState(now: client.loop.now)
        head = ResponseHeadReader(
            limit: client.options.maxHeadBytes,
            decodes: request.decodes,
            clientCodings: request.clientCodings
        )
    }

    // MARK: For the user

    /// Resumes the body after `Flow.pause`, starting with the piece that was not accepted.
    ///
    /// The delegate is called later, not during this call.
    package func resume() { client.later { [self] in letGo(receiving: true, sending: false) } }

    /// Cancels the transfer; the delegate later gets `completed(.failure(.cancelled))` and no other call.
    package func cancel() {
        guard state.cancelled() else { return }
        client.later { [self] in client.drop(self, .cancelled) }
    }

    /// Ends the transfer because of an error, once libcurl is off the stack.
    func stop(because error: UpstreamError) {
        state.stop(because: error)
        client.later { [self] in client.drop(self, error) }
    }

    /// Sets the time allowed between two pieces of the body; nil for no limit.
    ///
    /// A delegate calls it when it receives the head of an event stream.
    package func setStallTimeout(_ timeout: Duration?) {
        stallTimeout = timeout
        if state.phase == .receiving { watch() }
    }

    // MARK: For the client

    /// Makes the handle for the client to add; throws if the request cannot be sent.
    func prepare(waitsForMultiplexing waits: Bool) throws(UpstreamError) -> CurlTransfer {
        let sendsBody = request.body != nil && request.body?.declaredLength != 0 && request.method != "HEAD"
        let curl = client.handle(for: self, isForPlainGet: request.method == "GET" && !sendsBody)
        if body == nil { body = sendsBody ? request.body.map(RequestBodySender.init) : nil }
        let framing = body.map { BodyFraming(ofBodyWith: $0.declaredLength) } ?? .none
        try curl.prepare(request, options: client.options, body: framing, waitsForMultiplexing: waits)
        self.curl = curl
        watch()
        return curl
    }

    func isBound(for origins: Set<Substring>) -> Bool { !origins.isEmpty && origins.contains(request.origin) }

    /// Resumes paused directions; must be called with libcurl off the stack.
    func letGo(receiving: Bool, sending: Bool) {
        let now = client.loop.now
        let resumesReceiving = receiving && state.receivingResumed(now: now)
        let resumesSending = sending && state.sendingResumed(now: now)
        guard resumesReceiving || resumesSending, let curl else { return }
        client.pause(curl, receiving: state.isReceivingPaused, sending: state.isSendingPaused)
        watch()
    }

    /// Whether the request may be sent once more, because its HTTP/2 session ended without a response.
    ///
    /// A server ends a session when it wants no more requests (GOAWAY), even before the first. libcurl repeats a request by itself only
    /// if the connection came from the pool.
    func mayRepeat(after result: CurlResult) -> Bool {
        result.isEndOfSession && request.isSafe && head.isEmpty && body == nil && state.attempts == 1
            && state.ownReason == nil
    }

    func ended(_ result: CurlResult) {
        guard let curl else { return }
        passOnHead()
        if let error = error(of: result, curl) { return end(.failure(error)) }
        let summary = TransferSummary(
            bodyBytes: state.bodyBytes,
            wireBytes: curl.receivedBytes,
            reusedConnection: curl.madeConnections == 0,
            attempts: state.attempts,
            defect: defect(curl),
            isOdd: decoder?.hasTrailingBytes ?? codingCheck.map { $0.isMalformed || $0.hasTrailingBytes } ?? false
        )
        end(.success(summary))
    }

    /// Reports the end to the delegate and releases everything; must be called with libcurl off the stack.
    func end(_ result: Result<TransferSummary, UpstreamError>) {
        guard state.ended() else { return }
        if case .success = result, let curl { client.giveBack(curl) }
        curl = nil
        body = nil
        let delegate = delegate
        self.delegate = nil
        delegate?.completed(result)
    }

    private func error(of result: CurlResult, _ curl: CurlTransfer) -> UpstreamError? {
        if let reason = state.ownReason { return reason }
        switch state.phase {
        case .waiting: return result.errorBeforeSending(to: Destination(request.url))
        // libcurl treats a truncated head as a response without a body.
        case .sent: return result.isSuccess ? .reset(afterBytes: 0) : result.errorBeforeHead()
        case .receiving, .ended:
            let received = curl.receivedBytes
            if result.isSuccess { return nil }
            // The response was complete before the connection broke during the rest of the request body.
            if result.isLostConnection, curl.announcedBytes == received { return nil }
            return result.errorInBody(announced: curl.announcedBytes, received: received)
        }
    }

    /// Why a response that libcurl reports as complete is not shown to be whole; nil if it is.
    private func defect(_ curl: CurlTransfer) -> UpstreamError? {
        if let decoder, curl.receivedBytes > 0 {
            // Each coding says itself where it ends.
            return decoder.isAtEnd ? nil : .decoding("it ends too early")
        }
        if let codingCheck, !codingCheck.isMalformed, curl.receivedBytes > 0 {
            return codingCheck.isAtEnd ? nil : .decoding("it ends too early")
        }
        switch endProof {
        case .none, .length, .chunks: return nil
        case .stream(let length): return length == curl.receivedBytes ? nil : .unprovenEnd(.stream)
        case .connection:
            // Without a session to ask, a proxy's included, only a connection without TLS is believed.
            let isWhole = closure?.isAnnounced ?? !request.url.hasPrefix("https:")
            return isWhole ? nil : .unprovenEnd(.closure)
        }
    }

    /// The speed in bytes per second; see `TransferState.pace`.
    func pace(now: UInt64) -> Int? {
        guard let curl, !state.isCancelled, state.ownReason == nil else { return nil }
        let sent = body.flatMap { $0.hasEnded ? nil : $0.taken }
        return state.pace(sent: sent, received: curl.receivedBytes, now: now)
    }

    // MARK: Time

    /// Has the client look at the deadline when it is due.
    ///
    /// Nothing is moved with every piece received: if the look comes too early, there is another one.
    func watch() {
        if let deadline = currentDeadline() { client.watch(until: deadline.at) }
    }

    /// Ends the transfer if its deadline has passed.
    func lookAtDeadline() {
        if let received = curl?.receivedBytes, received != watchedBytes {
            watchedBytes = received
            state.progressed(now: client.loop.now)
        }
        guard let deadline = currentDeadline(), deadline.at <= client.loop.now else { return watch() }
        stop(because: deadline.error)
    }

    private func currentDeadline() -> (at: UInt64, error: UpstreamError)? {
        var timeouts = timeouts
        timeouts.stall = stallTimeout
        return state.deadline(timeouts)
    }
}

/// Handles libcurl's callbacks, while libcurl is on the stack.
extension Transfer: CurlTransfer.Owner {
    func curlWillSend() -> Bool {
        guard !state.isCancelled,
            state.willSend(isSafe: request.isSafe, hasResponse: !head.isEmpty, now: client.loop.now)
        else { return false }
        watch()
        return true
    }

    func curlReceived(headLine: UnsafeRawBufferPointer) -> Bool {
        guard !state.isCancelled else { return false }
        switch head.received(headLine) {
        case .incomplete: break
        case .informational(let status, let fields):
            state.progressed(now: client.loop.now)
            if status != 100 { delegate?.informational(status: status, fields: fields) }
        case .final(let response):
            state.headArrived(now: client.loop.now)
            dropsBody = response.status == 205
            if request.method != "HEAD" { endProof = response.endProof }
            if endProof == .connection { closure = curl?.watchingClosure() }
            if request.method != "HEAD" {
                decoder = response.decodedFrom.flatMap(ContentDecoder.Coding.init(named:)).map(ContentDecoder.init)
                // A part is not the beginning of its coding, and a stream of events is never stored.
                if decoder == nil, response.fields.isContentCoded, endProof != .none, response.status != 206,
                    !response.isEventStream
                {
                    codingCheck = CodingCheck(response.fields)
                }
            }
            client.recordVersion(of: request, response.version)
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

    func curlReceived(body bytes: UnsafeRawBufferPointer) -> CurlTransfer.Taking {
        guard !state.isCancelled, delegate != nil else { return .abort }
        if bytes.isEmpty { return .taken }
        if dropsBody {
            state.progressed(now: client.loop.now)
            return .taken
        }
        guard let decoder else {
            let rest = passOnUntaken()
            guard rest == .taken else { return rest }
            let write = passOn(bytes)
            if write == .taken { codingCheck?.received(bytes) }
            return write
        }
        return decode(bytes, decoder)
    }

    /// Decodes a piece and passes it on; if the delegate pauses, decoding continues with the same piece later.
    private func decode(_ bytes: UnsafeRawBufferPointer, _ decoder: ContentDecoder) -> CurlTransfer.Taking {
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
                // Kept in case the body does not conform to its coding.
                guard withheldBytes.count + bytes.count <= Self.withheldLimit
                else { return broken(bytes, because: "nothing comes of it") }
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

    /// Handles a body that does not conform to its coding: passes it on as received, or fails if some was already passed on.
    private func broken(_ bytes: UnsafeRawBufferPointer, because reason: String) -> CurlTransfer.Taking {
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

    /// The limit for bytes withheld before anything could be decoded.
    private static let withheldLimit = 256 << 10

    /// Offers the delegate the bytes again that it did not accept.
    private func passOnUntaken() -> CurlTransfer.Taking {
        guard !untaken.isEmpty else { return .taken }
        let write = untaken.withUnsafeBytes { passOn($0) }
        if write == .taken { untaken = [] }
        return write
    }

    private func passOn(_ bytes: UnsafeRawBufferPointer) -> CurlTransfer.Taking {
        // The delegate may have cancelled when it got the head.
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

    func curlWantsBody(_ room: UnsafeMutableRawBufferPointer) -> CurlTransfer.Supply {
        guard !state.isCancelled, body != nil else { return .abort }
        let reference = LoopReference(self, on: client.loop)
        do {
            let read = try body?.fill(room) { reference.enqueue { $0.letGo(receiving: false, sending: true) } } ?? .end
            if case .pause = read { state.sendingPaused() } else { state.progressed(now: client.loop.now) }
            return read
        } catch {
            state.stop(because: error)
            return .abort
        }
    }

    func curlRewinds() -> Bool { body.map { $0.taken == 0 } ?? true }
}

/// Whether the delegate accepts a piece of the body.
package enum Flow: Sendable, Equatable {
    case proceed
    /// The piece was not accepted; it is offered again after `Transfer.resume()`.
    case pause
}

/// Receives an upstream's response, always on the upstream loop.
///
/// The order is: any number of interim responses, the head, pieces of the body, and in every case `completed`, once, as the
/// last call. During each call, `resume()`, `cancel()` and new requests are allowed; none of those calls the delegate
/// directly.
package protocol TransferDelegate: AnyObject {
    /// Whether a request that has waited for its turn is still to be sent; if not, it ends as cancelled.
    func isStillWanted() -> Bool
    /// An interim response (102, 103 …), but no 100, which concerns only Larder and the upstream.
    func informational(status: Int, fields: Fields)
    func received(head: UpstreamHead)
    /// A piece of the body, decoded; the bytes are valid during the call only.
    func received(body: UnsafeRawBufferPointer) -> Flow
    /// The end: the whole response has been received, or it failed.
    func completed(_ result: Result<TransferSummary, UpstreamError>)
}

extension TransferDelegate {
    /// Sends it, as if it had not waited.
    package func isStillWanted() -> Bool { true }
}

/// Facts about a successful transfer.
///
/// The counts of bytes, the reused connection and the attempts are read by tests only.
package struct TransferSummary: Sendable, Equatable {
    /// The number of body bytes given to the delegate.
    var bodyBytes: Int
    /// The number of body bytes received over the wire, before decoding.
    var wireBytes: Int
    var reusedConnection: Bool
    /// How often the request was sent; more than once only for a safe one without a response yet: its pooled connection died, or its
    /// HTTP/2 session ended, be it a new one.
    var attempts: Int
    /// Why it is not certain that the body is whole; nil if it is.
    package var defect: UpstreamError?
    /// Whether bytes followed the end of the body's content coding, or it was passed on in a coding that it does not conform to.
    package var isOdd = false
}
