import Basics
import Foundation
import GRDB

/// The only writer of the file.
///
/// It has its own thread, writes in batches, and keeps the file within its bound. A batch is one transaction. It
/// contains the jobs that arrived within the batch delay, in their order, as many as fit into `span`; express jobs come
/// first, in a transaction of their own. If a batch fails, each of its jobs is retried alone, after an eviction if
/// there was no room. If nothing can be written at all, because another process locks the file, all fail.
final class Writer {
    /// How long one transaction may take; urgent jobs may have to wait this long.
    private static let span: Duration = .milliseconds(25)
    /// How long the thread works before it lets others use its processor.
    ///
    /// A batch takes milliseconds, and since 6.6 Linux may let it run to its end while a request waits for this processor.
    private static let turn: Duration = .microseconds(300)

    private let core: StoreCore
    private let session: WriterSession
    private var keeper: FileKeeper
    /// The damage found in the file; the writer then does no more jobs.
    private var damage: FoundDamage?
    /// Whether it works on jobs from before the file was emptied; if these meet damage again, they fail.
    private var isMended = false
    private var endOfTurn = ContinuousClock.now

    private init(core: StoreCore, session: WriterSession) {
        (self.core, self.session) = (core, session)
        keeper = FileKeeper(core: core)
    }

    /// Starts the thread; it ends when the mailbox is finished, and then closes the file.
    static func start(_ core: StoreCore, numbers: WriterSession.Numbers, journal: Journal, recentMarks: RecentMarks) {
        let thread = Thread {
            var (numbers, journal) = (numbers, journal)
            var damage: FoundDamage?
            repeat {
                damage = core.pool.writeWithoutTransaction { database in
                    let session = WriterSession(database, of: core, numbers: numbers, journal: journal)
                    session.isGivenUp = { core.isGivenUp }
                    session.willCommit = { [unowned session] in core.announce($0, of: session) }
                    // What was marked is read from disk once more, and is as it was.
                    session.commitFailed = { core.recent.withdraw() }
                    core.foreignLocks.install(on: database.sqliteConnection)
                    let writer = Writer(core: core, session: session)
                    session.recentMarks = recentMarks
                    if let damage { writer.resume(after: damage) }
                    return writer.run()
                }
                if let damage {
                    numbers = damage.session.numbers
                    journal = Journal(limit: core.changeLimit)
                    // This must be outside of an access to the pool, because it accesses the pool itself.
                    damage.mend(core)
                }
            } while damage != nil
            // The pool cannot be closed from within an access to it.
            core.endAllReading()
            try? core.pool.close()
            core.foreignLocks.close()
            // SQLite has truncated the WAL. The next start must not depend on free room on the disk.
            _ = core.reserve.replenish()
            core.lock.release()
            core.end.give()
        }
        thread.name = "larder-writer"
        // Composition is recursive: the stack must suffice for the depth that the scanner allows.
        thread.stackSize = 16 << 20
        thread.start()
    }

    /// Works until the mailbox is finished, or until it finds damage, which it returns with the unfinished jobs.
    private func run() -> FoundDamage? {
        while damage == nil, let jobs = core.mailbox.take(delay: core.batchDelay, idle: keeper.checkInterval) {
            if jobs.isEmpty { keeper.idle(session) } else { work(on: jobs) }
        }
        session.copy = nil
        if damage == nil { keeper.close(session) }
        return damage
    }

    /// Does the jobs that were unfinished when the damage was found.
    private func resume(after damage: FoundDamage) {
        // These concern the upstream, not the file.
        session.bans = damage.session.bans
        session.recentMarks = damage.session.recentMarks.unwrittenAll()
        session.recentObservations = damage.session.recentObservations
        isMended = true
        _ = try? session.transaction { try session.beginJournal() }
        work(on: damage.unfinished)
        isMended = false
    }

    private func work(on jobs: [Job]) {
        var (batch, bytes): ([Job], Int) = ([], 0)
        for job in jobs {
            if job.isAlone || bytes + job.bytes > core.budget.batch || batch.count >= 512 {
                commit(batch)
                (batch, bytes) = ([], 0)
                // Writes wait for these, and the queue may be long.
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
            // Writes wait for these, and the rest may take long.
            if !rest.isEmpty { commit(core.mailbox.takeExpress()) }
        }
    }

    /// Commits as many of the jobs as fit into `span`, at least one; returns how many are finished or have failed.
    private func commitFirst(of batch: ArraySlice<Job>) -> Int {
        var done = batch.count
        let last = session.numbers.document
        // A page that a reader found damaged would stay damaged. This batch shows that the upstream is reachable, so the file
        // may be emptied. While nothing is stored, as when offline, the intact part is still served.
        if !isMended, batch.contains(where: { $0.bytes > 0 }), let reason = core.foundDamage {
            fail(batch, .corrupt(reason))
            return done
        }
        if batch.contains(where: { $0.bytes > 0 }),
            let error = keeper.makeRoom(session, for: batch.reduce(0) { $0 + $1.bytes })
        {
            for job in batch where job.bytes > 0 { job.failed(error) }
            commit(batch.filter { $0.bytes == 0 })
            return done
        }
        do throws(StoreError) {
            done = try attempt(batch)
        } catch .full {
            keeper.failed(session, .full(""), adding: batch.reduce(0) { $0 + $1.bytes })
            // A job that is too large must not fail the others.
            for job in batch { retry(job) }
        } catch .closed where core.isGivenUp {
            // This interrupted a dispensable job. None of the others fails with it.
            let rest = withoutDispensable(batch)
            if rest.count < batch.count { commit(rest) } else { fail(batch, .closed) }
        } catch {
            keeper.failed(session, error)
            if batch.count == 1 || error.isOfTheFile || error.isDamage && !isMended {
                fail(batch, error)
            } else {
                // A failing job must not fail those that were never tried.
                for job in batch { retry(job) }
            }
        }
        keeper.committed(session, after: last)
        return done
    }

    private func withoutDispensable(_ batch: ArraySlice<Job>) -> [Job] {
        for job in batch where job.isDispensable { job.failed(.closed) }
        return batch.filter { !$0.isDispensable }
    }

    /// Does jobs in one transaction, until the last one or until the time is over; returns how many.
    @discardableResult
    private func attempt(_ batch: ArraySlice<Job>) throws(StoreError) -> Int {
        let isDurable = batch.contains { $0.urgency == .durable }
        let start = ContinuousClock.now
        let end = start + Self.span
        endOfTurn = start + Self.turn
        do {
            let (completions, effects) = try session.transaction(durable: isDurable) {
                var completions: [@Sendable () -> Void] = []
                for (index, job) in zip(batch.indices, batch) {
                    let next = batch[(index + 1)...].first
                    session.endsTransaction = next == nil
                    completions.append(try job.work(session))
                    // Callers wait for express jobs, and the next job may be a long list.
                    let isBorder = job.urgency.isExpress && next?.urgency.isExpress == false
                    if isBorder || yieldAtEndOfTurn() >= end { break }
                }
                return completions
            }
            core.foreignLocks.end(.writing)
            core.publish(effects, of: session)
            let seconds = (ContinuousClock.now - start) / .seconds(1)
            let report = CommitReport(batch.prefix(completions.count), seconds: seconds)
            core.updateStatistics {
                $0.record(report)
                $0.warnings += effects.warnings
            }
            core.setting(\.committed)(report)
            for completion in completions {
                completion()
                yieldAtEndOfTurn()
            }
            return completions.count
        } catch {
            throw StoreError(error)
        }
    }

    /// Yields the processor if this thread has used it for `turn`; returns the time.
    @discardableResult
    private func yieldAtEndOfTurn() -> ContinuousClock.Instant {
        let now = ContinuousClock.now
        guard now >= endOfTurn else { return now }
        sched_yield()
        endOfTurn = .now + Self.turn
        return now
    }

    private func retry(_ job: Job) {
        do throws(StoreError) { try attempt([job]) } catch { fail([job], error) }
    }

    private func fail(_ batch: ArraySlice<Job>, _ error: StoreError) {
        if case .corrupt(let reason) = core.recorded(error), !isMended {
            if damage == nil { damage = FoundDamage(reason: reason, session: session) }
            damage?.unfinished += batch
            return
        }
        let error = keeper.reported(error, session)
        core.updateStatistics { $0.failures += 1 }
        for job in batch { job.failed(error) }
    }

    private func runAlone(_ job: Job) {
        guard damage == nil else {
            damage?.unfinished.append(job)
            return
        }
        let last = session.numbers.document
        do {
            try job.work(session)()
        } catch {
            keeper.failed(session, StoreError(error))
            fail([job], StoreError(error))
        }
        keeper.committed(session, after: last)
    }
}

/// Damage that the writer found in the file.
///
/// A reader of a damaged page finds nothing stored. The writer empties the file and continues, and the store fills
/// again with new responses. The state in memory is discarded, and no number is reused.
struct FoundDamage {
    let reason: String
    /// The session that found it; its connection must no longer be used.
    let session: WriterSession
    var unfinished: [Job] = []

    /// Empties the file; if that fails, as on a full disk, the unfinished jobs fail when they are retried.
    func mend(_ core: StoreCore) {
        do {
            try Self.empty(core, numbers: session.numbers)
            core.keyHasher = core.hasher
            core.forgetContents(at: core.publicNumbers.current)
            core.mended(reason)
        } catch {
            core.notify(.damaged(reason: "\(reason), and the file cannot be emptied: \(StoreError(error))"))
        }
    }

    /// Replaces the file's contents by an empty store with the same secret, whose numbers and times continue; blocks.
    ///
    /// There must be no other writer. Readers see the old state or the new one.
    private static func empty(_ core: StoreCore, numbers: WriterSession.Numbers) throws {
        var settings = Configuration()
        settings.prepareDatabase { try core.budget.configure($0) }
        let empty = try DatabaseQueue(configuration: settings)
        try Schema.migrator.migrate(empty)
        let models = core.configuredModels
        try empty.write { database in
            try core.writeMeta(in: database, sequence: numbers.sequence, object: numbers.object)
            try Meta.changed.set(numbers.sequence.rawValue, in: database)
            try Views(models: models).install(in: database, hasher: core.hasher)
            _ = try ModelVersions(path: core.budget.path, models: models).record(in: database)
            try SecretErasure.record(core.models, in: database)
        }
        try empty.writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = \(Schema.checksummed)") }
        try core.pool.writeWithoutTransaction { database in
            try PageChecksums.withoutComparing(in: database) { try empty.unsafeRead { try $0.backup(to: database) } }
            _ = try? database.query("PRAGMA wal_checkpoint(TRUNCATE)").integer()
        }
    }
}
