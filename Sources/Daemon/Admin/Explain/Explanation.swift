import CachePolicy
import HTTPSemantics
import Proxy
import Settings
import Store
import Upstream

/// `GET /explain`: the responses stored for a URL, and the one that a request for it would get now.
///
/// It contains no credential.
package struct Explanation: AdminBody, Equatable {
    package static let sentences = [
        "variants": "Every variant stored under the key, the one that would be served first.",
        "others": "What is stored of the URL for other requests.",
        "unstored": "The latest response to the URL that was not stored, if it is remembered.",
        "freshness": "The arithmetic of RFC 9111 §4.2 for the variant that would be served.",
        "mode": "The mode that the daemon is in.", "online": "What the request would get in this mode.",
        "offline": "What the request would get in this mode.",
        "upstream": "What would become of the upstream's response, if it is asked now.",
        "overrides": "What the route says in place of the upstream.",
    ]
    package var request: Asked
    package var overrides: Overrides?
    package var variants: [Variant]
    package var others: [Other] = []
    package var unstored: NotStored?
    package var freshness: Freshness?
    package var mode: String
    package var online: Outcome
    package var offline: Outcome
    package var upstream: Expectations?

    /// The request as the cache sees it.
    package struct Asked: AdminBody, Equatable {
        package static let sentences = [
            "method": "The method.", "upstream": "The upstream's name.",
            "sent": "What is sent upstream, as the client spells it; credentials are replaced.",
            "key": "The URL of the cache key.", "route": "The rule that decides how it is cached.",
            "context": "Fields that choose the representation, besides Vary, with their values.",
            "view": "`wire` or `raw`.",
        ]
        package var method: String
        package var upstream: String
        package var sent: String
        package var key: String
        package var route: Route?
        package var principal: Principal
        package var context: [String]
        var view: String
    }

    package struct Route: AdminBody, Equatable {
        package static let sentences = [
            "path": "The pattern.", "method": "The method that it is restricted to.",
            "model": "What its responses contain; in brackets for a list.",
        ]
        package var path: String
        package var method: String?
        package var model: String?
    }

    package struct Principal: AdminBody, Equatable {
        package static let sentences = [
            "label": "`anonymous`, or `p-` and eight digits.", "isKnown": "Whether it has made a request before.",
            "fields": "The names of the fields and query parameters that make it.",
        ]
        package var label: String
        package var isKnown: Bool
        package var fields: [String]
    }

    /// The route's settings that override the upstream's fields.
    package struct Overrides: AdminBody, Equatable {
        package static let sentences = [
            "cache": "`never` or `force`.", "fresh": "A duration such as `5m`.", "stale": "A duration.",
            "negative": "A duration.", "varyIgnore": "Fields that select no variant.",
            "keySort": "Whether the order of parameters is ignored.",
            "keyIgnore": "Parameters, or patterns of their names, that are ignored.",
        ]
        package var cache: String?
        package var fresh: String?
        package var stale: String?
        package var negative: String?
        package var varyIgnore: [String]
        package var keySort: Bool
        package var keyIgnore: [String]
    }

    /// One stored response.
    package struct Variant: AdminBody, Equatable {
        package static let sentences = [
            "isSelected": "Whether it is the one for this request.", "status": "Its status.",
            "selection":
                "The fields named by Vary, with the values that select it; the name alone where the field was absent.",
            "inMemory": "Whether it is ready in memory.",
            "document": "The document in the store; absent until it is committed.",
            "form": "`received`, `composed`, or `outdated`: newer values are known that it cannot show.",
            "isDirty": "Whether newer values are known of what it shows.", "objects": "How many objects it shows.",
            "bytes": "The length of its body.", "age": "Seconds.", "timeToLive": "Seconds; negative once stale.",
            "entityTag": "The ETag.", "lastModified": "The Last-Modified.",
        ]
        package var isSelected: Bool
        package var status: Int
        package var selection: [String]
        package var inMemory: Bool
        package var document: Int64?
        package var form: String
        package var isDirty: Bool
        package var objects: Int
        package var bytes: Int
        package var age: Int64
        package var timeToLive: Int64
        package var entityTag: String?
        package var lastModified: String?
    }

    /// A stored response that requests with other fields get.
    package struct Other: AdminBody, Equatable {
        package static let sentences = [
            "principal": "`anonymous`, or `p-` and eight digits.",
            "context": "Fields that choose the representation, with their values.",
            "differences": "How a request that gets it differs from this one.", "status": "Its status.",
            "selection": "The fields named by Vary, with the values that select it.", "age": "Seconds.",
            "timeToLive": "Seconds; negative once stale.",
        ]
        var principal: String
        var context: [String]
        package var differences: [String]
        package var status: Int
        var selection: [String]
        package var age: Int64
        package var timeToLive: Int64
    }

    /// A response that was not stored.
    package struct NotStored: AdminBody, Equatable {
        package static let sentences = [
            "status": "Its status.", "secondsAgo": "When it was received.",
            "rule": "Why it was not stored, in a word: `no-store`, `private`, `too-large` and so on.",
            "decidedBy": "Whose rule: `upstream`, `config`, `request`, `standard` (HTTP) or `larder`.",
            "reason": "The same as a sentence.", "differences": "How its request differed from this one.",
        ]
        package var status: Int
        package var secondsAgo: Int64
        package var rule: String
        package var decidedBy: String
        package var reason: String
        package var differences: [String]
    }

    /// Numbers with their sources.
    package struct Freshness: AdminBody, Equatable {
        package static let sentences = [
            "isFresh": "Whether it may be used without asking the upstream.",
            "terms": "The numbers, each with its source.", "rules": "Directives that bear on reuse, such as no-cache.",
        ]
        package var isFresh: Bool
        package var terms: [Term]
        package var rules: [String]
    }

    /// A number of seconds, and where it comes from.
    package struct Term: AdminBody, Equatable {
        package static let sentences = [
            "name": "What the number is.", "seconds": "The number.", "source": "Where it comes from.",
        ]
        package var name: String
        package var seconds: Int64
        package var source: String
    }

    /// What a request would get in one mode.
    package struct Outcome: AdminBody, Equatable {
        package static let sentences = [
            "action":
                "`serve`, `serve-and-refresh`, `fetch`, `events`, `pass` (neither looked up nor stored), `write` or `refuse`.",
            "status": "The status that the client would see; absent where the upstream decides.",
            "cacheStatus": "Cache-Status as far as it is known.", "reason": "Why.",
        ]
        package var action: String
        package var status: Int?
        package var cacheStatus: String
        package var reason: String
    }

    /// What becomes of the upstream's response.
    package struct Expectations: AdminBody, Equatable {
        package static let sentences = [
            "conditions": "The conditional fields that would be sent.", "notModified": "What a 304 would do.",
            "storing": "Why nothing that the upstream sends will be stored; absent where its response decides.",
            "failure": "What a failure would do.",
        ]
        package var conditions: [String]
        package var notModified: String?
        package var storing: String?
        package var failure: String
    }
}

extension Explanation {
    static let parameters: [AdminRoute.Parameter] = AdminRoute.Parameter.documented([
        "A path as clients send it to Larder, or an absolute URL of Larder or of an upstream.":
            .init("url", isRequired: true),
        "A field of the request, as `Name: value`; may be repeated.": .init("header", isRepeatable: true),
        "The method; GET by default.": .init("method"),
        "The upstream, where several could be meant.": .init("upstream"),
    ])

    /// Explains the request that a request to `GET /explain` describes.
    static func make(for request: AdminRequest, _ daemon: DaemonCore) async throws -> Explanation {
        guard let url = request.value("url") else {
            throw ProblemDocument.badRequest("url is missing: give the URL to explain")
        }
        let incoming: IncomingRequest
        do throws(ImaginedRequestError) {
            incoming = try IncomingRequest(
                imagined: request.value("method") ?? "GET",
                url,
                fields: request.values("header"),
                of: daemon.upstreams,
                named: request.value("upstream"),
                daemon.settings
            )
        } catch {
            switch error {
            case .unreadable: throw ProblemDocument.badRequest(error.description)
            case .refused: throw ProblemDocument(422, error.description)
            }
        }
        return try await daemon.proxy.explain(incoming)
    }
}

extension Explanation.Term {
    fileprivate init(_ name: String, _ seconds: Int64, _ source: String) {
        (self.name, self.seconds, self.source) = (name, seconds, source)
    }
}

extension Explanation.Freshness {
    /// The arithmetic of a stored response's freshness (RFC 9111 §4.2), each number with its source.
    init(_ ready: ReadyResponse, of upstream: ProxiedUpstream, route: CacheOverrides, now: Int64) {
        let (policy, word) = (ready.policy, ready.response.policy)
        let reuse = policy.reuse(at: now, for: .none)
        if case .fresh = reuse { isFresh = true } else { isFresh = false }
        terms = [.init("lifetime", policy.lifetime, Self.source(policy, ready, upstream, route))]
        if policy.lifetimeSource != word.lifetimeSource || policy.lifetime != word.lifetime {
            terms.append(.init("upstream lifetime", word.lifetime, Self.source(word, ready, upstream, route)))
        }
        terms += Self.age(policy, now: now)
        terms.append(.init("time to live", policy.timeToLive(at: now), "lifetime minus age"))
        terms += Self.staleness(policy, word)
        rules = Self.rules(policy, word)
    }

    private static func age(_ policy: StoredPolicy, now: Int64) -> [Explanation.Term] {
        let delay = max(0, policy.responseTime - policy.requestTime)
        let corrected = max(0, policy.ageValue) + delay
        // Only the greater of age since arrival and apparent age by `Date` is stored.
        let apparent =
            policy.initialAge > corrected
            ? policy.initialAge : min(max(0, policy.responseTime - policy.date), corrected)
        let date = policy.flags.contains(.dateAssumed) ? "it had no valid Date" : "time of arrival minus Date"
        let field = policy.ageValue < 0 ? "no Age" : "Age: \(policy.ageValue)"
        return [
            .init("apparent age", apparent, date),
            .init("corrected age", corrected, "\(field), plus \(delay) s from request to response"),
            .init("initial age", policy.initialAge, "the greater of the two"),
            .init(
                "resident time",
                max(0, now - policy.responseTime),
                "since \(StoreTime.text(policy.responseTime * 1_000_000))"
            ),
            .init("age", policy.age(at: now), "initial age plus resident time"),
        ]
    }

    private static func staleness(_ policy: StoredPolicy, _ word: StoredPolicy) -> [Explanation.Term] {
        let route = policy.flags.contains(.staleByRoute) ? "the route's stale" : nil
        var terms: [Explanation.Term] = []
        if policy.staleWhileRevalidate >= 0 {
            let source = route ?? "Cache-Control: stale-while-revalidate"
            terms.append(.init("stale while revalidate", policy.staleWhileRevalidate, source))
        }
        if policy.staleIfError >= 0 {
            let source =
                route
                ?? (word.staleIfError >= 0 ? "Cache-Control: stale-if-error" : "the upstream's stale_if_error")
            terms.append(.init("stale if error", policy.staleIfError, source))
        }
        return terms
    }

    private static func rules(_ policy: StoredPolicy, _ word: StoredPolicy) -> [String] {
        let names: [(StoredPolicy.Flags, String)] = [
            (.noCache, "no-cache"), (.noStore, "no-store"), (.mustRevalidate, "must-revalidate"),
            (.immutable, "immutable"), (.neverReused, "cache: never"),
        ]
        return names.compactMap { flag, name in
            if policy.flags.contains(flag) { return name }
            return word.flags.contains(flag) ? "\(name), overruled by the route" : nil
        }
    }

    // MARK: The lifetime's source

    private static func source(
        _ policy: StoredPolicy,
        _ ready: ReadyResponse,
        _ upstream: ProxiedUpstream,
        _ route: CacheOverrides
    ) -> String {
        let fields = ready.response.fields
        switch policy.lifetimeSource {
        case .none: return "nothing gives one"
        case .maxAge: return "Cache-Control: max-age"
        case .sMaxAge: return "Cache-Control: s-maxage"
        case .expires: return "Expires minus Date"
        case .targeted:
            let field = TargetedDirectives.find(in: fields, targets: upstream.settings.targets)?.field
            return "\(field ?? "a targeted field") (RFC 9213)"
        case .heuristic:
            let unchanged = policy.date - policy.lastModified
            return "\(CachePolicySettings.heuristicPercent) % of the \(unchanged) s from Last-Modified to Date, "
                + "\(upstream.policySettings.heuristicMaximum) s at most"
        case .route:
            if let fresh = route.fresh { return "the route's fresh: \(Units.text(fresh))" }
            return "the route's cache: force"
        case .negative: return "the route's negative: \(route.negative.map(Units.text) ?? "")"
        }
    }
}

extension ReadyResponse {
    /// The arithmetic of its freshness.
    func freshness(now: Int64) -> Explanation.Freshness {
        Explanation.Freshness(self, of: upstream, route: upstream.overrides(ofURL: key.url), now: now)
    }
}

extension Explanation.Outcome {
    /// A decision's outcome for the client.
    ///
    /// - Parameter shortfall: why the stored response cannot show the newest values, if that is known.
    init(_ decision: Decision, _ request: ProxyRequest, shortfall: String?, now: Int64) {
        switch decision {
        case .serve(let ready, let cacheUse): self.init("serve", ready, cacheUse, request, now: now)
        case .serveAndRefresh(let ready, let cacheUse):
            self.init("serve-and-refresh", ready, cacheUse, request, now: now)
        case .ask(let reason, let stored):
            var status = CacheStatus.forwarded(reason)
            if request.overrides.cache == .never { status.detail = "never-by-route" }
            self.init(
                action: "fetch",
                cacheStatus: status.text,
                reason: stored.map { Self.reason(toAskAbout: $0, request, shortfall: shortfall, now: now) }
                    ?? Self.reason(reason)
            )
        case .refuse(let problem): self.init(problem)
        }
    }

    /// A refusal.
    init(_ problem: ProblemDocument) {
        self.init(
            action: "refuse",
            status: problem.status,
            cacheStatus: problem.cacheStatus.text,
            reason: problem.detail ?? problem.title
        )
    }

    /// A retrieval with conditions that only the origin may evaluate.
    static let forOrigin = Explanation.Outcome(
        action: "pass",
        cacheStatus: CacheStatus.forwarded(.bypass).text,
        reason: "If-Match and If-Unmodified-Since are the origin's to evaluate"
    )

    /// A retrieval while Larder is backing off.
    ///
    /// - Parameter stored: the response served meanwhile.
    static func backedOff(
        _ pause: BackOff,
        of request: ProxyRequest,
        stored: ReadyResponse?,
        seconds: Int64,
        now: Int64
    ) -> Explanation.Outcome {
        guard let stored else { return .init(.backedOff(pause, seconds: seconds, upstream: request.upstream.name)) }
        var outcome = Explanation.Outcome("serve", stored, .backedOff, request, now: now)
        outcome.reason =
            "the upstream responded with \(pause.status) and Retry-After, which applies to \(pause.scope.description); "
            + "Larder asks it again in \(seconds) s"
        return outcome
    }

    /// A stream of events (`Larder-Live`).
    static func events(isShown: Bool, isAsked: Bool) -> Explanation.Outcome {
        let shown = isShown ? "`cached` with what is stored" : ""
        let asked = isAsked ? (isShown ? "then what the upstream says" : "what the upstream says") : "then the end"
        return .init(
            action: "events",
            status: 200,
            cacheStatus: isAsked ? CacheStatus.forwarded(isShown ? .request : .uriMiss).text : "",
            reason: isShown
                ? "\(shown), \(asked)" : isAsked ? asked : "`error`: nothing is stored, and the upstream is not asked"
        )
    }

    private init(_ action: String, _ ready: ReadyResponse, _ cacheUse: CacheUse, _ request: ProxyRequest, now: Int64) {
        let content = ServedContent(of: ready.shown(to: request), for: request.message, now: now)
        let sent = content?.status(of: ready) ?? ready.response.status
        self.init(
            action: action,
            status: sent,
            cacheStatus: cacheUse.cacheStatus(of: ready, sent: sent, isCollapsed: false, now: now).text,
            reason: Self.reason(toServe: ready, cacheUse, request, now: now)
        )
    }

    // MARK: Reasons

    private static func reason(toServe ready: ReadyResponse, _ cacheUse: CacheUse, _ request: ProxyRequest, now: Int64)
        -> String
    {
        let nobody = if case .offline = cacheUse { "; the upstream is not asked" } else { "" }
        switch ready.policy.reuse(at: now, for: request.directives) {
        case .fresh(_, let timeToLive): return "it is fresh for \(timeToLive) s more" + nobody
        case .mustValidate(_, let reason, _): return reason.sentence + nobody
        case .stale(_, let staleness, let allowed):
            let since = "it has been stale for \(staleness) s"
            guard nobody.isEmpty else { return since + nobody }
            if allowed.contains(.whileRevalidating) {
                let word = ready.policy.flags.contains(.staleByRoute) ? "the route's stale" : "stale-while-revalidate"
                return since + ", which \(word) allows while it is fetched again"
            }
            return since + ", which the request's max-stale allows"
        }
    }

    private static func reason(
        toAskAbout stored: ReadyResponse,
        _ request: ProxyRequest,
        shortfall: String?,
        now: Int64
    ) -> String {
        if stored.response.form == .outdated {
            return shortfall.map { "newer values are known, but cannot be put in: \($0)" }
                ?? "newer values are known, but not all of them"
        }
        switch stored.policy.reuse(at: now, for: request.directives) {
        case .fresh: return "it is fresh, but does not contain what the request asks for"
        case .stale(_, let staleness, _): return "it has been stale for \(staleness) s"
        case .mustValidate(_, let reason, _): return reason.sentence
        }
    }

    private static func reason(_ absence: CacheStatus.Forward) -> String {
        switch absence {
        case .bypass: "the route says cache: never"
        case .varyMiss: "other variants are stored, but none that this request selects"
        case .miss: "the store could not be read"
        case .partial: "parts of it are stored, but not all that the request asks for"
        case .uriMiss, .method, .request, .stale:
            "nothing is stored under this cache key for this principal and context"
        }
    }
}

extension Reuse.Reason {
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

extension Explanation.Expectations {
    /// - Parameters:
    ///   - stored: what a 304 would renew, and what may replace an error.
    ///   - variants: the other responses that would be validated.
    init(_ request: ProxyRequest, stored: ReadyResponse?, variants: [Variant], now: Int64) {
        let validation = Validation(request, stored: stored, variants: variants)
        let sent = request.upstreamRequest(validation).fields
        let names = ["if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range"]
        conditions = sent.lines.filter { names.contains($0.lowercasedName) }.map {
            "\(String(decoding: $0.name, as: UTF8.self)): \($0.text)"
        }
        if validation.chosen == nil, !validation.isEmpty {
            notModified = "the stored variant that its ETag names is renewed, and serves this request, too"
        } else if !validation.isEmpty, let stored {
            notModified =
                "renews what is stored, lifetime \(stored.policy.lifetime) s unless it says otherwise, and that is served"
        }
        if let refusal = NotStoredReason.refusal(of: request) { storing = "is not stored: \(refusal.text)" }
        failure =
            stored?.maySubstitute(at: now, for: request) == true
            ? "what is stored is served in its place" : "it is passed on"
    }
}
