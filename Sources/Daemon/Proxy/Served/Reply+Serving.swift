package import CachePolicy
package import HTTPSemantics
package import HTTPServer
import Settings

/// Serving what is stored, and refusing.
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
        let status = ready.addAgeAndCacheStatus(
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
