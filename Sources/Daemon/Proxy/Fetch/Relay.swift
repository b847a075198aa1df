package import CachePolicy
package import HTTPSemantics
package import HTTPServer
import Settings
import Upstream

/// One client's place in a fetch: what it is sent, and how far behind it is.
///
/// The upstream loop only.
final class Relay {
    let request: ProxyRequest
    /// Where its response goes.
    let reply: any Recipient
    /// Whether the fetch began for this client; the others joined.
    let isLeader: Bool
    /// Whether it was with another fetch before, whose response was not for it; once is enough.
    var hasMoved = false
    private var isAnswered = false
    /// How many bytes of the body go as they come; nil: all.
    private var bytesBeforeEnd: Int?
    /// What has come of the body behind them.
    private var end: [UInt8] = []
    /// The fields of a 304, which is all of the response, and so its end.
    private var withheldNotModified: Fields?

    init(_ request: ProxyRequest, _ reply: any Recipient, isLeader: Bool) {
        self.request = request
        self.reply = reply
        self.isLeader = isLeader
    }

    /// Bytes that the client has not taken yet.
    var backlog: Int { reply.backlog }

    /// Passes an interim response on (RFC 9110 §15.2); nothing of it is kept.
    func inform(status: Int, fields: Fields) {
        var fields = fields
        if !isLeader { fields.remove("set-cookie") }
        reply.informational(status: status, fields: request.interim(fields))
    }

    /// Sends the head of a response that follows as it arrives.
    ///
    /// For a response that others may have, Larder asked for the whole, without the client's own conditions: those are
    /// evaluated here, also where it turns out that the response must not be stored.
    ///
    /// - Parameters:
    ///   - terms: on which the response will be stored; nil where it will not.
    ///   - withholdsEnd: whether the client is to have the last byte, and with it the response, no sooner than `finish`.
    func begin(_ head: UpstreamHead, storedOn terms: StorageTerms?, withholdsEnd: Bool, now: Int64) {
        var fields = head.fields
        // A cookie is for the one whose request it answers.
        if !isLeader { fields.remove("set-cookie") }
        let length = fields.text("content-length").flatMap(Int.init)
        fields.remove("content-length")
        var status = CacheStatus.forwarded(request.reason, isStored: terms != nil, isCollapsed: !isLeader)
        status.timeToLive = terms?.timeToLive
        status.detail = request.overrides.cache == .never ? "never-by-route" : terms?.overrideDetail
        if request.asksForItself, request.hasCurrent(status: head.status, fields: fields, now: now) {
            isAnswered = true
            status.forwardStatus = head.status
            fields = StoredFields.notModified(fields)
            request.decorate(&fields, with: status)
            withheldNotModified = fields
            if !withholdsEnd { release() }
            return
        }
        request.decorate(&fields, with: status)
        // Where the length is not known, what ends the response is not a part of the body.
        if withholdsEnd, let length, length > 0 { bytesBeforeEnd = length - 1 }
        reply.begin(
            status: head.status,
            reason: head.reasonPhrase,
            fields: fields,
            framing: length.map { .length($0) } ?? .chunked,
            isKept: terms != nil
        )
    }

    func write(_ piece: [UInt8]) {
        guard !isAnswered else { return }
        guard let count = bytesBeforeEnd, piece.count > count else {
            bytesBeforeEnd? -= piece.count
            return reply.write(piece)
        }
        reply.write(Array(piece[..<count]))
        end += piece[count...]
        bytesBeforeEnd = 0
    }

    /// The fetch has let go of the body: nothing is withheld for its sake any more.
    func keptNoLonger() {
        release()
        if !isAnswered { reply.keptNoLonger() }
    }

    func finish() {
        release()
        if !isAnswered { reply.finish() }
    }

    func abort() {
        // A 304 is about what the client has, not about the body that broke off.
        if withheldNotModified != nil { release() }
        if !isAnswered { reply.abort() }
    }

    /// Passes on what was withheld.
    private func release() {
        if let fields = withheldNotModified {
            withheldNotModified = nil
            return reply.respond(status: 304, fields: fields, body: [])
        }
        bytesBeforeEnd = nil
        guard !isAnswered, !end.isEmpty else { return }
        reply.write(end)
        end = []
    }
}

/// Where the response of a fetch goes: to a client's `Reply`, or to what makes something else of it first.
///
/// It is given the response in one of three ways, once: begun, written and finished or aborted, as it arrives; whole, from
/// what is stored; or refused. Called on the upstream loop; its callbacks come on any thread.
protocol Recipient: AnyObject {
    /// A response 1xx, ahead of the final one.
    func informational(status: Int, fields: Fields)

    /// Begins a response that follows as it arrives.
    ///
    /// - Parameter isKept: whether the fetch keeps the pieces of the body as well, so that keeping them costs nothing.
    func begin(status: Int, reason: String?, fields: Fields, framing: ReplyFraming, isKept: Bool)
    func write(_ piece: [UInt8])
    /// The fetch keeps nothing any more of what was written, nor of what follows.
    func keptNoLonger()
    func finish()
    /// The response broke off.
    func abort()

    /// Gives the whole response.
    func respond(status: Int, fields: Fields, body: [UInt8])

    /// Gives a whole response that is stored, or might be.
    ///
    /// - Parameter cookies: new ones for this client alone; those of a response that is replayed are in it already.
    func serve(
        _ ready: ReadyResponse,
        for request: ProxyRequest,
        as cacheUse: CacheUse,
        isCollapsed: Bool,
        cookies: [Field],
        now: Int64
    )

    /// Gives a problem document in place of a response.
    ///
    /// - Parameter status: how far the request got; without it the kind of problem says why it got nowhere.
    func refuse(_ problem: ProblemDocument, _ status: CacheStatus?)

    /// Bytes written here that have not been taken yet.
    var backlog: Int { get }

    /// Calls back once when the backlog is below `limit` bytes, or nobody is there any more to take it.
    func onDrain(below limit: Int, _ callback: @escaping @Sendable () -> Void)

    /// Calls back once if nobody waits for the response any more before it is finished.
    func onDisconnect(_ callback: @escaping @Sendable () -> Void)

    /// Whether it stands for a request of a client's, to be counted as one.
    var isRequest: Bool { get }
}

extension Reply: Recipient {
    var isRequest: Bool { true }

    /// What was written is with the connection, which counts it itself.
    func keptNoLonger() {}

    func begin(status: Int, reason: String?, fields: Fields, framing: ReplyFraming, isKept: Bool) {
        start(status: status, reason: reason, fields: fields, framing: framing)
    }

    package func finish() {
        finish(trailers: Fields())
    }
}

extension Reply {
    /// Sends a stored response: its conditions evaluated, its age and its history added.
    ///
    /// - Parameter cookies: new ones, and other lines, for this client alone; cookies of a response that is replayed are in it
    ///   already.
    func serve(
        _ ready: ReadyResponse,
        for request: ProxyRequest,
        as cacheUse: CacheUse,
        isCollapsed: Bool = false,
        cookies: [Field] = [],
        now: Int64
    ) {
        guard let portion = SelectedPart(of: ready, for: request.message, now: now) else {
            return refuse(.notCached(request))
        }
        var (code, fields, body) = portion.message(from: ready)
        ready.addHistory(to: &fields, as: cacheUse, sent: code, isCollapsed: isCollapsed, now: now)
        let replays = request.upstream.settings.cookies == .replay
        fields.lines += cookies.filter { !replays || !$0.isNamed("set-cookie") }
        request.upstream.addCORS(to: &fields, for: request.message.fields)
        respond(status: code, fields: fields, body: body)
    }

    /// Sends a problem document.
    ///
    /// - Parameter status: how far the request got; without it the kind of problem says why it got nowhere.
    package func refuse(_ problem: ProblemDocument, _ status: CacheStatus? = nil) {
        var fields = Fields()
        fields.append("Content-Type", ProblemDocument.mediaType)
        fields.append("Cache-Control", "no-store")
        if let retryAfter = problem.retryAfter { fields.append("Retry-After", String(retryAfter)) }
        fields.append("Cache-Status", status?.text ?? problem.cacheStatus)
        respond(status: problem.status, fields: fields, body: problem.bytes)
    }
}
