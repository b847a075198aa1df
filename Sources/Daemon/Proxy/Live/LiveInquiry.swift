import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings
import Upstream

/// A request to the upstream on behalf of streams.
///
/// It gathers the whole response, because only the end shows whether it differs. To the fetch it is a recipient like any other,
/// so its request joins, coalesces and is stored like a plain one. The upstream loop only.
final class LiveInquiry: Recipient {
    enum Conclusion {
        /// A response as the upstream sent it, and whether it is stored by now.
        case received(LiveEvent, isStored: Bool)
        /// A response that is stored, or might be.
        case served(ReadyResponse, CacheUse, isCollapsed: Bool)
        /// No response, or an error response, which is then the event.
        case failed(ProblemDocument, LiveEvent?)
    }

    let isRequest = false
    /// The response that was stored when it began.
    private(set) var about: ReadyResponse?
    /// How it ended; nil until then, and after its release.
    private(set) var conclusion: Conclusion?
    private let upstream: ProxiedUpstream
    private let fetches: Fetches
    private var conclude: () -> Void
    private var arriving: LiveEvent?
    /// Whether the conclusion was delivered; whatever still arrives is ignored.
    private(set) var hasEnded = false
    private var isReleased = false
    private var count = 0
    /// Gathered bytes that the fetch does not buffer, and that count as buffered.
    private var charge = 0
    /// Whether the fetch buffers the body too, because the response is to be stored.
    private var isStored = true
    private var departures: [@Sendable () -> Void] = []
    private var drains: [@Sendable () -> Void] = []

    /// - Parameter conclude: called once, unless the inquiry is released before.
    init(_ upstream: ProxiedUpstream, about: ReadyResponse?, fetches: Fetches, conclude: @escaping () -> Void) {
        (self.upstream, self.about, self.fetches, self.conclude) = (upstream, about, fetches, conclude)
    }

    /// Releases everything held, because the response has been examined or is no longer wanted.
    func release() {
        guard !isReleased else { return }
        (hasEnded, isReleased) = (true, true)
        (arriving, conclusion, about, conclude) = (nil, nil, nil, {})
        leave()
        fetches.release(&charge)
        for callback in exchange(&drains, with: []) { callback() }
    }

    // MARK: The upstream's response

    func informational(status: Int, fields: Fields) {}

    func begin(status: Int, reason: String?, fields: Fields, framing: BodyFraming, isKept: Bool) {
        guard !hasEnded else { return }
        if fields.isEventStream { return give(up: .liveEventStream(upstream: upstream.name)) }
        isStored = isKept
        arriving = LiveEvent(fresh: status, fields, LiveBody())
    }

    func write(_ piece: [UInt8]) {
        guard !hasEnded, arriving != nil else { return }
        guard count + piece.count <= upstream.daemon.limits.document
        else { return give(up: .liveTooLarge(limit: upstream.daemon.limits.document)) }
        arriving?.body?.append(piece)
        count += piece.count
        if !isStored { charge(piece.count) }
    }

    func flush() {}

    func keptNoLonger() {
        guard !hasEnded, isStored, arriving != nil else { return }
        isStored = false
        charge(count)
    }

    private func charge(_ bytes: Int) {
        charge += bytes
        if !fetches.reserve(bytes) { give(up: .liveTooMuch) }
    }

    func finish() {
        guard !hasEnded, let response = arriving, let fields = response.fields, let status = response.status
        else { return }
        if StatusFacts.isFailure(status, fields) {
            end(.failed(.upstreamResponded(status, upstream: upstream.name), response))
        } else {
            end(.received(response, isStored: isStored))
        }
    }

    func abort() { end(.failed(.responseBrokeOff(upstream: upstream.name), nil)) }

    func respond(status: Int, fields: Fields, body: [UInt8]) {
        end(.received(LiveEvent(fresh: status, fields, LiveBody(body)), isStored: false))
    }

    func serve(
        _ ready: ReadyResponse,
        for request: ProxyRequest,
        as cacheUse: CacheUse,
        isCollapsed: Bool,
        cookies: [Field],
        now: Int64
    ) {
        guard case .substituted(_, let status, let error) = cacheUse
        else { return end(.served(ready, cacheUse, isCollapsed: isCollapsed)) }
        let problem = status.map { ProblemDocument.upstreamResponded($0, upstream: upstream.name) }
        end(.failed(problem ?? .upstreamFailed(error ?? .cancelled, upstream: upstream.name), nil))
    }

    func refuse(_ problem: ProblemDocument, _ status: CacheStatus? = nil) { end(.failed(problem, nil)) }

    // MARK: Flow control

    /// Zero while the response is gathered, so that the fetch does not wait for this recipient; afterwards the bytes still in
    /// use.
    var backlog: Int { hasEnded && !isReleased ? count : 0 }

    func onDrain(below limit: Int, _ callback: @escaping @Sendable () -> Void) {
        if isReleased { callback() } else { drains.append(callback) }
    }

    func onDisconnect(_ callback: @escaping @Sendable () -> Void) {
        if hasEnded { callback() } else { departures.append(callback) }
    }

    // MARK: -

    /// Leaves the fetch with a problem as the conclusion, and drops what has arrived.
    private func give(up problem: ProblemDocument) {
        arriving = nil
        fetches.release(&charge)
        end(.failed(problem, nil))
        leave()
    }

    private func end(_ conclusion: Conclusion) {
        guard !hasEnded else { return }
        hasEnded = true
        (arriving, self.conclusion) = (nil, conclusion)
        conclude()
    }

    /// Lets the fetch know that this recipient waits no longer.
    private func leave() { for callback in exchange(&departures, with: []) { callback() } }
}
