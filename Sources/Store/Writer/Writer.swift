import Foundation
import GRDB

/// The one who writes: a thread of its own, batches, the bound on the file.
///
/// A batch is whatever came in within the delay, in the order it came, as far as
/// it can be done in `span`; what is express goes first, and by itself. It is one transaction, stored as a whole or not at
/// all. Where it fails, each is tried again by itself, after an eviction if there was no room; where nothing can be written
/// at all, because another process keeps the file locked, all fail.
final class Writer {
    /// How long one transaction is worked on: for as long, what is urgent has to wait.
    private static let span: Duration = .milliseconds(25)

    private let core: StoreCore
    private let session: WriterSession
    private var keeper: FileKeeper
    /// What it has met; nothing more is done then.
    private var damage: FoundDamage?
    /// Whether what is done now was begun before the file was emptied: met again, the damage is in the work.
    private var isMended = false

    private init(core: StoreCore, session: WriterSession) {
        self.core = core
        self.session = session
        keeper = FileKeeper(core: core)
    }

    /// Starts the thread; it ends when the mailbox is finished, and closes the file then.
    static func start(_ core: StoreCore, numbers: WriterSession.Numbers, journal: Journal) {
        let thread = Thread {
            var (numbers, journal) = (numbers, journal)
            var damage: FoundDamage?
            repeat {
                damage = core.pool.writeWithoutTransaction { database in
                    let session = WriterSession(database, of: core, numbers: numbers, journal: journal)
                    session.isGivenUp = { core.isGivenUp }
                    let writer = Writer(core: core, session: session)
                    if let damage { writer.goOn(after: damage) }
                    return writer.run()
                }
                if let damage {
                    numbers = damage.session.numbers
                    journal = Journal(limit: core.changeLimit)
                    // Not from within an access to the pool: it is given up for the empty file.
                    damage.mend(core)
                }
            } while damage != nil
            // The pool cannot be closed from within an access to it.
            core.endAllReading()
            try? core.pool.close()
            // SQLite has cut the WAL to nothing; the next start must not depend on what the disk has left then.
            _ = core.reserve.keep()
            core.releaseLock()
            core.end.give()
        }
        thread.name = "larder-writer"
        // Composition is recursive: the depth that the scanner allows has to fit.
        thread.stackSize = 16 << 20
        thread.start()
    }

    /// Works until the mailbox is finished, or until it meets damage, which it returns with the jobs that were not done.
    private func run() -> FoundDamage? {
        while damage == nil, let jobs = core.mailbox.take(delay: core.batchDelay, idle: keeper.patience) {
            if jobs.isEmpty {
                keeper.idle(session)
            } else {
                work(on: jobs)
            }
        }
        if damage == nil { keeper.close(session) }
        return damage
    }

    /// Does what was left undone when the damage was found.
    private func goOn(after damage: FoundDamage) {
        // What these say is of the upstream, not of the file.
        session.bans = damage.session.bans
        session.recentMarks = damage.session.recentMarks
        session.lastWrites = damage.session.lastWrites
        isMended = true
        _ = try? session.transaction { try session.beginJournal() }
        work(on: damage.unfinished)
        isMended = false
    }

    private func work(on jobs: [Job]) {
        var batch: [Job] = []
        var bytes = 0
        for job in jobs {
            if job.isAlone || bytes + job.bytes > core.budget.batch || batch.count >= 512 {
                commit(batch)
                batch = []
                bytes = 0
                // A write upstream waits for these, and the queue may be long.
                commit(core.mailbox.takeExpress())
            }
            if job.isAlone {
                runAlone(job)
            } else {
                batch.append(job)
                bytes += job.bytes
            }
        }
        commit(batch)
    }

    private func commit(_ batch: [Job]) {
        var rest = batch[...]
        while !rest.isEmpty {
            guard damage == nil else {
                damage?.unfinished += rest
                return
            }
            if core.isGivenUp { rest = withoutDispensable(rest)[...] }
            guard !rest.isEmpty else { return }
            rest = rest.dropFirst(commitFirst(of: rest))
            // A write upstream waits for these, and what is left may take long.
            if !rest.isEmpty { commit(core.mailbox.takeExpress()) }
        }
    }

    /// Commits as many of the jobs as can be done in `Self.span`, one at least.
    ///
    /// - Returns: how many of them need no more work.
    private func commitFirst(of batch: ArraySlice<Job>) -> Int {
        var done = batch.count
        // What a reader could not read, nobody writes anew: the page would stay damaged. The upstream can be asked, so the file
        // may be emptied; while nothing comes in, as offline, what is whole goes on being served.
        if !isMended, batch.contains(where: { $0.bytes > 0 }), let reason = core.foundDamage {
            fail(batch, .corrupt(reason))
            return done
        }
        if batch.contains(where: { $0.bytes > 0 }),
            let reason = keeper.makeRoom(session, for: batch.reduce(0) { $0 + $1.bytes })
        {
            for job in batch where job.bytes > 0 { job.failed(.full(reason)) }
            commit(batch.filter { $0.bytes == 0 })
            return done
        }
        do throws(StoreError) {
            done = try attempt(batch)
        } catch .full {
            keeper.failed(session, .full(""), adding: batch.reduce(0) { $0 + $1.bytes })
            // One that is too large for the room there is must not take the others with it.
            for job in batch { retry(job) }
        } catch .closed where core.isGivenUp {
            // In the middle of one of those that may be left undone; none of the others fails with it.
            let rest = withoutDispensable(batch)
            if rest.count < batch.count { commit(rest) } else { fail(batch, .closed) }
        } catch {
            keeper.failed(session, error)
            if batch.count == 1 || error.isOfTheFile || error.isDamage && !isMended {
                fail(batch, error)
            } else {
                // One that fails must not take those with it that were never tried.
                for job in batch { retry(job) }
            }
        }
        keeper.committed(session)
        return done
    }

    /// Tells those whose work may be left undone that it is; gives the others.
    private func withoutDispensable(_ batch: ArraySlice<Job>) -> [Job] {
        for job in batch where job.isDispensable { job.failed(.closed) }
        return batch.filter { !$0.isDispensable }
    }

    /// Does jobs in one transaction, until the last or until the time is over; returns how many.
    @discardableResult
    private func attempt(_ batch: ArraySlice<Job>) throws(StoreError) -> Int {
        let isDurable = batch.contains { $0.urgency == .durable }
        let end = ContinuousClock.now + Self.span
        do {
            let (completions, outcome) = try session.transaction(durable: isDurable) {
                var completions: [@Sendable () -> Void] = []
                for (index, job) in zip(batch.indices, batch) {
                    completions.append(try job.work(session))
                    let next = batch[(index + 1)...].first
                    // Somebody waits for what is express, and what follows may be a list of any length.
                    let isBorder = job.urgency.isExpress && next?.urgency.isExpress == false
                    if isBorder || ContinuousClock.now >= end { break }
                }
                return completions
            }
            core.publish(outcome, of: session)
            core.updateStatistics {
                $0.commits += 1
                $0.trouble = nil
            }
            for completion in completions { completion() }
            return completions.count
        } catch {
            throw StoreError(error)
        }
    }

    private func retry(_ job: Job) {
        do throws(StoreError) {
            try attempt([job])
        } catch {
            fail([job], error)
        }
    }

    private func fail(_ batch: ArraySlice<Job>, _ error: StoreError) {
        if case .corrupt(let reason) = core.noted(error), !isMended {
            if damage == nil { damage = FoundDamage(reason: reason, session: session) }
            damage?.unfinished += batch
            return
        }
        let error = keeper.reported(error, session)
        core.updateStatistics {
            $0.failures += 1
            $0.trouble = error.description
        }
        for job in batch { job.failed(error) }
    }

    private func runAlone(_ job: Job) {
        guard damage == nil else {
            damage?.unfinished.append(job)
            return
        }
        do {
            try job.work(session)()
        } catch {
            keeper.failed(session, StoreError(error))
            fail([job], StoreError(error))
        }
        keeper.committed(session)
    }
}

/// Damage of the file that the writer has met, and cannot go round.
///
/// A reader of a damaged page finds nothing stored. The writer empties the file and goes on; the store fills again as
/// responses come in. What memory holds of the file is forgotten, and no number is given twice.
struct FoundDamage {
    let reason: String
    /// The session that met it; its connection must not be used any more.
    let session: WriterSession
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
    private static func empty(_ core: StoreCore, numbers: WriterSession.Numbers) throws {
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
