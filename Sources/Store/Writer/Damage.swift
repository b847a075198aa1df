import GRDB

/// Damage of the file that the writer has met, and cannot go round.
///
/// A reader of a damaged page finds nothing stored. The writer empties the file and goes on; the store fills again as
/// responses come in. What memory holds of the file is forgotten, and no number is given twice.
struct FoundDamage {
    let reason: String
    /// The session that met it; its connection must not be used any more.
    let session: WriteSession
    /// What was not done, in its order.
    var unfinished: [Job] = []

    /// Empties the file; where that fails, as on a full disk, what waits fails with it when it is tried again.
    func mend(_ core: StoreCore) {
        do {
            try Self.empty(core, numbers: session.numbers)
            forget(core)
            core.mended(reason)
        } catch {
            core.notify(.damaged(reason: "\(reason), and the file cannot be emptied: \(StoreError(error))"))
        }
    }

    /// Makes the file an empty store with the same secret, whose numbers and times go on; blocks.
    ///
    /// Nobody else may write. Readers see the old state, or the new one.
    private static func empty(_ core: StoreCore, numbers: WriteSession.Numbers) throws {
        var settings = Configuration()
        settings.prepareDatabase { try core.budget.configure($0) }
        let empty = try DatabaseQueue(configuration: settings)
        try Schema.migrator.migrate(empty)
        let models = core.models.mapValues(\.models)
        try empty.write { database in
            try Meta.secretLow.set(Int64(bitPattern: core.secret.0), in: database)
            try Meta.secretHigh.set(Int64(bitPattern: core.secret.1), in: database)
            try Meta.sequence.set(numbers.sequence, in: database)
            try Meta.changed.set(numbers.sequence, in: database)
            try Meta.object.set(numbers.object.rawValue, in: database)
            try Meta.clock.set(core.clock.now(), in: database)
            try Meta.closed.set(0, in: database)
            try core.clock.stored.write(in: database)
            try core.publicNumbers.write(in: database)
            try Views(models: models).install(in: database, hasher: core.hasher)
            _ = try ModelVersions(path: core.budget.path, models: models).record(in: database)
            try SecretErasure.record(core.models, in: database)
        }
        try empty.writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = \(Schema.checksummed)") }
        try core.pool.writeWithoutTransaction { database in
            try PageChecksums.withoutComparing(in: database) {
                try empty.unsafeRead { try $0.backup(to: database) }
            }
            _ = try? Query(database, "PRAGMA wal_checkpoint(TRUNCATE)").first { $0.integer(0) }
        }
    }

    /// Has forgotten what memory holds of the file; on the writer's thread, before anything is written.
    private func forget(_ core: StoreCore) {
        core.principals.forgetAll()
        core.recent.forgetAll(at: core.publicNumbers.current)
        core.listener?.storeEmptied()
        core.listener?.principalsForgotten()
        core.onChanges?()
    }
}
