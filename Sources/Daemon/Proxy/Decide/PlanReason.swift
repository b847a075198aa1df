package import CachePolicy
import HTTPSemantics
import Upstream

extension Plan {
    /// Why a request gets what it gets.
    package enum Reason: Sendable, Equatable {
        /// What the policy of the stored response says of its reuse now.
        case policy(Reuse)
        /// Newer values are known, but the stored response cannot show them; with the cause in words.
        case outdated(String)
        /// Two responses disagree on a member that the stored one shows.
        case doubt
        /// No stored response matters.
        case forward(CacheStatus.Forward)
        /// The request has a condition that only the origin may evaluate.
        case forOrigin
        /// No response is stored, but its object is known from others.
        case assembled
        /// The raw view is asked for, and the bytes as received are no longer stored.
        case receivedBytesGone
        /// The upstream is not asked for now.
        case held(Hold)

        /// The reason for `Cache-Status`, if the upstream is asked.
        var forward: CacheStatus.Forward {
            switch self {
            case .policy(.mustValidate(_, let reason, _)) where reason.isOfRequest: .request
            case .policy, .outdated, .doubt, .assembled, .held: .stale
            case .forOrigin: .bypass
            case .receivedBytesGone: .miss
            case .forward(let forward): forward
            }
        }

        /// Why the upstream is asked although a response is stored, and is not merely stale: the word for `detail` in `Cache-Status`,
        /// and the same as a text; nil for another reason.
        var detail: (word: String, text: String)? {
            switch self {
            case .outdated(let shortfall): ("outdated", shortfall)
            case .doubt: ("doubt", sentence)
            case .policy(.mustValidate(_, let reason, _)): (reason.rawValue, sentence)
            case .policy, .forward, .forOrigin, .assembled, .receivedBytesGone, .held: nil
            }
        }

        /// Whether the upstream is asked only because a stored response is stale that may be served stale.
        ///
        /// What a write, a mark, a doubt or the request itself sends upstream is waited for (law 10).
        var allowsImpatience: Bool {
            if case .policy(.stale(_, _, let allowed)) = self { allowed.contains(.onError) } else { false }
        }

        fileprivate var sentence: String {
            switch self {
            case .policy(.fresh(_, let timeToLive)): "it is fresh for \(timeToLive) s more"
            case .policy(.stale(_, let staleness, _)): "it has been stale for \(staleness) s"
            case .policy(.mustValidate(_, let reason, _)): reason.sentence
            case .outdated(let shortfall): "newer values are known, but cannot be put in: \(shortfall)"
            case .doubt: "two responses disagree on a member that it shows"
            case .forward(.bypass): "the route says cache: never"
            case .forward(.method): "the method is neither looked up nor stored"
            case .forward(.varyMiss): "other variants are stored, but none that this request selects"
            case .forward(.miss): "the store could not be read"
            case .forward(.partial): "parts of it are stored, but not all that the request asks for"
            case .forward(.uriMiss), .forward(.request), .forward(.stale):
                "nothing is stored under this cache key for this principal and context"
            case .assembled: "no response to it is stored, but its object is known from others"
            case .receivedBytesGone: "its bytes as received are no longer stored"
            case .forOrigin: "If-Match and If-Unmodified-Since are the origin's to evaluate"
            case .held(.outage(let outage)):
                "the upstream cannot be reached (\(outage.error.message)); Larder looks again in \(outage.secondsLeft) s"
            case .held(.backOff(let backOff, let now)):
                "\(backOff.cause); Larder asks it again in \(backOff.secondsLeft(at: now)) s"
            }
        }
    }

    /// What happens, in a word.
    package var action: String {
        switch self {
        case .serve, .serveAndRefresh(_, _, _, nil): "serve"
        case .serveAndRefresh: "serve-and-refresh"
        case .ask(let inquiry) where inquiry.request.isPassed || inquiry.request.reason == .forward(.method): "pass"
        case .ask: "fetch"
        case .write: "write"
        case .refuse, .refuseAndExpire: "refuse"
        case .held(_, _, let instead): instead.action
        }
    }

    /// `Cache-Status` as far as it is known.
    ///
    /// - Parameter sent: the status that the client sees, if it differs from that of the stored response.
    package func cacheStatus(sent: Int? = nil, now: Int64) -> String {
        switch self {
        case .serve(let ready, let use, _), .serveAndRefresh(let ready, let use, _, _):
            use.cacheStatus(of: ready, sent: sent ?? ready.response.status, isCollapsed: false, now: now).text
        case .ask(let inquiry): inquiry.request.statusWhenForwarded(isCollapsed: inquiry.isCollapsed).text
        case .write(let request): request.statusOfWrite.text
        case .refuse(let problem), .refuseAndExpire(let problem): problem.cacheStatus.text
        case .held(_, _, let instead): instead.cacheStatus(sent: sent, now: now)
        }
    }

    package var sentence: String {
        switch self {
        case .serve(_, .offline, let reason): return reason.sentence + "; the upstream is not asked"
        case .serve(_, .hit(isStale: true), let reason):
            return reason.sentence + ", which the request's max-stale allows"
        case .serve(_, _, let reason): return reason.sentence
        case .serveAndRefresh(let ready, _, let reason, let inquiry):
            let word = ready.policy.flags.contains(.staleByRoute) ? "the route's stale" : "stale-while-revalidate"
            return reason.sentence + ", which \(word) allows" + (inquiry == nil ? "" : " while it is fetched again")
        case .ask(let inquiry): return inquiry.request.reason.sentence
        case .write(let request):
            let paths = request.suspects.joined(separator: ", ")
            let notRead = request.notRead.map { "its route says that it may read, but \($0.text); " } ?? ""
            return notRead
                + "\(request.message.method) goes to the upstream; unless it fails, what is stored of \(paths) "
                + "is dropped"
        case .refuse(let problem), .refuseAndExpire(let problem): return problem.detail ?? problem.title
        case .held(_, _, let instead): return instead.sentence
        }
    }
}

extension Reuse.Reason {
    /// Whether the request, rather than the response, demands validation.
    fileprivate var isOfRequest: Bool {
        switch self {
        case .requestNoCache, .requestMaxAge, .requestMinFresh: true
        case .noCache, .mustRevalidate, .notReusable: false
        }
    }

    /// Why the upstream must be asked before the response is used, in words.
    fileprivate var sentence: String {
        switch self {
        case .noCache: "the response said no-cache"
        case .mustRevalidate: "it is stale, and said must-revalidate"
        case .notReusable: "it may not be reused"
        case .requestNoCache: "the request says no-cache"
        case .requestMaxAge: "it is older than the request's max-age"
        case .requestMinFresh: "it will not be fresh for the request's min-fresh"
        }
    }
}
