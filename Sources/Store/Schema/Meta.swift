import GRDB

/// The single values of a store.
enum Meta: String {
    case secretLow, secretHigh
    /// The secret of the digests in `_keys`, if it differs from the store's because they came with a copy of another store.
    case keyLow, keyHigh
    /// The digest of the principal key under which the principals were made; only in copies.
    case principalKey
    /// The commit sequence.
    case sequence
    /// The commit sequence of the last change to any object.
    case changed
    /// The commit sequence up to which changes are no longer in the journal; missing if there is no journal.
    case journal
    /// The highest object id ever assigned, as of the last removal of an object.
    case object
    /// The highest time ever committed, and the rest of `StoredTime`.
    case clock, wallLead, clockOffset, boot, agesKnownSince
    /// 1 after an orderly shutdown.
    case closed
    /// The digest of the views' definitions.
    case views
    /// 0 while objects remain to be migrated to a newer version of their model.
    case modernised

    func integer(in database: Database) throws -> Int64? {
        try Query(database, "SELECT value FROM _meta WHERE key = ?").integer(.string(rawValue))
    }

    func set(_ value: Int64, in database: Database) throws {
        try Query(
            database,
            "INSERT INTO _meta VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2 WHERE value IS NOT ?2"
        ).run(.string(rawValue), .integer(value))
    }

    func remove(in database: Database) throws {
        try Query(database, "DELETE FROM _meta WHERE key = ?").run(.string(rawValue))
    }
}

/// Reads and writes the clock's state.
extension StoredTime {
    // The year 10000, which no valid clock reaches.
    private static let end: Int64 = 253_402_300_800_000_000

    init(in database: Database) throws {
        clock = try Meta.clock.integer(in: database) ?? 0
        guard (0..<Self.end).contains(clock) else { throw StoreError.corrupt("its clock is at no possible time") }
        wallLead = try Meta.wallLead.integer(in: database)
        offset = try Meta.clockOffset.integer(in: database)
        boot = try Meta.boot.integer(in: database)
        agesKnownSince = try Meta.agesKnownSince.integer(in: database) ?? 0
    }

    /// Writes everything but the time itself, which each commit writes.
    func write(in database: Database) throws {
        try Meta.wallLead.set(wallLead ?? 0, in: database)
        try Meta.clockOffset.set(offset ?? 0, in: database)
        try Meta.boot.set(boot ?? 0, in: database)
        try Meta.agesKnownSince.set(agesKnownSince, in: database)
    }
}
