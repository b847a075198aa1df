import CachePolicy
package import HTTPSemantics
import Logging
import Mapping
package import Store
import Synchronization

/// Responses in other views, and for other addresses, than those that a hit finds.
extension ResponseCache {
    /// The response in the view and for the address of a request; nil if the raw view is wanted and its bytes are gone.
    ///
    /// Reads from the store the received bytes if memory has composed ones, and the objects that the mapped view shows by their
    /// bare identities.
    func inView(of request: ProxyRequest, _ ready: ReadyResponse) async throws(StoreError) -> ReadyResponse? {
        guard ready.needsReceivedBytes(in: request.view) else {
            let shown = shown(ready, to: request)
            guard !shown.named.isEmpty else { return shown }
            do throws(StoreError) {
                return try await expanded(ready, naming: shown.named, to: request)
            } catch {
                let message: Logger.Message =
                    "related objects could not be read: the mapped view shows their identities"
                log.storeFailed(message, error, url: ready.key.url)
                return shown
            }
        }
        // Nothing on its way to disk changes these bytes: a document's body stays as it came.
        guard let body = try await store.received(ready.documentID) else { return nil }
        var response = ready.response
        (response.body, response.form, response.isBodyComposed) = (body, .asReceived, false)
        return ReadyResponse(response, for: request).shown(to: request)
    }

    /// The response in the view and for the address of a request.
    ///
    /// It is made once, kept in memory beside its source within the same bound, and replaced when the source changes. One that
    /// shows objects by their bare identities is not kept: `inView` asks the store for those.
    func shown(_ ready: ReadyResponse, to request: ProxyRequest) -> ReadyResponse {
        guard ready.needsRendering(for: request) else { return ready }
        let digest = ready.entry.digest.besides
        if let kept = memory.responses(at: digest)?.first(where: { $0.isClean && $0.isMade(of: ready, for: request) }) {
            kept.entry.recordUse()
            return kept
        }
        // Parts are cut from the received bytes.
        guard isKept(ready), ready.response.status != 206 else { return ready.shown(to: request) }
        let shown = beside(ready, for: request, known: nil)
        if shown.named.isEmpty { memory.admit(shown, at: digest) }
        return shown
    }

    /// The mapped view with those of the named objects that are known, of the same principal and context.
    ///
    /// It is kept in memory if all are known, because then a change of any of them marks it dirty.
    private func expanded(_ ready: ReadyResponse, naming names: Set<BoundObject>, to request: ProxyRequest)
        async throws(StoreError) -> ReadyResponse
    {
        func mayBeOlderThanWrite(_ object: RelatedObject) -> Bool {
            uncommittedWrites.mayBeNewer(than: object.start, of: ready.upstream.storeKey)
        }
        var known: [BoundObject: RelatedObject] = [:]
        let (shown, sequence) = try await expanded(naming: names, beside: ready) { found in
            known = found.filter { !mayBeOlderThanWrite($0.value) }
            return beside(ready, for: request, known: known)
        }
        guard isKept(ready), shown.named.isEmpty else { return shown }
        register(shown, under: shown.known, asOf: sequence)
        memory.admit(shown, at: shown.entry.digest)
        // This check comes after the insertion, for what has just been committed.
        if known.values.contains(where: mayBeOlderThanWrite) { memory.remove(shown, at: shown.entry.digest) }
        return shown
    }

    /// The view that `make` makes of the named objects that are known, and the commit sequence at which this holds.
    ///
    /// What is on its way to disk does not matter: a response shows its objects in others with its commit, not before.
    /// Key paths lead on through what is known, so that the view may then name further objects.
    private func expanded(
        naming names: Set<BoundObject>,
        beside ready: ReadyResponse,
        _ make: ([BoundObject: RelatedObject]) -> ReadyResponse
    ) async throws(StoreError) -> (ReadyResponse, CommitNumber) {
        let selectedBy = ready.upstream.context.rest(of: ready.response.selection)
        let division = ready.otherFields?.division
        var names = names
        while true {
            let found = try await store.known(names, beside: ready.key, selectedBy: selectedBy, dividedBy: division)
            let shown = make(found.objects)
            guard !shown.named.isSubset(of: names) else { return (shown, found.sequence) }
            names.formUnion(shown.named)
        }
    }

    /// Whether a response is in memory; nothing is kept beside one that is not.
    private func isKept(_ ready: ReadyResponse) -> Bool {
        memory.responses(at: ready.entry.digest)?.contains { $0 === ready } == true
    }

    private func beside(_ ready: ReadyResponse, for request: ProxyRequest, known: [BoundObject: RelatedObject]?)
        -> ReadyResponse
    {
        ReadyResponse(
            ready.response,
            digest: ready.entry.digest.besides,
            upstream: ready.upstream,
            base: request.base,
            view: request.view,
            source: ready.entry,
            known: known
        )
    }
}

extension ReadyResponse {
    /// Whether a view cannot be made from this response: the raw view shows received bytes, not composed ones.
    func needsReceivedBytes(in view: View) -> Bool { view == .raw && response.isBodyComposed }

    fileprivate func isMade(of ready: ReadyResponse, for request: ProxyRequest) -> Bool {
        source === ready.entry && view == request.view && base.map { $0 == request.base } ?? true
    }
}

extension Digest128 {
    /// The digest for responses made from those under this digest; no request has it.
    fileprivate var besides: Digest128 { Digest128(low: ~low, high: ~high) }
}

/// A stored document as a client would get it in one view.
package struct DocumentView: Sendable {
    package let document: InspectedDocument
    package let fields: Fields
    package let body: [UInt8]
    /// The response that a request would find, in the upstream's shape; nil if its upstream is no longer configured.
    package let ready: ReadyResponse?
    /// Why it is not the requested view; nil if it is.
    package let notice: String?
}

extension ResponseCache {
    /// A document in a view; nil if it is gone.
    ///
    /// Reads the store only: an inspected document does not count as used, and takes no room in memory.
    ///
    /// - Parameter authority: Larder's address for rewritten links.
    package func inspect(
        _ id: DocumentID,
        in view: View,
        of upstreams: [ProxiedUpstream],
        at authority: String
    ) async throws(StoreError) -> DocumentView? {
        guard var found = try await store.inspect(id), let current = current(found.stored) else { return nil }
        found.stored = current
        let upstream = upstreams.first { $0.storeKey == found.stored.key.upstream }
        guard let upstream, var response = CachedResponse(shown: found.stored) else {
            guard let body = try await store.received(id) else { return nil }
            return DocumentView(
                document: found,
                fields: Self.fields(of: found.stored),
                body: body,
                ready: nil,
                notice: "its upstream is no longer in the config: the body is shown as it was received"
            )
        }
        let base = ClientAuthority(authority: authority)
        func ready(_ view: View, known: [BoundObject: RelatedObject]? = nil) -> ReadyResponse {
            let digest = Digest128(low: 0, high: 0)
            return ReadyResponse(response, digest: digest, upstream: upstream, base: base, view: view, known: known)
        }
        let wire = ready(.wire)
        var shown = wire
        switch view {
        case .wire: break
        case .raw:
            if wire.needsReceivedBytes(in: .raw) {
                guard let body = try await store.received(id) else { return nil }
                (response.body, response.form, response.isBodyComposed) = (body, .asReceived, false)
            }
            shown = ready(.raw)
        case .mapped:
            shown = ready(.mapped)
            if !shown.named.isEmpty {
                shown = try await expanded(naming: shown.named, beside: wire) { ready(.mapped, known: $0) }.0
            }
        }
        return DocumentView(document: found, fields: shown.fields, body: shown.body, ready: wire, notice: nil)
    }
}
