/// How a stored answer came to be served; `Cache-Status` tells it.
enum Manner: Sendable {
    /// Without asking: fresh, or stale where a directive allows it.
    case hit(isStale: Bool)
    /// Without asking, because the upstream must not be asked.
    case offline(isStale: Bool)
    /// Without asking, because the upstream has asked to be spared for a while.
    case heldBack
    /// The upstream said that it is still good.
    case revalidated(CacheStatus.Forward)
    /// The upstream failed: with its status, or else with what kept it from answering.
    case substituted(CacheStatus.Forward, status: Int?, error: UpstreamError?)
    /// Fetched for this request, and served when it was whole.
    case fetched(CacheStatus.Forward)

    /// As what the metrics count it.
    func outcome(of ready: ReadyAnswer) -> Outcome {
        switch self {
        case .hit(isStale: true), .heldBack: .stale
        case .hit: ready.answer.form == .composed ? .composed : .hit
        case .offline, .substituted: .offline
        case .revalidated: .revalidated
        case .fetched: .miss
        }
    }

    /// The member of `Cache-Status`.
    func cacheStatus(timeToLive: Int64, isComposed: Bool, isCollapsed: Bool) -> CacheStatus {
        var status: CacheStatus
        switch self {
        case .hit(let isStale):
            status = .hit(timeToLive: timeToLive, detail: isStale ? "stale" : nil)
        case .offline(let isStale):
            status = .hit(timeToLive: timeToLive, detail: isStale ? "offline" : nil)
        case .heldBack:
            status = .hit(timeToLive: timeToLive, detail: "retry-after")
        case .revalidated(let reason):
            status = .forwarded(reason, status: 304, isStored: true)
            status.timeToLive = timeToLive
        case .substituted(let reason, let upstreamStatus, _):
            status = .forwarded(reason, status: upstreamStatus)
            status.timeToLive = timeToLive
            status.detail = "stale"
        case .fetched(let reason):
            status = .forwarded(reason, isStored: true)
            status.timeToLive = timeToLive
        }
        status.isCollapsed = isCollapsed
        if status.detail == nil, isComposed { status.detail = "composed" }
        return status
    }
}
