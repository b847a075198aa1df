import CachePolicy
import HTTPSemantics
import Proxy
import Settings
import Store

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
                route ?? (word.staleIfError >= 0 ? "Cache-Control: stale-if-error" : "the upstream's stale_if_error")
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
        case .unsaid:
            return
                "the upstream's fresh_unsaid: \(upstream.settings.freshUnsaid.map(Units.text) ?? ""), as the response says "
                + "nothing of caching"
        }
    }
}

extension ReadyResponse {
    func freshness(now: Int64) -> Explanation.Freshness {
        Explanation.Freshness(self, of: upstream, route: upstream.overrides(ofURL: key.url), now: now)
    }
}
