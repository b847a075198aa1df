import Foundation
import GRDB
import GRDBSQLite
import Glibc
import Synchronization

extension ObjectStore {
    /// Copies the committed contents into a new file, readable only by its owner.
    ///
    /// The writer copies slice by slice, and does other work in between. The copy has the contents at its end, and
    /// needs no WAL.
    ///
    /// - Parameters:
    ///   - principalKey: a digest of the key from which principals are derived. `load` compares it.
    ///   - use: uses the complete file before another copy may be made.
    public func save<Value: Sendable>(to path: String, principalKey: [UInt8], use: @Sendable () -> Value = {})
        async throws(StoreError) -> Value
    {
        let core = core
        let isFirst = core.copying.withLock { progress in
            defer { progress = progress ?? CopyProgress() }
            return progress == nil
        }
        guard isFirst else { throw .refused("the store is being saved already; try again when that is done") }
        defer { core.copying.withLock { $0 = nil } }
        do throws(StoreError) {
            try await core.slice { $0.copy = try StoreCopy(of: $0.database, to: path) }
            var isDone = false
            while !isDone {
                isDone = try await core.slice { session in
                    guard let copy = session.copy else { throw StoreError.refused("the store has changed; try again") }
                    defer { core.copying.withLock { $0 = copy.progress } }
                    guard try copy.isDone(after: StoreCopy.slice) else { return false }
                    session.copy = nil
                    return true
                }
            }
            try await blocking { try StoreCopy.complete(path, principalKey: principalKey) }
            return use()
        } catch {
            try? await core.slice { $0.copy = nil }
            StoreCopy.remove(path)
            throw error
        }
    }

    /// The progress of the copy being made; nil if there is none.
    public var copyProgress: CopyProgress? { core.copying.withLock { $0 } }
}

/// The progress of a copy, in bytes.
public struct CopyProgress: Sendable {
    public var copied: Int64 = 0
    /// The total bytes; 0 if not yet known.
    public var total: Int64 = 0
}

extension StoreCore {
    /// Has the writer do one slice of a copy; its errors concern the copy, and say nothing about the store's disk.
    func slice<Value: Sendable>(_ work: @escaping @Sendable (WriterSession) throws -> Value) async throws(StoreError)
        -> Value
    {
        let result = try await commit(.copy, .prompt, alone: true) { session in
            Result { try work(session) }.mapError { StoreError($0) }
        }
        do throws(StoreError) {
            return try result.get()
        } catch .full(let reason) {
            throw .unwritable(reason)
        } catch {
            throw recorded(error)
        }
    }
}

func blocking<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws(StoreError) -> Value {
    try await result { done in
        DispatchQueue.global(qos: .utility).async { done(Result(catching: work).mapError { StoreError($0) }) }
    }
}

/// A copy of the file in progress, made by SQLite's backup; only on the writer's thread.
///
/// SQLite itself updates the copy when the writer changes pages that are already copied.
final class StoreCopy {
    static let slice: Int32 = 512
    private let target: OpaquePointer
    private let backup: OpaquePointer
    private let pageSize: Int64
    private(set) var progress = CopyProgress()

    init(of database: Database, to path: String) throws {
        PageChecksums.install
        try Self.create(path)
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nil)
        guard code == SQLITE_OK, let handle else {
            sqlite3_close(handle)
            throw StoreError(code: code, message: "the copy cannot be opened")
        }
        // The copy does not count until it is complete.
        sqlite3_exec(handle, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", nil, nil, nil)
        guard let backup = sqlite3_backup_init(handle, "main", database.sqliteConnection, "main") else {
            defer { sqlite3_close(handle) }
            throw StoreError(of: handle)
        }
        (target, self.backup) = (handle, backup)
        pageSize = try database.query("PRAGMA page_size").integer() ?? 0
    }

    /// Copies some pages; returns whether all are copied.
    func isDone(after pages: Int32) throws -> Bool {
        let code = sqlite3_backup_step(backup, pages)
        let total = Int64(sqlite3_backup_pagecount(backup))
        progress.copied = (total - Int64(sqlite3_backup_remaining(backup))) * pageSize
        progress.total = total * pageSize
        switch code {
        case SQLITE_DONE: return true
        case SQLITE_OK, SQLITE_BUSY, SQLITE_LOCKED: return false
        default: throw StoreError(code: code, message: String(cString: sqlite3_errstr(code)))
        }
    }

    deinit {
        sqlite3_backup_finish(backup)
        sqlite3_close(target)
    }

    /// Completes the copied pages to a self-contained file, and writes it to disk.
    static func complete(_ path: String, principalKey: [UInt8]) throws {
        // The copied header declares a WAL. There are no checksums yet.
        let file = open(path, O_RDWR | O_CLOEXEC)
        guard file >= 0, pwrite(file, [1, 1] as [UInt8], 2, 18) == 2 else {
            throw StoreError.unwritable(StoreError.reason())
        }
        close(file)
        try PageChecksums.seal(path, isNew: true)
        let copy = try DatabaseQueue(path: path)
        try copy.write { database in
            try database.query("DELETE FROM _told").run()
            try Meta.closed.set(1, in: database)
            try database.query("INSERT OR REPLACE INTO _meta VALUES (?, ?)")
                .run(Meta.principalKey.rawValue, principalKey)
        }
        try copy.close()
    }

    /// The paths beside a store for copies: the one being saved, the one being loaded, and what is made of its rows.
    static func names(beside store: String) -> (saving: String, loading: String, rebuilding: String) {
        ("\(store).saving", "\(store).loading", "\(store).rebuilding")
    }

    /// Creates an empty file for a copy, readable only by its owner, in the place of whatever is there.
    static func create(_ path: String) throws {
        remove(path)
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw StoreError.unwritable(StoreError.reason()) }
        close(file)
    }

    /// Removes copies left by a daemon that was killed.
    static func removeLeftovers(beside store: String) {
        let names = names(beside: store)
        for name in [names.saving, names.loading, names.rebuilding] { remove(name) }
    }

    /// Removes a copy and the files that SQLite keeps beside it.
    static func remove(_ path: String) {
        for suffix in ["", "-wal", "-shm", "-journal", ".lock"] { unlink(path + suffix) }
    }
}
