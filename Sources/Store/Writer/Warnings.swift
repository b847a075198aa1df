import GRDB
import Mapping

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

    /// The limit on warnings; further pairs of places are only counted.
    private static let disagreementLimit = 20

    /// Reports the members on which the different versions of an object in one response disagree, and their places.
    func warn(
        of versions: [Contribution],
        showing record: ObjectRecord,
        in decomposed: DecomposedBody,
        models: Models,
        _ observed: inout ObservedObjects
    ) throws {
        func place(of version: Contribution, _ member: String) -> String {
            let pin = Pin(object: record.id, version: version.versionID)
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
            let (here, there) = (place(of: versions[one], member), place(of: versions[other], member))
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
