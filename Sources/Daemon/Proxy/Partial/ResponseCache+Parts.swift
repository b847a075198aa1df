import CachePolicy
import HTTPServer
package import Store

/// Answers stored in parts, which lie under a key of their own: see `Demand.partsKey`.
extension ResponseCache {
    func partsDigest(of demand: Demand) -> Digest128 { store.hasher.digest(demand.partsKey) }

    /// The parts in memory that are of the variant a demand asks for.
    func partsInMemory(_ demand: Demand) -> ReadyResponse? {
        Self.newest(memory.answers(at: partsDigest(of: demand)) ?? [], for: demand)
    }

    /// What the store has in parts; empty, and without waiting, where it has nothing.
    func partsOnDisk(_ demand: Demand) async throws(StoreError) -> [StoredDocument] {
        guard store.mayHave(partsDigest(of: demand)) else { return [] }
        let fields = demand.request.fields
        return try await store.documents(at: demand.partsKey) { VarySelection(bytes: $0)?.matches(fields) ?? true }
    }

    /// Keeps in memory what was read from disk, and gives what answers the demand.
    func admitParts(_ documents: [StoredDocument], for demand: Demand) -> ReadyResponse? {
        let digest = partsDigest(of: demand)
        guard !commits.contains(digest) else { return partsInMemory(demand) }
        let found = documents.compactMap { document -> ReadyResponse? in
            guard !unsettled.mayBeNewer(than: document.start, of: demand.upstream.storeKey) else { return nil }
            guard let answer = CachedResponse(document), KnownParts(fields: answer.fields, body: answer.body) != nil
            else {
                store.remove(document.id)
                return nil
            }
            let ready = ReadyResponse(answer, digest: digest, upstream: demand.upstream, base: demand.base)
            // What was kept while these were read is newer.
            memory.insert(ready, at: digest, insteadOf: { _ in false })
            return ready
        }
        return partsInMemory(demand) ?? Self.newest(found, for: demand)
    }

    /// What a look-up would find in parts, but nothing is taken into memory.
    package func surveyParts(_ demand: Demand) async throws(StoreError) -> ReadyResponse? {
        guard demand.request.method == "GET" else { return nil }
        if let ready = partsInMemory(demand) { return ready }
        let digest = partsDigest(of: demand)
        let found = try await partsOnDisk(demand).compactMap { document in
            CachedResponse(document).map {
                ReadyResponse($0, digest: digest, upstream: demand.upstream, base: demand.base)
            }
        }
        return Self.newest(found, for: demand)
    }

    /// Forgets the parts of a response: it is there as a whole now, or they are not to be believed.
    func forgetParts(of demand: Demand) {
        let digest = partsDigest(of: demand)
        let isInMemory = memory.answers(at: digest) != nil
        memory.remove(digest)
        if isInMemory || store.mayHave(digest) { store.remove(at: demand.partsKey) }
    }

    private static func newest(_ answers: [ReadyResponse], for demand: Demand) -> ReadyResponse? {
        answers.filter { $0.answers(demand, under: demand.partsKey) && $0.isPartial }
            .max { $0.policy.responseTime < $1.policy.responseTime }
    }
}
