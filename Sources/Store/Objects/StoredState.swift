import GRDB
import Mapping

/// What an object's row says of what is known of it.
struct StoredState {
    /// What `init` reads, of `_objects o`.
    static let columns = "o.state, o.merged, o.known, o.accumulated, o.deleted, o.unobserved"

    let entries: [ObjectRecord.Entry]
    let merged: [UInt8]?
    let knowledge: Knowledge
    let accumulated: [UInt8]
    let mark: ObjectMark?
    let deletedSince: Int64?

    /// Reads the columns, the first of which has this number.
    init(_ row: QueryRow, from column: Int32) throws(StoreError) {
        entries = try ObjectRecord.decode(row.bytes(column))
        merged = row.isNull(column + 1) ? nil : row.bytes(column + 1)
        knowledge = try KnowledgeBytes.decode(row.bytes(column + 2))
        accumulated = row.bytes(column + 3)
        mark = ObjectMark(deleted: row.integer(column + 4), unobserved: row.integer(column + 5))
        deletedSince = row.integer(column + 4) < 0 ? -row.integer(column + 4) : nil
    }

    /// What is known, with the base version as its model is declared today.
    func state(of model: String, _ models: Models?, in database: Database) throws -> ObjectState {
        var state = ObjectState(merged: merged, knowledge: knowledge, deletedSince: deletedSince, mark: mark)
        var declared = 0
        if let entry = entries.first, entry.observation != 0 {
            let found = try Query(
                database,
                """
                SELECT o.start, o.finish, o.kind, v.payload, v.declared FROM _observations o, _versions v
                WHERE o.id = ? AND v.id = ?
                """
            ).first(.integer(entry.observation), .integer(entry.version)) { row in
                declared = Int(row.integer(4))
                return Contribution(
                    observation: Observation(
                        sequence: entry.observation,
                        start: row.integer(0),
                        end: row.integer(1),
                        kind: Observation.Kind(rawValue: UInt8(truncatingIfNeeded: row.integer(2))) ?? .list
                    ),
                    version: entry.version,
                    payload: row.bytes(3)
                )
            }
            guard let found else { throw StoreError.corrupt("version \(entry.version) is missing") }
            state.base = found
        }
        state.accumulation = Accumulation(bytes: accumulated)
        state.bringUpToDate(from: declared, model, models)
        return state
    }
}

extension ObjectState {
    /// Reads what was stored under an earlier version of the model as today's declaration has it.
    mutating func bringUpToDate(from declared: Int, _ model: String, _ models: Models?) {
        if case .whole(let isEmbedded) = knowledge { base?.isEmbedded = isEmbedded }
        guard let models, models.version(of: model) > declared else { return }
        if let payload = base?.payload { base?.payload = models.migrate(payload, of: model, from: declared) }
        merged = merged.map { models.migrate($0, of: model, from: declared) }
        accumulation = models.migrate(accumulation, of: model, from: declared)
    }
}
