import CachePolicy
import HTTPServer
import Store
import Synchronization

/// What was read from disk for one request, and may serve others.
struct DiskFinding: Sendable {
    var documents: [StoredDocument] = []
    /// The variants under the key that the request did not select, and that were not read.
    var passedOver: [[UInt8]] = []

    /// What there is of it for another demand with the same key; nil where that has to read for itself.
    ///
    /// Some of what it selects may not have been read, or may have changed since.
    func documents(for demand: Demand, in store: ObjectStore) -> [StoredDocument]? {
        let fields = demand.request.fields
        func isWanted(_ variant: [UInt8]) -> Bool { VarySelection(bytes: variant)?.matches(fields) ?? true }
        guard !passedOver.contains(where: isWanted) else { return nil }
        let wanted = documents.filter { isWanted($0.variant) }
        return wanted.contains { store.mayHaveChanged($0.objects, since: $0.sequence) } ? nil : wanted
    }
}

extension ResponseCache {
    /// What the store has under a demand's key and of its variant, composed where something newer is known.
    func onDisk(_ demand: Demand) async throws(StoreError) -> DiskFinding {
        guard store.mayHave(demand.digest) else { return DiskFinding() }
        let fields = demand.request.fields
        let others = PassedOver()
        let documents = try await store.documents(at: demand.key) { variant in
            // What cannot be read is wanted too, to be dropped.
            let isWanted = VarySelection(bytes: variant)?.matches(fields) ?? true
            if !isWanted { others.variants.withLock { $0.append(variant) } }
            return isWanted
        }
        return DiskFinding(documents: documents, passedOver: others.variants.withLock { $0 })
    }

    private final class PassedOver: Sendable {
        let variants = Mutex<[[UInt8]]>([])
    }
}
