internal import Synchronization

/// Which ready answers show which object, so that a change flips them.
///
/// An answer is registered some time after it was read or committed; a change committed in between would be missed.
/// Hence the log of the latest commits: registering says as of which commit the answer is right, and looks at what came
/// after it.
public final class Showings: Sendable {
    private struct State {
        var residences: [ObjectID: List] = [:]
        /// The latest commits and the objects that they changed, in order.
        var log: [(sequence: Int64, objects: [ObjectID])] = []
        /// The newest commit that is no longer in the log.
        var forgotten: Int64 = 0
    }

    private struct List {
        var residences: [Residence] = []
        /// Retired ones are dropped when the list reaches this length.
        var compactAt = 16
    }

    private static var logLimit: Int { 1_024 }

    private let state = Mutex(State())

    init() {}

    /// Registers an answer under the objects that it shows; flips it at once if a commit after `sequence` changed one.
    public func register(_ residence: Residence, under objects: [ObjectID], asOf sequence: Int64) {
        guard !objects.isEmpty else { return }
        state.withLock { state in
            if state.changed(objects, after: sequence) {
                residence.isDirty.store(true, ordering: .relaxed)
                return
            }
            for object in objects { state.residences[object, default: List()].append(residence) }
        }
    }

    /// Flips every answer that shows one of these objects.
    ///
    /// A flipped list is dropped: its answers will be composed anew and registered again.
    func objectsChanged(_ objects: [ObjectID], at sequence: Int64) {
        guard !objects.isEmpty else { return }
        state.withLock { state in
            state.log.append((sequence, objects))
            if state.log.count > Self.logLimit {
                let surplus = state.log.count - Self.logLimit / 2
                state.forgotten = state.log[surplus - 1].sequence
                state.log.removeFirst(surplus)
            }
            for object in objects {
                guard let list = state.residences.removeValue(forKey: object) else { continue }
                for residence in list.residences { residence.isDirty.store(true, ordering: .relaxed) }
            }
        }
    }
}

extension Showings.State {
    fileprivate func changed(_ objects: [ObjectID], after sequence: Int64) -> Bool {
        // What has left the log is unknown; composing once too often is harmless.
        guard sequence >= forgotten else { return true }
        guard let newest = log.last, newest.sequence > sequence else { return false }
        let shown = Set(objects)
        return log.reversed().prefix { $0.sequence > sequence }.contains { $0.objects.contains(where: shown.contains) }
    }
}

extension Showings.List {
    fileprivate mutating func append(_ residence: Residence) {
        if residences.count >= compactAt {
            residences.removeAll { $0.isRetired.load(ordering: .relaxed) }
            compactAt = max(16, residences.count * 2)
        }
        residences.append(residence)
    }
}
