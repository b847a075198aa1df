import GRDB
import Mapping

/// Observations: one row for each answer, for as long as something names it.
extension WriteSession {
    /// A new answer's observation, used by nothing yet.
    func newObservation(start: Int64, end: Int64, kind: Observation.Kind, route: Int64 = 0) -> Observation {
        numbers.observation += 1
        observations[numbers.observation] = ObservationRecord(
            start: start,
            end: end,
            kind: kind,
            route: route,
            uses: 0,
            isStored: false
        )
        return Observation(sequence: numbers.observation, start: start, end: end, kind: kind, route: route)
    }

    func observation(_ id: Int64) throws -> Observation {
        let record = try observationRecord(id)
        return Observation(
            sequence: id,
            start: record.start,
            end: record.end,
            kind: record.kind,
            route: record.route
        )
    }

    /// Counts something that names an observation, or does so no longer.
    func use(_ id: Int64, by difference: Int64) throws {
        let record = try observationRecord(id)
        record.uses += difference
        record.isModified = true
    }

    /// Moves an observation to a later time, for a 304.
    func renew(_ id: Int64, start: Int64, end: Int64) throws {
        let record = try observationRecord(id)
        record.start = max(record.start, start)
        record.end = max(record.end, end)
        record.isModified = true
    }

    private func observationRecord(_ id: Int64) throws -> ObservationRecord {
        if let known = observations[id] { return known }
        let found = try query("SELECT start, finish, kind, uses, route FROM _observations WHERE id = ?")
            .first(.integer(id)) { row in
                ObservationRecord(
                    start: row.integer(0),
                    end: row.integer(1),
                    kind: Observation.Kind(rawValue: UInt8(truncatingIfNeeded: row.integer(2))) ?? .list,
                    route: row.integer(4),
                    uses: row.integer(3),
                    isStored: true
                )
            }
        guard let found else { throw StoreError.corrupt("observation \(id) is missing") }
        observations[id] = found
        return found
    }

    func flushObservations() throws {
        for (id, record) in observations.sorted(by: { $0.key < $1.key }) where record.isModified {
            if record.uses <= 0 {
                if record.isStored {
                    try query("DELETE FROM _observations WHERE id = ?").run(.integer(id))
                }
            } else if record.isStored {
                try query("UPDATE _observations SET start = ?, finish = ?, uses = ? WHERE id = ?")
                    .run(.integer(record.start), .integer(record.end), .integer(record.uses), .integer(id))
            } else {
                try query("INSERT INTO _observations VALUES (?, ?, ?, ?, ?, ?)").run(
                    .integer(id),
                    .integer(record.start),
                    .integer(record.end),
                    .integer(Int64(record.kind.rawValue)),
                    .integer(record.uses),
                    record.route == 0 ? .null : .integer(record.route)
                )
            }
        }
    }
}
