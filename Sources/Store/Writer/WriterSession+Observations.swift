import GRDB
import Mapping

/// Observations: one row for each response, as long as something refers to it.
extension WriterSession {
    /// The observation of a new response, not used yet.
    func newObservation(start: Int64, end: Int64, kind: Observation.Kind) -> Observation {
        numbers.observation += 1
        let observation = Observation(sequence: numbers.observation, start: start, end: end, kind: kind)
        observations[numbers.observation] = ObservationRecord(observation, uses: 0, isStored: false)
        return observation
    }

    func observation(_ id: Int64) throws -> Observation { try observationRecord(id).observation }

    /// Records where an observation comes from, if no document has it; written only if something refers to it.
    func note(source: String, of id: Int64) throws {
        try observationRecord(id).source = source
    }

    /// Counts a reference to an observation, or its removal.
    func use(_ id: Int64, by difference: Int64) throws {
        let record = try observationRecord(id)
        record.uses += difference
        record.isModified = true
    }

    /// Moves an observation to a later time, for a 304.
    func move(_ id: Int64, start: Int64, end: Int64) throws {
        let record = try observationRecord(id)
        record.observation.start = max(record.observation.start, start)
        record.observation.end = max(record.observation.end, end)
        record.isModified = true
    }

    private func observationRecord(_ id: Int64) throws -> ObservationRecord {
        if let known = observations[id] { return known }
        let found = try query("SELECT start, finish, kind, uses FROM _observations WHERE id = ?")
            .first(.integer(id)) { row in
                ObservationRecord(row.observation(id, from: 0), uses: row.integer(3), isStored: true)
            }
        guard let found else { throw StoreError.corrupt("observation \(id) is missing") }
        observations[id] = found
        return found
    }

    func flushObservations() throws {
        for (id, record) in observations.sorted(by: { $0.key < $1.key }) where record.isModified {
            let observation = record.observation
            if record.uses <= 0 {
                if record.isStored {
                    try query("DELETE FROM _observations WHERE id = ?").run(.integer(id))
                }
            } else if record.isStored {
                try query("UPDATE _observations SET start = ?, finish = ?, uses = ? WHERE id = ?")
                    .run(.integer(observation.start), .integer(observation.end), .integer(record.uses), .integer(id))
                if let source = record.source {
                    try query("UPDATE _observations SET source = ? WHERE id = ?").run(.string(source), .integer(id))
                }
            } else {
                try query(
                    "INSERT INTO _observations (id, start, finish, kind, uses, source) VALUES (?, ?, ?, ?, ?, ?)"
                ).run(
                    .integer(id),
                    .integer(observation.start),
                    .integer(observation.end),
                    .integer(Int64(observation.kind.rawValue)),
                    .integer(record.uses),
                    SQLValue(record.source)
                )
            }
        }
    }
}
