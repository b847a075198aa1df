import GRDB

/// Objects that no document shows any more.
extension WriteSession {
    /// Forgets orphans up to a time in seconds; returns how many.
    func removeOrphans(until time: Int64, limit: Int) throws -> Int {
        var found: [ObjectID] = []
        try query("SELECT object FROM _orphans WHERE since <= ? LIMIT ?")
            .each(.integer(time), .integer(Int64(limit))) { found.append($0.id(0)) }
        guard !found.isEmpty else { return 0 }
        for id in found { try forget(id) }
        // Mapped views may show what no document does.
        _ = nextSequence()
        outcome.changed += found
        return found.count
    }

    /// Drops what is known of an object; versions that documents pin stay, the rest goes.
    func forget(_ id: ObjectID) throws {
        guard let record = try record(id) else {
            try query("DELETE FROM _orphans WHERE object = ?").run(.id(id))
            return
        }
        try forgetKnown(record)
        record.accumulated = []
        record.deletedSince = .some(nil)
        record.setMark(nil)
    }
}
