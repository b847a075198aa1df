import GRDB

/// The clock's rows among the single values of a store.
extension StoredTime {
    // A clock that is off by more is no clock: the year 10000.
    private static let end: Int64 = 253_402_300_800_000_000

    init(in database: Database) throws {
        clock = try Meta.clock.integer(in: database) ?? 0
        guard (0..<Self.end).contains(clock) else { throw StoreError.corrupt("its clock is at no possible time") }
        wallLead = try Meta.wallLead.integer(in: database)
        offset = try Meta.clockOffset.integer(in: database)
        boot = try Meta.boot.integer(in: database)
        agesKnownSince = try Meta.agesKnownSince.integer(in: database) ?? 0
    }

    /// Writes all but the time itself, which each commit writes.
    func write(in database: Database) throws {
        try Meta.wallLead.set(wallLead ?? 0, in: database)
        try Meta.clockOffset.set(offset ?? 0, in: database)
        try Meta.boot.set(boot ?? 0, in: database)
        try Meta.agesKnownSince.set(agesKnownSince, in: database)
    }
}
