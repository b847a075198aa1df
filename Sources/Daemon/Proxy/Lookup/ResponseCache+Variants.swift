package import CachePolicy
import HTTPServer
package import Store

/// Several responses to one URL, distinguished by what `Vary` names (RFC 9111 §4.1).
extension ResponseCache {
    /// What is stored under a request's key for requests with other selecting fields, the newest first.
    ///
    /// Bounded by the limits of memory and store; no body is read. What is for requests alone that agree in their
    /// `OtherFields` is none of them for others: a tag may not distinguish two clients' data.
    package func variants(besides request: ProxyRequest) async throws(StoreError) -> [Variant] {
        let fields = request.message.fields
        var known: Set<[UInt8]> = []
        var variants: [Variant] = []
        for ready in memory.responses(at: request.digest) ?? [] where ready.key == request.key {
            let selection = ready.response.selection
            guard !selection.matches(fields), selection.agrees(with: fields), known.insert(selection.bytes).inserted
            else { continue }
            let isAskable = ready.isClean && ready.response.form == .received
            let validators = Preconditions.Stored(fields: ready.response.fields, policy: ready.response.policy)
            variants.append(Variant(selection: selection.bytes, validators: isAskable ? validators : nil))
        }
        for stored in try await store.variants(at: request.key) {
            guard let selection = VarySelection(bytes: stored.variant), !selection.matches(fields),
                selection.agrees(with: fields), known.insert(stored.variant).inserted,
                let policy = StoredPolicy(bytes: stored.policy)
            else { continue }
            let validators = Preconditions.Stored(fields: StoredHead.decode(stored.head), policy: policy)
            variants.append(Variant(selection: stored.variant, validators: stored.isSuspicious ? nil : validators))
        }
        return variants.sorted { ($0.validators?.date ?? .min) > ($1.validators?.date ?? .min) }
    }

    /// Whether others than the one chosen may be stored under a request's key; memory only.
    func mayHaveVariants(besides stored: ReadyResponse?, of request: ProxyRequest) -> Bool {
        if let stored, stored.response.selection.without(OtherFields.name) == .none { return false }
        return store.mayHave(request.digest) || memory.responses(at: request.digest) != nil
    }
}

extension ReadyResponse {
    /// The order of several responses that a request selects: those that `Vary` selected before those that came without it,
    /// since some servers forget the field in their default responses, and the most recent by `Date` before older ones.
    static func precedence(of response: CachedResponse) -> Int64 {
        response.policy.date &+ (response.selection.without(OtherFields.name) == .none ? 0 : 1 << 40)
    }

    /// Whether this one is rather used than another one that the request selects as well: a fresh one before a stale one,
    /// then by precedence, then the later arrival.
    package func isPreferred(to other: ReadyResponse, for directives: RequestDirectives, now: Int64) -> Bool {
        let (isFresh, isOtherFresh) = (isFresh(for: directives, now: now), other.isFresh(for: directives, now: now))
        if isFresh != isOtherFresh { return isFresh }
        if precedence != other.precedence { return precedence > other.precedence }
        return policy.responseTime > other.policy.responseTime
    }

    private func isFresh(for directives: RequestDirectives, now: Int64) -> Bool {
        if case .fresh = policy.reuse(at: now, for: directives) { true } else { false }
    }
}
