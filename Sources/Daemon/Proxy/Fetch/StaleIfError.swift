import CachePolicy
import HTTPSemantics
import HTTPServer
import Logging
import Upstream

/// Serving stale responses in place of errors (RFC 5861 §4, RFC 9111 §4.2.4).
extension Fetches {
    /// Serves a stored response in place of an error, or when no response came.
    func substitute(_ stored: ReadyResponse, forStatus status: Int?, error: UpstreamError? = nil, to relays: [Relay]) {
        serve(stored, to: relays, as: { .substituted($0.reason.forward, status: status, error: error) })
    }

    /// Serves clients a stored response, or an error, when no usable response came.
    func failed(_ error: UpstreamError, _ fetch: RunningFetch, relays: [Relay]) {
        let upstream = fetch.request.upstream.name
        log.debug("upstream failed", metadata: ["error": "\(error.label)", "upstream": "\(upstream)"])
        for relay in relays {
            if let stored = fetch.stored, stored.maySubstitute(at: now, for: relay.request) {
                substitute(stored, forStatus: nil, error: error, to: [relay])
                continue
            }
            let isValidation = fetch.stored != nil
            let problem = ProblemDocument.upstreamFailed(error, upstream: upstream, isValidation: isValidation)
            if !isValidation, relay.reply.isRequest, Assembly(relay.request) != nil {
                let use = CacheUse.substituted(relay.request.reason.forward, status: nil, error: error)
                assemble(for: relay, as: use, problem, error)
            } else {
                refuse(relay, problem, error)
            }
        }
    }

    /// - Parameter error: what became of the request; nil if it was not sent.
    func refuse(_ relay: Relay, _ problem: ProblemDocument, _ error: UpstreamError?) {
        relay.reply.refuse(problem, error.map { relay.request.statusOfFailure($0) })
    }
}

extension ReadyResponse {
    /// Whether it may replace a failed response; a stored error may not, because it is no better than a new one.
    package func maySubstitute(at now: Int64, for request: ProxyRequest) -> Bool {
        guard !StatusFacts.isFailureByStatus(response.status) else { return false }
        // An error is better than what its client has seen in a newer state.
        if let age = request.ageOfPosition, response.isOutdated || age <= 0 || policy.age(at: now) > age {
            return false
        }
        return switch policy.reuse(at: now, for: request.directives) {
        case .fresh: true
        case .stale(_, _, let allowed), .mustValidate(_, _, let allowed): allowed.contains(.onError)
        }
    }
}
