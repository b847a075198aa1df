import Dispatch
import GRDB
import Mapping
import Synchronization

/// Stores warnings: one row for each kind and subject, with a count; the number of rows is bounded.
extension WriterSession {
    static let warningLimit: Int64 = 1000

    /// Records the mapping's warnings about a body.
    ///
    /// - Parameter url: path and query of the response.
    func warn(_ warnings: [MappingWarning], about rule: BodyRule?, url: String, at time: Int64) throws {
        guard !warnings.isEmpty else { return }
        try warn(
            warnings.map { warning in
                StoredWarning(
                    kind: warning.kind.rawValue,
                    subject: (warning.model ?? rule?.model ?? "") + (warning.property.map { ".\($0)" } ?? ""),
                    message: warning.message,
                    url: url,
                    pointer: warning.pointer ?? "",
                    count: warning.count
                )
            },
            at: time
        )
    }

    func warn(_ warnings: [StoredWarning], at time: Int64) throws {
        for warning in warnings {
            try query(
                """
                INSERT INTO _warnings VALUES (?1, ?2, ?3, ?6, ?7, ?4, ?5, ?5)
                ON CONFLICT DO UPDATE SET message = ?3, url = ?6, pointer = ?7, count = count + ?4, last = ?5
                """
            ).run(warning.kind, warning.subject, warning.message, warning.count, time, warning.url, warning.pointer)
            effects.warnings += Int64(warning.count)
        }
        let count = try query("SELECT count(*) FROM _warnings").integer() ?? 0
        guard count > Self.warningLimit else { return }
        try query(
            """
            DELETE FROM _warnings WHERE (kind, subject) IN
            (SELECT kind, subject FROM _warnings ORDER BY last LIMIT ?)
            """
        ).run(count - Self.warningLimit)
    }
}

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
        by mapper: DocumentMapper,
        found: @escaping @Sendable ([MappingWarning]) -> Void
    ) {
        queue.async {
            let warnings = mapper.map(subject.body, as: subject.rule, in: subject.surroundings).warnings
            if !warnings.isEmpty { found(warnings.grouped) }
        }
    }

    /// Returns when all bodies passed in earlier have been examined.
    func finished() async { await withCheckedContinuation { continuation in queue.async { continuation.resume() } } }
}

extension StoreCore {
    /// Decomposes a body; also has it examined in the background for further warnings, unless there are too many bodies.
    func prepare(_ subject: MappedSubject, upstream: String) -> PreparedBody {
        guard let models = models[upstream] else { return PreparedBody() }
        let isExamined = examiner.admits(bytes: subject.body.count)
        if isExamined {
            examiner.examine(subject, by: models.mapper) { [self] warnings in
                submitDispensable { try $0.warn(warnings, about: subject.rule, url: subject.url, at: $0.clock.now()) }
            }
        }
        return PreparedBody(subject, models: models, hasher: hasher, isExamined: isExamined)
    }
}

/// Warns of objects that one response shows several times with different values.
extension WriterSession {
    /// The limit on warnings; further pairs of places are only counted.
    private static let disagreementLimit = 20

    /// Reports the members on which the versions of an object in one response disagree, and their places.
    ///
    /// Called only for an object with different versions in the response.
    func warn(
        of versions: [Contribution],
        showing record: ObjectRecord,
        in decomposed: DecomposedBody,
        models: Models,
        _ observed: inout ObservedObjects
    ) throws {
        func place(of version: VersionID, _ member: String) -> String {
            let pin = Pin(object: record.id, version: version)
            let pointer = observed.pins.firstIndex(of: pin).flatMap(decomposed.pointer(toOccurrence:))
            return pointer.map { "\($0)/\(member)" } ?? ""
        }
        let model = try names.collection(record.collection, in: database).model
        let found = ObjectState.disagreements(among: versions.map(\.payload), model: model, models: models)
        for (member, one, other) in found {
            let known = observed.warnings.firstIndex {
                $0.kind == .disagreement && $0.model == model && $0.property == member
            }
            if let known {
                observed.warnings[known].count += 1
                continue
            }
            guard observed.warnings.count < Self.disagreementLimit else { return }
            let (here, there) = (
                place(of: versions[one].versionID, member), place(of: versions[other].versionID, member)
            )
            observed.warnings.append(
                MappingWarning(
                    .disagreement,
                    "\(model) \(record.identity.text) has two values of \(member) in one response, at \(here) and at \(there). That response keeps both values; other responses keep the earlier one.",
                    pointer: here,
                    model: model,
                    property: member
                )
            )
        }
    }
}

/// A problem that did not fail a response, counted.
public struct StoredWarning: Sendable, Equatable {
    /// The kind, from a fixed set.
    public var kind: String
    /// What it is about: a model, a route, an upstream.
    public var subject: String
    public var message: String
    /// The path and query of the response in which it was last seen; empty if it concerns no response.
    public var url = ""
    /// The JSON pointer of the place in that response; empty for the whole body.
    public var pointer = ""
    public var count = 1
    /// When it was first seen, microseconds of the store's clock.
    public var first: Int64 = 0
    public var last: Int64 = 0
}
