import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings

extension Reply {
    /// Sends a stored response: its conditions evaluated, its age and its history added.
    ///
    /// - Parameter cookies: new ones, and other lines, for this client alone; cookies of a response that is replayed are in it
    ///   already.
    func serve(
        _ ready: ReadyResponse,
        for demand: Demand,
        as cacheUse: CacheUse,
        isCollapsed: Bool = false,
        cookies: [Field] = [],
        now: Int64
    ) {
        guard let portion = SelectedPart(of: ready, for: demand.request, now: now) else {
            return refuse(.notCached(demand))
        }
        var (code, fields, body) = portion.message(from: ready)
        ready.addHistory(to: &fields, as: cacheUse, sent: code, isCollapsed: isCollapsed, now: now)
        let replays = demand.upstream.settings.cookies == .replay
        fields.lines += cookies.filter { !replays || !$0.isNamed("set-cookie") }
        demand.upstream.addCORS(to: &fields, for: demand.request.fields)
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
