import CachePolicy
import HTTPSemantics
import HTTPServer

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
