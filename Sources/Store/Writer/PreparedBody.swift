import Dispatch
import Mapping
import Synchronization

/// A body that was decomposed before its transaction begins.
struct PreparedBody: Sendable {
    /// Nil: the body is stored as it is.
    var decomposed: DecomposedBody?
    /// Whether the skeleton recomposes to exactly the same bytes.
    var isExact = false
    /// Whether the body must not be stored.
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
            // A body that could not be read may contain secrets.
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
        // The examiner reports these.
        if isExamined { warnings.removeAll(where: \.kind.isOfMappedView) }
    }

    private static let unread: Set<MappingWarning.Kind> = [.notJSON, .tooDeep, .reservedText, .tooManyObjects]

    /// Whether the body has too many objects to decompose it, so that it never shows their changes.
    var isUndivided: Bool { decomposed == nil && warnings.contains { $0.kind == .tooManyObjects } }

    /// About how many bytes of memory it needs until its commit, besides the body itself.
    var weight: Int {
        guard let decomposed else { return 0 }
        // Measured: an occurrence with its name, its payload, its keys, and its record in the writer.
        return decomposed.occurrences.count * 1024 + decomposed.skeleton.count
    }
}

/// Bounds the memory of decomposed bodies until their commit.
///
/// A decomposed object of ten bytes needs a kilobyte, so the bytes of bodies, which `QueueLimit` bounds, say little. The queue
/// that decomposes bodies, one after the other, waits here for the writer before the next body. So there is never more than
/// the budget and one body.
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

    /// Takes room for a body that was just decomposed; blocks until there is some.
    ///
    /// A single body always fits. For one thread at a time.
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

    /// Returns room; any thread.
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
