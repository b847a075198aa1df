import Proxy
import Store

extension ResponseCache {
    /// One variant of a document, wherever it is kept.
    struct SurveyedResponse: Sendable {
        var ready: ReadyResponse
        var isInMemory: Bool
        /// Nil until it is committed.
        var document: DocumentID?
        var isDirty: Bool
        var objects: Int
        /// Why it cannot show what is newest; nil where it does, or that is not known.
        var shortfall: String?
    }

    /// All variants under a demand's key, and the one that answers it: what a look-up would find, but nothing is taken into
    /// memory, and nothing counts as used.
    func survey(_ demand: Demand, now: Int64) async throws(StoreError) -> (
        variants: [SurveyedResponse], selected: ReadyResponse?
    ) {
        var variants = (memory.answers(at: demand.digest) ?? []).filter { $0.key == demand.key }.map { ready in
            SurveyedResponse(
                ready: ready,
                isInMemory: true,
                document: ready.stored?.document,
                isDirty: !ready.isClean,
                objects: ready.stored?.objects.count ?? 0
            )
        }
        let documents = store.mayHave(demand.digest) ? try await store.documents(at: demand.key) : []
        for document in documents {
            guard !isDropped(document.id), let answer = CachedResponse(document) else { continue }
            let known = variants.firstIndex { $0.ready.answer.selection == answer.selection }
            // What is in memory answers unless it is dirty, as for any request.
            if let known, !variants[known].isDirty { continue }
            let variant = SurveyedResponse(
                ready: ReadyResponse(answer, digest: demand.digest, upstream: demand.upstream, base: demand.base),
                isInMemory: known != nil,
                document: document.id,
                isDirty: known != nil || answer.form == .outdated,
                objects: document.objects.count,
                shortfall: document.form.shortfall
            )
            if let known { variants[known] = variant } else { variants.append(variant) }
        }
        if let held = inMemory(demand, now: now), held.isClean { return (variants, held) }
        let selected = variants.map(\.ready).filter { $0.answers(demand) }
            .max { $1.isPreferred(to: $0, for: demand.directives, now: now) }
        return (variants, selected)
    }
}

extension StoredDocument.Form {
    /// Why the document cannot show what is newest.
    fileprivate var shortfall: String? { if case .outdated(let reason) = self { reason } else { nil } }
}
