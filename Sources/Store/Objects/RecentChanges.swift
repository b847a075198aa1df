import Synchronization

/// Which objects changed lately, in memory, for whoever read a document just before a commit.
final class RecentChanges: Sendable {
    private struct State {
        var last: [ObjectID: Int64] = [:]
        /// Changes up to this sequence may have been forgotten.
        var forgotten: Int64
    }

    private static let capacity = 65_536
    private let state: Mutex<State>

    init(since sequence: Int64) {
        state = Mutex(State(forgotten: sequence))
    }

    func add(_ objects: [ObjectID], at sequence: Int64) {
        guard !objects.isEmpty else { return }
        state.withLock { state in
            for object in objects { state.last[object] = sequence }
            guard state.last.count > Self.capacity else { return }
            // Forgetting all at once is rare and cheap; it costs a few needless looks at the disk.
            state.forgotten = sequence
            state.last.removeAll(keepingCapacity: true)
        }
    }

    /// Everything may have changed up to a sequence.
    func forgetAll(at sequence: Int64) {
        state.withLock { state in
            state.forgotten = max(state.forgotten, sequence)
            state.last.removeAll()
        }
    }

    func mayHaveChanged(_ objects: [ObjectID], since sequence: Int64) -> Bool {
        state.withLock { state in
            if sequence < state.forgotten { return true }
            return objects.contains { (state.last[$0] ?? 0) > sequence }
        }
    }
}
