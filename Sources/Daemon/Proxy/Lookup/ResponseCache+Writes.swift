import Store
import Synchronization

/// What writes change, ahead of the responses that are still to be committed.
extension ResponseCache {
    /// Commits what a write changes; returns once it holds everywhere.
    @discardableResult
    func settle(_ write: SettledWrite) async throws(StoreError) -> WriteSettlement {
        try await store.settle(write) { [self] in doubtUnread(of: write.upstream, sentUntil: write.time) }
    }

    /// Commits that an object was not found; returns once that holds everywhere.
    func note(_ absence: ObservedAbsence) async throws(StoreError) {
        // Lists that lag behind it may have been asked for later.
        try await store.note(absence) { [self] in doubtUnread(of: absence.key.upstream, sentUntil: .max) }
    }

    /// Leaves no hit of what was kept and is still to be committed: nobody knows whether it shows what is known newer now.
    ///
    /// On the writer's thread, so that each is either committed and marked, or found here. Its commit shows whether it
    /// does; whoever wants it waits for that.
    func doubtUnread(of upstream: String, sentUntil time: Int64) {
        for ready in commits.doubt(of: upstream, sentUntil: time) {
            // Both: it may be on its way into memory just now.
            ready.residence.isDirty.store(true, ordering: .relaxed)
            memory.remove(ready, at: ready.residence.digest)
        }
    }
}
