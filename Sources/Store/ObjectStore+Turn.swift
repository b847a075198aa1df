import Dispatch

/// Work that waits its turn.
extension ObjectStore {
    /// Has the writer do something once everything that was handed over before is taken in, as soon as there is room in the
    /// queue; `done` runs on the writer's thread, after the commit.
    func inTurn<Value: Sendable>(
        _ urgency: Job.Urgency,
        bytes: Int = 0,
        _ work: @escaping @Sendable (WriteSession) throws -> Value,
        done: @escaping @Sendable (Result<Value, StoreError>) -> Void
    ) {
        core.admission.enter(bytes: 0) { [self] in
            // The store itself: it must not end before what it was given has reached the writer.
            ingest.async { [self] in
                let core = core
                core.post(urgency, bytes: bytes, work) { result in
                    core.admission.leave(bytes: 0)
                    done(result)
                }
            }
        }
    }
}
