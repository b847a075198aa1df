import CachePolicy
import Proxy
import Settings
import Store

extension Explanation.Freshness {
    /// The arithmetic of a stored response's freshness (RFC 9111 §4.2), each number with its source.
    init(_ ready: ReadyResponse, of upstream: ProxiedUpstream, route: CacheOverrides, now: Int64) {
        let (policy, word) = (ready.policy, ready.response.policy)
        let reuse = policy.reuse(at: now, for: .none)
        if case .fresh = reuse { isFresh = true } else { isFresh = false }
        terms = [
            .init(name: "lifetime", seconds: policy.lifetime, source: Self.source(policy, ready, upstream, route))
        ]
        if policy.lifetimeSource != word.lifetimeSource || policy.lifetime != word.lifetime {
            terms.append(
                .init(
                    name: "upstream lifetime",
                    seconds: word.lifetime,
                    source: Self.source(word, ready, upstream, route)
                )
            )
        }
        terms.append(contentsOf: Self.age(policy, now: now))
        terms.append(
            .init(name: "time to live", seconds: policy.timeToLive(at: now), source: "lifetime minus age")
        )
        terms.append(contentsOf: Self.staleness(policy, word, upstream))
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
            .init(name: "apparent age", seconds: apparent, source: date),
            .init(
                name: "corrected age",
                seconds: corrected,
                source: "\(field), plus \(delay) s from request to response"
            ),
            .init(name: "initial age", seconds: policy.initialAge, source: "the greater of the two"),
            .init(
                name: "resident time",
                seconds: max(0, now - policy.responseTime),
                source: "since \(StoreTime.text(policy.responseTime * 1_000_000))"
            ),
            .init(name: "age", seconds: policy.age(at: now), source: "initial age plus resident time"),
        ]
    }

    private static func staleness(
        _ policy: StoredPolicy,
        _ word: StoredPolicy,
        _ upstream: ProxiedUpstream
    ) -> [Explanation.Term] {
        var terms: [Explanation.Term] = []
        let route = "stale of the route"
        let isRoute = policy.flags.contains(.staleByRoute)
        if policy.staleWhileRevalidate >= 0 {
            terms.append(
                .init(
                    name: "stale while revalidate",
                    seconds: policy.staleWhileRevalidate,
                    source: isRoute ? route : "stale-while-revalidate of Cache-Control"
                )
            )
        }
        if policy.staleIfError >= 0 {
            let isWord = word.staleIfError >= 0
            terms.append(
                .init(
                    name: "stale if error",
                    seconds: policy.staleIfError,
                    source: isRoute
                        ? route : isWord ? "stale-if-error of Cache-Control" : "stale_if_error of the upstream"
                )
            )
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
        case .maxAge: return "max-age of Cache-Control"
        case .sMaxAge: return "s-maxage of Cache-Control"
        case .expires: return "Expires minus Date"
        case .targeted:
            let field = TargetedDirectives.find(in: fields, targets: upstream.settings.targets)?.field
            return "\(field ?? "a targeted field") (RFC 9213)"
        case .heuristic:
            let unchanged = policy.date - policy.lastModified
            return "\(CachePolicySettings.heuristicPercent) % of the \(unchanged) s from Last-Modified to Date, "
                + "\(upstream.policySettings.heuristicMaximum) s at most"
        case .route:
            if let fresh = route.fresh { return "fresh: \(Units.text(fresh)) of the route" }
            return "cache: force of the route"
        case .negative: return "negative: \(route.negative.map(Units.text) ?? "") of the route"
        }
    }
}

extension ReadyResponse {
    /// The arithmetic of its freshness.
    func freshness(now: Int64) -> Explanation.Freshness {
        Explanation.Freshness(self, of: upstream, route: upstream.overrides(ofURL: key.url), now: now)
    }
}
