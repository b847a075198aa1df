import CachePolicy
package import HTTPSemantics
import Mapping
package import Store

/// A stored document as a client would get it in one view.
package struct ShownDocument: Sendable {
    package let document: InspectedDocument
    /// The fields as they are served.
    package let fields: Fields
    package let body: [UInt8]
    /// The response that a request would find, in the upstream's shape; nil where the config no longer has its upstream.
    package let ready: ReadyResponse?
    /// Why the view is not what was wished; nil where it is.
    package let notice: String?
}

/// Documents by their numbers, for people who look at them.
extension ResponseCache {
    /// A document in a view; nil when it is gone.
    ///
    /// Reads the store only: what is looked at does not count as used, and takes no room in memory.
    ///
    /// - Parameter authority: the address of Larder's that links lead back to.
    package func inspect(
        _ id: DocumentID,
        in view: View,
        of upstreams: [ProxiedUpstream],
        at authority: String
    ) async throws(StoreError) -> ShownDocument? {
        guard let found = try await store.inspect(id) else { return nil }
        let upstream = upstreams.first { $0.storeKey == found.stored.key.upstream }
        guard let upstream, var answer = CachedResponse(found.stored) else {
            guard let body = try await store.received(id) else { return nil }
            return ShownDocument(
                document: found,
                fields: StoredHead.decode(found.stored.head),
                body: body,
                ready: nil,
                notice: "its upstream is no longer in the config: the body is shown as it was received"
            )
        }
        answer.policy = answer.policy.aged(at: seconds, knownSince: store.clock.agesKnownSince / 1_000_000)
        let base = ClientAuthority(authority: authority)
        func ready(_ view: View, known: [ObjectName: RelatedObject]? = nil) -> ReadyResponse {
            let digest = Digest128(low: 0, high: 0)
            return ReadyResponse(answer, digest: digest, upstream: upstream, base: base, view: view, known: known)
        }
        let wire = ready(.wire)
        var shown = wire
        switch view {
        case .wire: break
        case .raw:
            if wire.needsReceivedBytes(in: .raw) {
                guard let body = try await store.received(id) else { return nil }
                (answer.body, answer.form) = (body, .received)
            }
            shown = ready(.raw)
        case .mapped:
            shown = ready(.mapped)
            if !shown.named.isEmpty {
                let selectedBy = upstream.context.rest(of: answer.selection)
                let objects = try await store.known(shown.named, beside: answer.key, selectedBy: selectedBy).objects
                shown = ready(.mapped, known: objects)
            }
        }
        return ShownDocument(document: found, fields: shown.fields, body: shown.body, ready: wire, notice: nil)
    }
}
