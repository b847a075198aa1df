import Dispatch
import Mapping
import Synchronization

/// A body taken apart before its transaction begins.
struct PreparedBody: Sendable {
    /// Nil: the body is kept as it is.
    var decomposed: DecomposedBody?
    /// Whether the skeleton gives back the very bytes.
    var isExact = false
    /// Whether the body must not reach the disk.
    var isSecret = false
    /// Digest of each occurrence's payload.
    var contents: [UInt64] = []
    var warnings: [MappingWarning] = []

    init(
        body: [UInt8],
        rule: BodyRule?,
        surroundings: MappingContext,
        models: UpstreamModels?,
        hasher: KeyHasher,
        isExamined: Bool = false
    ) {
        guard let rule, let models else { return }
        switch models.normaliser.decompose(body, as: rule, in: surroundings) {
        case .opaque(let warning):
            warnings = warning.map { [$0] } ?? []
            // What could not be read may hold what must not be stored.
            isSecret = models.models.haveSecrets && warnings.contains { Self.unread.contains($0.kind) }
        case .objects(let decomposed):
            warnings = decomposed.warnings
            isSecret = decomposed.showsSecret
            isExact = !isSecret && decomposed.recomposes(to: body)
            if !isExact, !isSecret {
                warnings.append(
                    MappingWarning(.notRecomposed, "the body could not be put together again", model: rule.model)
                )
            }
            contents = decomposed.occurrences.map { hasher.content($0.payload) }
            self.decomposed = decomposed
        }
        // What the mapped view finds is told of by whoever looks at that.
        if isExamined { warnings.removeAll(where: \.kind.isOfMappedView) }
    }

    private static let unread: Set<MappingWarning.Kind> = [.notJSON, .tooDeep, .reservedText, .tooManyObjects]

    /// Whether the body contains objects that were not taken out of it, so that no change of them is ever seen in it.
    var isUndivided: Bool { decomposed == nil && warnings.contains { $0.kind == .tooManyObjects } }

    /// About how many bytes of memory it takes, besides the body itself, until it is committed.
    var weight: Int {
        guard let decomposed else { return 0 }
        // Measured: an occurrence with its name, its payload, its keys, and what the writer makes of it.
        return decomposed.occurrences.count * 1024 + decomposed.skeleton.count
    }
}

/// Bounds what bodies that have been taken apart take in memory until they are committed.
///
/// An object of ten bytes takes a kilobyte then, so that the bytes of bodies, which `QueueLimit` bounds, say little. Who takes
/// bodies apart, one after the other on a queue of its own, waits here for the writer before it goes on to the next; so there
/// is never more than the budget and one body.
final class PreparedBodyBudget: Sendable {
    private struct State {
        var used = 0
        var waiter: (bytes: Int, semaphore: DispatchSemaphore)?
    }

    private let limit: Int
    private let state = Mutex(State())

    init(bytes: Int) {
        limit = bytes
    }

    /// Takes room for what has just been taken apart; blocks until there is some.
    ///
    /// One alone always fits. For one thread at a time.
    func enter(_ bytes: Int) {
        let semaphore = state.withLock { state -> DispatchSemaphore? in
            guard state.used > 0, state.used + bytes > limit else {
                state.used += bytes
                return nil
            }
            let semaphore = DispatchSemaphore(value: 0)
            state.waiter = (bytes, semaphore)
            return semaphore
        }
        semaphore?.wait()
    }

    /// Gives room back; any thread.
    func leave(_ bytes: Int) {
        state.withLock { state in
            state.used -= bytes
            guard let waiter = state.waiter, state.used == 0 || state.used + waiter.bytes <= limit else { return }
            state.used += waiter.bytes
            state.waiter = nil
            waiter.semaphore.signal()
        }
    }
}
