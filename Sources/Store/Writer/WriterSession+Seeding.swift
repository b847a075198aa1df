import GRDB
import Mapping

extension WriterSession {
    /// Merges what the values of a seed show, in their order, all in this transaction.
    ///
    /// All are one observation: a later value of the same object is newer nonetheless, as everything is that follows a seed.
    func seed(_ values: [PreparedSeed], _ seed: Seed) throws -> SeedReceipt {
        guard try principalLabel(seed.principal) != nil else {
            throw StoreError.refused("the principal is no longer known; it has nothing in the store")
        }
        _ = nextSequence()
        let scope = try self.scope(.init(upstream: seed.upstream, principal: seed.principal, context: seed.context))
        let time = clock.now()
        let observation = newObservation(start: time, end: time, kind: .seed)
        var receipt = SeedReceipt()
        for (index, value) in values.enumerated() {
            if let refusal = value.refusal {
                receipt.skipped.append(.init(value: index, warning: refusal))
                continue
            }
            let (lastObject, lastChange) = (numbers.object, numbers.sequence)
            let observed = try observe(
                value.body,
                from: MarkSource(method: "GET", path: ""),
                scope: scope,
                upstream: seed.upstream,
                observation: observation,
                origin: 0,
                pinning: false
            )
            let new = observed.objects.filter { $0 > lastObject }
            let changed = observed.objects.filter { id in
                id <= lastObject && records[id].map { $0.changed > lastChange } ?? false
            }
            receipt.created += new.count
            receipt.changed += changed.count
            if new.isEmpty, changed.isEmpty { receipt.unchanged += 1 }
            receipt.warnings += (value.warnings + observed.warnings).map { .init(value: index, warning: $0) }
        }
        return receipt
    }
}
