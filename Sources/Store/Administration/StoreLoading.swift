import Foundation
import GRDB
import Glibc
import Mapping
import Synchronization

/// The result of loading a copy.
public struct LoadResult: Sendable {
    public var count: StoreCount
    /// What was left out because it belongs to principals of another key.
    public var dropped: StoreCount
}

extension ObjectStore {
    /// The files beside the store in which copies are saved, and from which they are loaded.
    public var copyPaths: (saving: String, loading: String) {
        let names = StoreCopy.names(beside: core.budget.path)
        return (names.saving, names.loading)
    }

    /// Why a copy of a size cannot be loaded; its rows are written into a new file, for which the disk needs room too.
    ///
    /// - Parameter arrived: how many of its bytes are on the disk already.
    public func refusal(ofCopyWith bytes: Int, ofWhichArrived arrived: Int = 0) -> StoreError? {
        if Int64(bytes) > core.budget.database {
            return .refused(
                "the copy has \(arrived == bytes ? "at least " : "")\(bytes) bytes, and the store may have "
                    + "\(core.budget.database); raise store.maximum_size"
            )
        }
        let rest = Int64(bytes - arrived)
        return core.reserve.hasMargin(for: rest) ? nil : .full(StoreError.reason(ENOSPC))
    }

    /// Replaces the store's contents with those of a copy, in one transaction.
    ///
    /// Anybody may have made the copy: its rows are read as data and checked, and nothing else of it is used. If anything is
    /// wrong with it or fails, the store stays as it is. Loaded documents are of unknown age: they are validated before they are
    /// served, unless the upstream is away.
    ///
    /// - Parameters:
    ///   - path: a copy made by `save`. It is consumed.
    ///   - principalKey: a digest of the key from which principals are derived. If the copy has another one, its principals'
    ///     data is left out, because no request could reach it.
    ///   - isReplacing: whether the store may have contents.
    ///   - bodyLimit: the most bytes that the caller stores of a body.
    ///   - isServable: whether the caller can read and serve the opaque parts of a response; any thread.
    public func load(
        _ path: String,
        principalKey: [UInt8],
        replacing isReplacing: Bool,
        bodyLimit: Int,
        isServable: @escaping @Sendable (OpaqueResponse) -> Bool
    ) async throws(StoreError) -> LoadResult {
        let core = core
        guard !core.isLoading.exchange(true, ordering: .acquiringAndReleasing) else {
            throw .refused("a copy is being loaded already; try again when that is done")
        }
        defer {
            StoreCopy.remove(path)
            core.isLoading.store(false, ordering: .releasing)
        }
        if !isReplacing {
            let present = try await count()
            guard present.objects == 0, present.documents == 0 else {
                let contents = "\(present.objects) objects and \(present.documents) documents"
                throw .refused("the store has \(contents); --replace puts the copy in their place")
            }
        }
        let copiedKey = try await blocking {
            try StoreLoading.rebuild(path, for: core, bodyLimit: bodyLimit, isServable: isServable)
        }
        let dropped = try await StoreLoading.prepare(path, for: core, withoutPrivate: copiedKey != principalKey)
        let owners = try await blocking { try StoreLoading.principals(in: path) }
        // These ids are now taken, so that no other principal gets one of them meanwhile.
        let (ids, last) = try await core.commit(.load, .durable) { session in
            (try owners.map { try session.principal($0.digest) }, session.numbers.document)
        }
        let principals = Dictionary(uniqueKeysWithValues: zip(owners.map(\.id), ids))
        let copy = try await blocking {
            try StoreLoading.renumber(path, principals, after: last.rawValue + StoreLoading.distance, for: core)
        }
        try await core.slice { session in
            guard session.numbers.document.rawValue < last.rawValue + StoreLoading.distance else {
                throw StoreError.refused("too much was stored meanwhile; try again")
            }
            try StoreLoading.takeOver(copy, session, core)
        }
        return LoadResult(count: try await count(), dropped: dropped)
    }
}

enum StoreLoading {
    /// More documents than can be stored while one copy is loaded.
    static let distance: Int64 = 1 << 24
    /// How far the copy's clock may be ahead; this store's clock stands still for that long, and nothing ages.
    private static let lead: Int64 = 300_000_000

    /// Puts a new file, made of the rows of a copy, in the copy's place; returns the digest of its principal key.
    static func rebuild(
        _ path: String,
        for core: StoreCore,
        bodyLimit: Int,
        isServable: @escaping @Sendable (OpaqueResponse) -> Bool
    ) throws -> [UInt8] {
        let new = StoreCopy.names(beside: core.budget.path).rebuilding
        defer { StoreCopy.remove(new) }
        do {
            let latest = core.clock.now() + lead
            let key = try ForeignCopy.read(path) { copy, migration in
                let key = try ForeignCopy.principalKey(of: copy)
                guard try Meta.clock.integer(in: copy) ?? 0 <= latest else {
                    throw StoreError.refused(
                        "the copy is from the future: the clock of one of the two machines is wrong"
                    )
                }
                try CopyRebuilding.write(copy, to: new, upTo: migration, latest: latest, budget: core.budget)
                return key
            }
            let queue = try DatabaseQueue(path: new)
            try queue.read { database in
                try ModelVersions(path: path, models: core.configuredModels).check(in: database)
                try CopyInspection(
                    database: database,
                    models: core.models,
                    latest: latest,
                    bodyLimit: bodyLimit,
                    isServable: isServable
                ).run()
            }
            try queue.close()
            guard rename(new, path) == 0 else { throw StoreError.unwritable(StoreError.reason()) }
            return key
        } catch {
            throw refusal(StoreError(error))
        }
    }

    /// The error, worded for a copy.
    private static func refusal(_ error: StoreError) -> StoreError {
        switch error {
        case .corrupt(let reason): .refused("the copy is damaged: \(reason)")
        case .cannotOpen(_, let reason): .refused("this was not made by larder save: \(reason)")
        case .earlierFormat:
            .refused(
                "the copy was made by an earlier Larder, in a format that this one does not read; "
                    + "make a new one with larder save"
            )
        case .newerSchema(_, let found, let known):
            .refused(
                "the copy was made by a newer Larder (schema \(shown(found)), this one knows \(known)); update Larder"
            )
        case .newerModel(_, let upstream, let model, let found, let declared):
            .refused(
                "the copy has objects of model \(shown(model)) of upstream \(shown(upstream.rawValue)) at version \(found), "
                    + "and the configuration declares version \(declared)"
            )
        // SQLite's own messages may quote the file.
        case .sqlite(let code, _): .refused("the copy cannot be read: SQLite error \(code)")
        default: error
        }
    }

    /// The beginning of a text from the copy, as ASCII, so that nothing invisible is in it.
    private static func shown(_ text: String) -> String {
        let start = text.unicodeScalars.prefix(64).map { $0.escaped(asASCII: true) }.joined()
        return start + (text.unicodeScalars.count > 64 ? "…" : "")
    }

    /// Opens the copy as a store of its own, which completes writes that were under way; returns the private data
    /// removed on request.
    static func prepare(_ path: String, for core: StoreCore, withoutPrivate: Bool) async throws(StoreError)
        -> StoreCount
    {
        var status = stat()
        let size = stat(path, &status) == 0 ? Int64(status.st_size) : 0
        let settings = StoreConfiguration(
            path: path,
            // No limit: the copy must not evict anything.
            maximumFileBytes: max(core.budget.maximum, size) * 2,
            batchDelay: core.configuration.batchDelay,
            queueBytes: core.configuration.queueBytes,
            objectLimit: core.configuration.objectLimit,
            readers: core.configuration.readers,
            lag: core.configuration.lag,
            changes: 0,
            models: core.models.mapValues(\.models)
        )
        let (store, notices) = try await blocking { try ObjectStore.open(settings) }
        for notice in notices {
            guard case .corruptFileSetAside(let aside, let reason) = notice else { continue }
            await store.close()
            StoreCopy.remove(aside)
            throw .refused("the copy is damaged: \(reason)")
        }
        var dropped = StoreCount()
        do throws(StoreError) {
            try await SecretErasure(core: store.core).run()
            if withoutPrivate {
                var filter = CleanFilter()
                filter.isPrivate = true
                dropped = try await store.clean(filter).removed
                // The warnings may name removed data.
                try await store.core.commit(.load, .prompt) { try $0.query("DELETE FROM _warnings").run() }
            }
        } catch {
            await store.close()
            throw error
        }
        await store.close()
        return dropped
    }

    static func principals(in path: String) throws -> [(id: PrincipalID, digest: [UInt8])] {
        let queue = try DatabaseQueue(path: path)
        defer { try? queue.close() }
        return try queue.read { database in
            let owners = "SELECT id, digest FROM _principals WHERE id > ? AND id IN (SELECT principal FROM _scopes)"
            return try database.query(owners).all(PrincipalID.anonymous) { ($0.id(0), $0.bytes(1)) }
        }
    }

    /// Gives principals their ids in this store, and documents new ids and digests that are unused here: so an id of
    /// the former contents finds nothing, and never another principal's data.
    static func renumber(
        _ path: String,
        _ principals: [PrincipalID: PrincipalID],
        after offset: Int64,
        for core: StoreCore
    ) throws -> DatabaseQueue {
        let copy = try DatabaseQueue(path: path)
        try copy.write { database in
            try database.query("DELETE FROM _principals WHERE id > ?").run(PrincipalID.anonymous)
            // Negative numbers, which no principal has, avoid collisions.
            for (old, new) in principals {
                try database.query("UPDATE _scopes SET principal = ? WHERE principal = ?").run(-new.rawValue, old)
            }
            try database.query("UPDATE _scopes SET principal = -principal WHERE principal < 0").run()
            try database.query("DELETE FROM _changes").run()
            try database.query("DELETE FROM _gone").run()
            try Meta.journal.remove(in: database)
            try database.query("DELETE FROM _meta WHERE key = ?").run(Meta.principalKey.rawValue)
            try digest(database, documentsAfter: offset, core.hasher)
            for table in ["_bodies", "_used", "_undivided"] {
                try database.query("UPDATE \(table) SET document = document + ?").run(offset)
            }
        }
        return copy
    }

    private static func digest(_ database: Database, documentsAfter offset: Int64, _ hasher: KeyHasher) throws {
        var scopes: [ScopeID: NameTable.Scope] = [:]
        try database.query(
            """
            SELECT s.id, u.text, s.principal, x.text FROM _scopes s
            JOIN _names u ON u.id = s.upstream JOIN _names x ON x.id = s.context
            """
        ).each { scopes[$0.id(0)] = .init(upstream: $0.upstream(1), principal: $0.id(2), context: $0.string(3)) }
        let update = try database.query("UPDATE _documents SET id = ?, low = ?, place = ? WHERE id = ?")
        let last = try database.query("SELECT max(id) FROM _documents").integer() ?? 0
        var position: Int64 = 0
        while position < last {
            var rows: [(id: Int64, scope: ScopeID, url: String)] = []
            try database.query("SELECT id, scope, url FROM _documents WHERE id > ? AND id <= ? ORDER BY id LIMIT 4096")
                .each(position, last) { rows.append(($0.integer(0), $0.id(1), $0.string(2))) }
            guard let end = rows.last?.id else { break }
            position = end
            for row in rows {
                guard let scope = scopes[row.scope] else { throw StoreError.corrupt("a document has no scope") }
                let place = hasher.pathHash(upstream: scope.upstream, url: row.url)
                try update.run(row.id + offset, hasher.digest(scope.key(ofURL: row.url)), place, row.id)
            }
        }
    }

    // MARK: On the writer's thread

    /// Replaces the file's contents and the state in memory.
    static func takeOver(_ copy: DatabaseQueue, _ session: WriterSession, _ core: StoreCore) throws {
        session.copy = nil
        let known = try copy.read { try StoreFile.numbers(in: $0) }
        let sequence = CommitNumber(rawValue: max(session.numbers.sequence, known.sequence).rawValue + 1)
        var lows: [UInt64] = []
        let keySecret = try copy.write { database in
            let keySecret = try Meta.keySecret(in: database) ?? (0, 0)
            core.clock.takeOver(after: try Meta.clock.integer(in: database) ?? 0)
            try Meta.set(keySecret, as: .keyLow, .keyHigh, in: database)
            try core.writeMeta(in: database, sequence: sequence, object: max(session.numbers.object, known.object))
            // The requests of the principals that this store knows may be under way.
            try session.database.query("SELECT id, digest, label FROM _principals WHERE id > ?")
                .each(PrincipalID.anonymous) { row in
                    try database.query("INSERT INTO _principals (id, digest, label) VALUES (?, ?, ?)")
                        .run(row.integer(0), row.bytes(1), row.string(2))
                }
            let isOwned =
                try database.query("SELECT 1 FROM _scopes WHERE principal NOT IN (SELECT id FROM _principals)")
                .first { _ in false } ?? true
            guard isOwned else { throw StoreError.refused("principals were forgotten meanwhile; try again") }
            try database.query("SELECT low FROM _documents").each { lows.append(UInt64(bitPattern: $0.integer(0))) }
            return keySecret
        }
        // This must precede the commit: a look-up must never miss a stored document.
        core.presence.insert(lows)
        do {
            try copy.unsafeRead { try $0.backup(to: session.database) }
        } catch {
            try? copy.close()
            throw error
        }
        try? copy.close()
        session.adopt(known, sequence: sequence)
        (core.keyHasher, session.keyHasher) = (KeyHasher(secret: keySecret), KeyHasher(secret: keySecret))
        session.journal = Journal(limit: core.changeLimit)
        // If there is no room for it, the next opening begins the journal.
        _ = try? session.transaction { try session.beginJournal() }
        core.publicNumbers.advance(to: sequence)
        core.forgetContents(at: sequence)
    }
}

extension WriterSession {
    /// Continues after the numbers of a loaded copy, and discards cached state of the former contents.
    fileprivate func adopt(_ known: Numbers, sequence: CommitNumber) {
        numbers.document = max(numbers.document, known.document)
        numbers.object = max(numbers.object, known.object)
        numbers.version = max(numbers.version, known.version)
        numbers.observation = max(numbers.observation, known.observation)
        numbers.suspect = max(numbers.suspect, known.suspect)
        numbers.principal = max(numbers.principal, known.principal)
        numbers.scope = max(numbers.scope, known.scope)
        numbers.sequence = sequence
        names.forget()
        recentMarks = RecentMarks()
        doubts = DoubtHistory()
        sentCount = nil
    }
}
