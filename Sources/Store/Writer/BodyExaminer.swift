import Dispatch
import Mapping
import Synchronization

/// Maps bodies in the background to find their warnings, so that `larder warnings` lists what `larder map` reports.
///
/// Nothing waits for it. It maps a limited number of bytes per second, and skips further bodies.
final class BodyExaminer: Sendable {
    /// The size limit in bytes: mapping needs several times the size of the body.
    private static let largest = 4 << 20
    private static let bytesPerSecond = 1 << 20

    private let queue = DispatchQueue(label: "larder.examine", qos: .utility)
    private let allowance: Mutex<(bytes: Int, time: DispatchTime)>

    init() { allowance = Mutex((Self.bytesPerSecond, .now())) }

    /// Whether to examine a body of this size; if true, call `examine`.
    func admits(bytes: Int) -> Bool {
        guard bytes > 0, bytes <= Self.largest else { return false }
        return allowance.withLock { allowance in
            let now = DispatchTime.now()
            let passed = Int(min((now.uptimeNanoseconds &- allowance.time.uptimeNanoseconds) / 1_000_000, 1_000))
            // Time below a millisecond is left to the next call.
            if passed > 0 {
                allowance.bytes = min(allowance.bytes + Self.bytesPerSecond / 1_000 * passed, Self.bytesPerSecond)
                allowance.time = now
            }
            guard allowance.bytes > 0 else { return false }
            allowance.bytes -= bytes
            return true
        }
    }

    /// Examines a body; calls `found` on the examiner's queue if there are warnings.
    func examine(
        _ subject: MappedSubject,
        _ mapper: DocumentMapper,
        found: @escaping @Sendable ([MappingWarning]) -> Void
    ) {
        queue.async {
            let warnings = mapper.map(subject.body, as: subject.rule, in: subject.mappingContext).warnings
            if !warnings.isEmpty { found(warnings.grouped) }
        }
    }

    /// Returns when all bodies passed in earlier have been examined.
    func finished() async { await withCheckedContinuation { continuation in queue.async { continuation.resume() } } }
}

extension StoreCore {
    func prepare(_ subject: MappedSubject, upstream: UpstreamKey) -> PreparedBody {
        guard let models = models[upstream] else { return PreparedBody() }
        let isExamined = examiner.admits(bytes: subject.body.count)
        return PreparedBody(subject, models: models, hasher: hasher, isExamined: isExamined)
    }

    /// Has a decomposed body examined in the background for further warnings, unless there are too many bodies.
    func examine(_ subject: MappedSubject, _ prepared: PreparedBody, upstream: UpstreamKey) {
        guard prepared.isExamined, let models = models[upstream] else { return }
        examiner.examine(subject, models.mapper) { [self] warnings in
            submitDispensable { try $0.warn(warnings, about: subject.rule, url: subject.url, at: $0.clock.now()) }
        }
    }
}
