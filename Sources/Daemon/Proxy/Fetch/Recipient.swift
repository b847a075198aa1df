import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings

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
    func refuse(_ problem: ProblemDocument, _ status: CacheStatus? = nil) {
        var fields = Fields()
        fields.append("Content-Type", ProblemDocument.mediaType)
        fields.append("Cache-Control", "no-store")
        if let retryAfter = problem.retryAfter { fields.append("Retry-After", String(retryAfter)) }
        fields.append("Cache-Status", status?.text ?? problem.cacheStatus)
        respond(status: problem.status, fields: fields, body: problem.bytes)
    }
}
