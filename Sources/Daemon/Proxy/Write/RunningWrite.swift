import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer
import Mapping
import Settings
import Upstream

/// An unsafe request under way: performs its `Write`'s actions and sends it the events; the upstream loop only.
final class RunningWrite: TransferDelegate {
    let request: ProxyRequest
    /// What the request has reserved of a rate limit.
    var reservation: BackOffs.Reservation?
    /// When the request was sent, in µs of the store's clock.
    private let start: Int64
    private let reply: Reply
    private unowned let fetches: Fetches
    private var state: Write
    private var transfer: Transfer?
    private var head: UpstreamHead?
    private var outcome: WriteOutcome?
    private var continuation: CheckedContinuation<WriteOutcome, Never>?
    private var error: UpstreamError?
    private var isClientGone = false
    /// Bytes of the body that count in `Fetches.bufferedBytes`.
    private var charge = 0

    init(_ request: ProxyRequest, _ reply: Reply, fetches: Fetches) {
        (self.request, self.reply, self.fetches) = (request, reply, fetches)
        start = fetches.cache.now
        let rewritesLinks = request.upstream.settings.rewriteLinks && request.view == .wire
        let limit = request.upstream.daemon.limits.document
        state = Write(wantsRendered: request.view == .mapped || rewritesLinks, limit: limit)
    }

    func send(_ request: UpstreamRequest, through client: UpstreamClient) {
        transfer = client.start(request, self)
        let write = LoopReference(self, on: fetches.loop)
        reply.onDisconnect { write.enqueue { $0.clientLeft() } }
    }

    /// Waits until the response has come, except for its withheld piece, or never will.
    func ended() async -> WriteOutcome {
        if let outcome { return outcome }
        return await withCheckedContinuation { continuation = $0 }
    }

    /// Sends the client the rest, after the store has committed the write.
    func committed() {
        handle(.committed)
        // The response's memory is free once the client has taken the rest.
        fetches.release(&charge, after: [reply])
        fetches.ended(self)
    }

    // MARK: Transfer events

    func informational(status: Int, fields: Fields) {
        reply.informational(status: status, fields: request.interim(fields))
    }

    func received(head: UpstreamHead) {
        self.head = head
        fetches.recordResponse(to: request)
        fetches.recordRetryAfter(of: head, to: request, reservation)
        handle(.head(isJSON: request.upstream.isJSON(head.fields)))
    }

    func received(body bytes: UnsafeRawBufferPointer) -> Flow {
        let window = request.upstream.daemon.limits.relayWindow
        if !isClientGone, reply.backlog > window {
            let write = LoopReference(self, on: fetches.loop)
            reply.onDrain(below: window / 2) { write.enqueue { $0.transfer?.resume() } }
            return .pause
        }
        let isCharged = state.body.hasRoom(for: bytes.count)
        if isCharged { charge += bytes.count }
        // Without memory the objects in the response are not stored: the write counts as one that showed no new state.
        handle(.body([UInt8](bytes), fits: !isCharged || fetches.reserve(bytes.count)))
        if !state.body.isWhole { fetches.release(&charge, after: [reply]) }
        return .proceed
    }

    func completed(_ result: Result<TransferSummary, UpstreamError>) {
        transfer = nil
        if case .failure(let error) = result { self.error = error }
        let (end, seconds) = fetches.transferEnded(request, result, status: head?.status, since: start, reservation)
        request.note?.upstreamTook(seconds)
        handle(.ended(end))
    }

    private func clientLeft() {
        isClientGone = true
        handle(.clientLeft)
    }

    // MARK: Actions

    private func handle(_ event: Write.Event) { for action in state.handle(event) { perform(action) } }

    private func perform(_ action: Write.Action) {
        switch action {
        case .commit:
            let body = state.body.isWhole ? state.body.joined() : nil
            let outcome = WriteOutcome(head: head, body: body, error: error)
            self.outcome = outcome
            continuation?.resume(returning: outcome)
        case .resume: transfer?.resume()
        case .begin: begin()
        case .write(let piece): reply.write(piece)
        case .finish: reply.finish()
        case .abort: reply.abort()
        case .serveRendered:
            let received = state.body.joined()
            let upstream = request.upstream
            let rewritten =
                upstream.settings.rewriteLinks
                ? upstream.linkRewriter(for: request.base).rewritten(body: received) : nil
            let mapped = request.view == .mapped ? outcome?.mapped(rewritten ?? received, for: request) : nil
            let body = mapped?.body ?? rewritten ?? received
            begin(with: body, mapped, isChanged: rewritten != nil)
            reply.write(body)
            reply.finish()
        case .fail:
            let error = error ?? .cancelled
            reply.refuse(.upstreamFailed(error, upstream: request.upstream.name), request.statusOfFailure(error))
        }
    }

    /// - Parameter isChanged: whether the body has other links than the upstream sent.
    private func begin(with body: [UInt8]? = nil, _ mapped: MappedBody? = nil, isChanged: Bool = false) {
        guard let head else { return }
        var fields = head.fields
        var length = fields.text("content-length").flatMap(Int.init)
        fields.remove("content-length")
        if let body { length = body.count }
        if isChanged { for name in Rendering.fieldsOfBytes { fields.remove(name) } }
        if let mapped { Rendering.describe(mapped, in: &fields) }
        request.prepareForClient(&fields, of: head.status, with: request.statusOfWrite)
        let framing = BodyFraming(ofBodyWith: length)
        reply.start(status: head.status, reason: head.reasonPhrase, fields: fields, framing: framing)
    }
}
