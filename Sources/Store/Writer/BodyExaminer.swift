import Dispatch
import Mapping
import Synchronization

/// Maps bodies for the sake of what does not fit in them, behind everything else, so that `larder warnings` lists what
/// `larder map` tells of.
///
/// Nothing waits for it. So many bytes a second are looked at: where more comes, not every body is.
final class BodyExaminer: Sendable {
    /// A body of an answer, and what is said of it.
    struct Subject: Sendable {
        var body: [UInt8]
        var rule: BodyRule
        var surroundings: MappingContext
        var url: String
    }

    /// Larger bodies are not looked at: mapping takes several times their size.
    private static let largest = 4 << 20
    private static let bytesPerSecond = 4 << 20

    private let queue = DispatchQueue(label: "larder.examine", qos: .utility)
    private let allowance: Mutex<(bytes: Int, time: DispatchTime)>

    init() { allowance = Mutex((Self.bytesPerSecond, .now())) }

    /// Whether a body is looked at; who is told so hands it over.
    func admits(bytes: Int) -> Bool {
        guard bytes > 0, bytes <= Self.largest else { return false }
        return allowance.withLock { allowance in
            let now = DispatchTime.now()
            let passed = Int(min((now.uptimeNanoseconds &- allowance.time.uptimeNanoseconds) / 1_000_000, 1_000))
            // A time too short to count is left to the next one.
            if passed > 0 {
                allowance.bytes = min(allowance.bytes + Self.bytesPerSecond / 1_000 * passed, Self.bytesPerSecond)
                allowance.time = now
            }
            guard allowance.bytes > 0 else { return false }
            allowance.bytes -= bytes
            return true
        }
    }

    /// Looks at a body; `found` is called on a queue of its own, if there is anything to say.
    func examine(_ subject: Subject, by mapper: DocumentMapper, found: @escaping @Sendable ([MappingWarning]) -> Void) {
        queue.async {
            let warnings = mapper.map(subject.body, as: subject.rule, in: subject.surroundings).warnings
            if !warnings.isEmpty { found(warnings.grouped) }
        }
    }

    /// Returns when what was handed over before has been looked at.
    func settled() async {
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }
}

extension StoreCore {
    /// Whether a body is looked at for what does not fit in it, which is then written down behind everything else.
    func examine(_ subject: @autoclosure () -> BodyExaminer.Subject?, bytes: Int, upstream: String) -> Bool {
        guard let models = models[upstream], examiner.admits(bytes: bytes), let subject = subject() else {
            return false
        }
        examiner.examine(subject, by: models.mapper) { [self] warnings in
            note { try $0.warn(warnings, about: subject.rule, url: subject.url, at: $0.clock.now()) }
        }
        return true
    }
}
