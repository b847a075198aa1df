package import CachePolicy
import EventLoops
package import HTTPSemantics
package import HTTPServer
import Settings
import Upstream

/// One client of a fetch: passes the response on to it, and knows how far behind it is; the upstream loop only.
final class Relay {
    let request: ProxyRequest
    let reply: any Recipient
    /// Whether this client started the fetch; the others joined it.
    let isLeader: Bool
    /// Whether it already left another fetch whose response was not for it; that happens at most once.
    var hasMoved = false
    /// Fires when its client has waited long enough for what may be served stale.
    var patience: EventTimer?
    private var hasResponded = false
    /// The number of body bytes to pass on as they come; nil for all.
    private var bytesBeforeEnd: Int?
    /// The received part of the body after those bytes, which is withheld.
    private var end: [UInt8] = []
    /// The fields of a withheld 304, which has no body whose end could be withheld.
    private var withheldNotModified: Fields?

    init(_ request: ProxyRequest, _ reply: any Recipient, isLeader: Bool) {
        (self.request, self.reply, self.isLeader) = (request, reply, isLeader)
    }

    /// The number of bytes that the client has not taken yet.
    var backlog: Int { reply.backlog }

    /// Passes an interim response on (RFC 9110 §15.2); it is not stored.
    func inform(status: Int, fields: Fields) {
        var fields = fields
        if !isLeader { fields.remove(.setCookie) }
        reply.informational(status: status, fields: request.interim(fields))
    }

    /// Sends the head of a response whose body follows as it arrives.
    ///
    /// For a shareable response, Larder asked for the whole without the client's own conditions. They are evaluated here, even if
    /// the response turns out not to be storable.
    ///
    /// - Parameters:
    ///   - storing: the response to store when its body is whole; nil if it is not stored.
    ///   - isKept: whether it will be kept then, as far as that is known.
    ///   - withholdsEnd: whether to withhold the last byte, and so the end of the response, until `finish`.
    func begin(_ head: UpstreamHead, storing: CachedResponse?, isKept: Bool = true, withholdsEnd: Bool, now: Int64) {
        var fields = head.fields
        // A cookie is only for the client whose request was sent.
        if !isLeader { fields.remove(.setCookie) }
        let length = fields.contentLength
        fields.remove(.contentLength)
        let isStored = storing != nil && isKept
        var status = request.forwarded(isStored: isStored, isCollapsed: !isLeader)
        if let storing {
            let policy = request.upstream.applying(storing.policy, request.overrides)
            status.timeToLive = policy.timeToLive(at: now)
            status.add(detail: policy.overrideDetail(of: request.overrides, vary: VaryField(storing.fields)))
            if !isKept { status.add(detail: NotStoredReason.unwritable.rule) }
        }
        if request.asksForItself, request.hasCurrent(status: head.status, fields: fields, now: now) {
            hasResponded = true
            status.forwardStatus = head.status
            fields = StoredFields.notModified(fields)
            request.decorate(&fields, of: head.status, with: status)
            withheldNotModified = fields
            if !withholdsEnd { release() }
            return
        }
        request.decorate(&fields, of: head.status, with: status)
        // If the length is unknown, the response ends with framing, not with a body byte.
        if withholdsEnd, let length, length > 0 { bytesBeforeEnd = length - 1 }
        let (code, phrase) = (head.status, head.reasonPhrase)
        let framing = BodyFraming(ofBodyWith: length)
        reply.begin(status: code, reason: phrase, fields: fields, framing: framing, isKept: storing != nil)
    }

    func write(_ piece: [UInt8]) {
        guard !hasResponded else { return }
        guard let count = bytesBeforeEnd, piece.count > count else {
            bytesBeforeEnd? -= piece.count
            return reply.write(piece)
        }
        reply.write(Array(piece[..<count]))
        end += piece[count...]
        bytesBeforeEnd = 0
    }

    /// Passes on withheld bytes, because the fetch no longer buffers the body.
    func keptNoLonger() {
        release()
        if !hasResponded { reply.keptNoLonger() }
    }

    /// Records how a client's request is served; those of Larder's own do not count.
    func recordOutcome(_ outcome: Outcome) {
        if reply.isRequest { request.note?.recordOutcome(outcome) }
    }

    func finish() {
        release()
        if !hasResponded { reply.finish() }
    }

    func abort() {
        // A 304 concerns the client's own copy, not the truncated body.
        if withheldNotModified != nil { release() }
        if !hasResponded { reply.abort() }
    }

    private func release() {
        if let fields = withheldNotModified {
            withheldNotModified = nil
            return reply.respond(status: 304, fields: fields, body: [])
        }
        bytesBeforeEnd = nil
        guard !hasResponded, !end.isEmpty else { return }
        reply.write(end)
        end = []
    }
}

/// The recipient of a fetch's response: a client's `Reply`, or something that transforms it first.
///
/// It gets the response once, in one of three ways: begun, written, and finished or aborted, as it arrives; whole, from what is
/// stored; or refused. It is called on the upstream loop; its callbacks come on any thread.
protocol Recipient: AnyObject {
    /// Sends a 1xx response ahead of the final one.
    func informational(status: Int, fields: Fields)

    /// Begins a response whose body follows as it arrives.
    ///
    /// - Parameter isKept: whether the fetch buffers the pieces too, so that holding them takes no further memory.
    func begin(status: Int, reason: String?, fields: Fields, framing: BodyFraming, isKept: Bool)
    func write(_ piece: [UInt8])
    /// Sends what was written at once if it may, instead of at the end of the turn.
    func flush()
    /// The fetch no longer buffers the pieces written, nor those that follow.
    func keptNoLonger()
    func finish()
    /// Ends a truncated response.
    func abort()

    func respond(status: Int, fields: Fields, body: [UInt8])

    /// Serves a whole response that is stored, or might be.
    ///
    /// - Parameter cookies: new ones for this client alone; a replayed response already contains its own.
    func serve(
        _ ready: ReadyResponse,
        for request: ProxyRequest,
        as cacheUse: CacheUse,
        isCollapsed: Bool,
        cookies: [Field],
        now: Int64
    )

    /// Sends a problem document instead of a response.
    ///
    /// - Parameter status: how far the request got; without it, the kind of problem decides.
    func refuse(_ problem: ProblemDocument, _ status: CacheStatus?)

    /// The bytes written here that the client has not taken yet.
    var backlog: Int { get }

    /// Calls back once when the backlog is below `limit` bytes, or the client is gone.
    func onDrain(below limit: Int, _ callback: @escaping @Sendable () -> Void)

    /// Calls back once if the client disconnects before the response is finished.
    func onDisconnect(_ callback: @escaping @Sendable () -> Void)

    /// Whether it stands for a client's request, which is counted.
    var isRequest: Bool { get }
}

extension Reply: Recipient {
    var isRequest: Bool { true }

    /// The connection holds the written bytes and counts them itself.
    func keptNoLonger() {}

    func begin(status: Int, reason: String?, fields: Fields, framing: BodyFraming, isKept: Bool) {
        start(status: status, reason: reason, fields: fields, framing: framing)
    }

    package func finish() { finish(trailers: [:]) }

    /// Serves a stored response: evaluates the conditions, adds `Age` and `Cache-Status`.
    func serve(
        _ ready: ReadyResponse,
        for request: ProxyRequest,
        as cacheUse: CacheUse,
        isCollapsed: Bool = false,
        cookies: [Field] = [],
        now: Int64
    ) {
        guard
            let (status, fields, body) = message(
                ready,
                for: request,
                as: cacheUse,
                isCollapsed: isCollapsed,
                cookies: cookies,
                now: now
            )
        else { return refuse(.notCached) }
        respond(status: status, fields: fields, body: body)
    }

    /// Serves a response once its commit is foreseen; its last byte, and so its end, waits for the commit.
    ///
    /// If there is no commit after all, the connection is cut.
    ///
    /// - Returns: false if the commit is not foreseen: then nothing is sent.
    func serve(
        _ ready: ReadyResponse,
        for request: ProxyRequest,
        as cacheUse: CacheUse,
        with commit: AwaitedCommit,
        now: Int64
    ) async -> Bool {
        guard let (status, fields, body) = message(ready, for: request, as: cacheUse, now: now) else {
            refuse(.notCached)
            return true
        }
        let allButLast = Array(body.dropLast())
        commit.whenForeseen { [self] in
            start(status: status, fields: fields, framing: .length(body.count))
            write(allButLast)
        }
        guard await commit.isForeseen() else { return false }
        if await commit.isStored() {
            write(Array(body.suffix(1)))
            finish()
        } else {
            abort()
        }
        return true
    }

    /// The message that serves a stored response; nil if its parts do not contain what is wanted.
    private func message(
        _ ready: ReadyResponse,
        for request: ProxyRequest,
        as cacheUse: CacheUse,
        isCollapsed: Bool = false,
        cookies: [Field] = [],
        now: Int64
    ) -> (status: Int, fields: Fields, body: [UInt8])? {
        guard let content = ServedContent(of: ready, for: request.message, now: now) else { return nil }
        var (code, fields, body) = content.message(from: ready)
        let status = ready.addHistory(
            to: &fields,
            as: cacheUse,
            sent: code,
            isCollapsed: isCollapsed,
            because: request.reason.detail?.word,
            now: now
        )
        request.note?.served(as: status)
        let replays = request.upstream.settings.cookies == .replay
        var own = Fields(cookies.filter { !replays || !$0.isNamed("set-cookie") })
        request.upstream.rewriteLinks(in: &own, for: request.base)
        fields.append(contentsOf: own)
        request.upstream.addCORS(to: &fields, for: request.message.fields)
        return (code, fields, body)
    }

    /// Sends a problem document.
    ///
    /// - Parameter status: how far the request got; without it, the kind of problem decides.
    package func refuse(_ problem: ProblemDocument, _ status: CacheStatus? = nil) {
        var fields = Fields()
        fields.append("Content-Type", ProblemDocument.mediaType)
        fields.append("Cache-Control", "no-store")
        if let retryAfter = problem.retryAfter { fields.append("Retry-After", String(retryAfter)) }
        let status = status ?? problem.cacheStatus
        status.append(to: &fields)
        note?.recordOutcome(.error)
        note?.served(as: status)
        respond(status: problem.status, fields: fields, body: problem.bytes)
    }
}
