import GRDBSQLite
import Glibc

/// Reads a store's file by SQL, whether or not a daemon has it open.
///
/// It takes no lock that the daemon would wait for, and writes nothing. While a query runs, SQLite keeps its snapshot, so that
/// the WAL grows; the time limit of the query bounds that. Use it on one thread only.
public final class StoreReader {
    private let handle: OpaquePointer
    /// When the running query has to end; nil for no limit.
    private let deadline: UnsafeMutablePointer<ContinuousClock.Instant?>

    /// Opens a file; throws if it does not exist, cannot be read, or is not a store.
    public init(path: String) throws(StoreError) {
        guard access(path, F_OK) == 0 else { throw .cannotOpen(path: path, reason: StoreError.reason()) }
        let path = try StorePath.resolve(path)
        guard access(path, R_OK) == 0 else {
            let cure =
                errno == EACCES ? "; run this as the user that runs Larder, or see store.group in its config" : ""
            throw .cannotOpen(path: path, reason: StoreError.reason() + cure)
        }
        try StoreFile.refuseForeignFile(path)
        PageChecksums.install
        var opened: OpaquePointer?
        // Another program may have copied pages into it; the next daemon adds their checksums.
        let code = PageChecksums.believingUnsealed(at: path) {
            sqlite3_open_v2(path, &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nil)
        }
        guard code == SQLITE_OK, let opened else {
            sqlite3_close(opened)
            throw .cannotOpen(path: path, reason: String(cString: sqlite3_errstr(code)))
        }
        handle = opened
        deadline = .allocate(capacity: 1)
        deadline.initialize(to: nil)
        sqlite3_busy_timeout(handle, 2_000)
        // The longest text or blob that a query may make.
        sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, 256 << 20)
        sqlite3_progress_handler(
            handle,
            1_000,
            { deadline in
                let deadline = deadline!.load(as: ContinuousClock.Instant?.self)
                return if let deadline, .now > deadline { 1 } else { 0 }
            },
            deadline
        )
        sqlite3_exec(handle, "PRAGMA query_only = 1; PRAGMA temp_store = 2", nil, nil, nil)
        try check(path)
    }

    deinit {
        sqlite3_close(handle)
        deadline.deallocate()
    }

    /// Limits the memory that SQLite takes in this process.
    public static func limitMemory() { sqlite3_hard_heap_limit64(1 << 30) }

    private func check(_ path: String) throws(StoreError) {
        var application: SQLCell?
        do throws(QueryFailure) {
            try run("PRAGMA application_id", within: nil, columns: { _ in }, row: { application = $0[0] })
        } catch .failed(let message) {
            // Without the index file, SQLite has to create one.
            let cure =
                access(path + "-shm", R_OK) == 0
                ? "" : "; \(path)-shm cannot be read: run this as the user that runs Larder"
            throw .cannotOpen(path: path, reason: message + cure)
        } catch {
            throw .cannotOpen(path: path, reason: "\(error)")
        }
        guard application == .integer(Schema.applicationID) else {
            throw .cannotOpen(path: path, reason: "it is not a store of Larder")
        }
    }

    /// Runs one read-only statement, at most for `limit`; `columns` is called once, with their names.
    public func run(_ sql: String, within limit: Duration?, columns: ([String]) -> Void, row: ([SQLCell]) -> Void)
        throws(QueryFailure)
    {
        let statement = try prepare(sql)
        defer { sqlite3_finalize(statement) }
        let count = sqlite3_column_count(statement)
        columns((0..<count).map { sqlite3_column_name(statement, $0).map { String(cString: $0) } ?? "" })
        deadline.pointee = limit.map { .now + $0 }
        defer { deadline.pointee = nil }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW:
                row((0..<count).map { SQLCell(statement, column: $0) })
                // SQLite asks only during its own work, and the row's receiver may have waited.
                if let end = deadline.pointee, .now > end { throw .tookTooLong }
            case SQLITE_DONE: return
            case SQLITE_INTERRUPT: throw .tookTooLong
            default: throw failure()
            }
        }
    }

    private func prepare(_ sql: String) throws(QueryFailure) -> OpaquePointer {
        // SQLite would silently end the statement at a zero byte.
        guard !sql.utf8.contains(0) else { throw .failed("the statement contains a zero byte") }
        var (first, second): (OpaquePointer?, OpaquePointer?)
        let (code, following) = sql.withCString { text in
            var tail: UnsafePointer<CChar>?
            let code = sqlite3_prepare_v2(handle, text, -1, &first, &tail)
            guard code == SQLITE_OK else { return (code, code) }
            return (code, sqlite3_prepare_v2(handle, tail, -1, &second, nil))
        }
        defer { sqlite3_finalize(second) }
        guard code == SQLITE_OK else { throw failure() }
        guard let first else { throw .failed("there is no statement in it") }
        guard following == SQLITE_OK, second == nil else {
            sqlite3_finalize(first)
            throw .severalStatements
        }
        // Statements without columns, such as ATTACH and BEGIN, have no result.
        guard sqlite3_stmt_readonly(first) != 0, sqlite3_column_count(first) > 0 else {
            sqlite3_finalize(first)
            throw .wouldWrite
        }
        return first
    }

    private func failure() -> QueryFailure {
        // The code for a damaged page is the store's own, and SQLite has no message for it.
        let error = StoreError(of: handle)
        return .failed(error.isDamage ? error.description : String(cString: sqlite3_errmsg(handle)))
    }

    /// The views with their columns, ordered by name, and whether each view has rows.
    public func views(within limit: Duration?) throws(QueryFailure) -> [StoreView] {
        var views: [StoreView] = []
        try run(
            "SELECT v.name, i.name FROM sqlite_schema v JOIN pragma_table_info(v.name) i WHERE v.type = 'view' "
                + "AND v.name <> '\(Views.objects)' "
                + "ORDER BY v.name COLLATE NOCASE, i.cid",
            within: limit,
            columns: { _ in },
            row: { cells in
                guard case .text(let view) = cells[0], case .text(let column) = cells[1] else { return }
                if views.last?.name != view { views.append(StoreView(name: view)) }
                views[views.count - 1].columns.append(column)
            }
        )
        for index in views.indices {
            let sql = "SELECT EXISTS (SELECT 1 FROM \(SQLText.quoted(views[index].name)))"
            try run(sql, within: limit) { _ in
            } row: {
                views[index].hasRows = $0[0] == .integer(1)
            }
        }
        return views
    }
}

/// A view of a store's file.
public struct StoreView: Sendable {
    /// Its name, as SQL without quotes.
    public var name: String
    public var columns: [String] = []
    public var hasRows = false
}

/// One value in the result of a query, with SQLite's type.
public enum SQLCell: Sendable, Equatable {
    case null
    case integer(Int64)
    case real(Double)
    /// A text; bytes that are not UTF-8 are replaced.
    case text(String)
    case blob([UInt8])

    fileprivate init(_ statement: OpaquePointer, column: Int32) {
        // SQLite's page on sqlite3_column_bytes: first the pointer, then the length.
        func bytes() -> UnsafeRawBufferPointer {
            let start = sqlite3_column_blob(statement, column)
            return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))
        }
        switch sqlite3_column_type(statement, column) {
        case SQLITE_INTEGER: self = .integer(sqlite3_column_int64(statement, column))
        case SQLITE_FLOAT: self = .real(sqlite3_column_double(statement, column))
        case SQLITE_TEXT: self = .text(String(decoding: bytes(), as: UTF8.self))
        case SQLITE_BLOB: self = .blob([UInt8](bytes()))
        default: self = .null
        }
    }
}

/// Why a query failed.
public enum QueryFailure: Error, Sendable, Equatable {
    case severalStatements
    case wouldWrite
    case tookTooLong
    /// SQLite's message, or the reason why the file cannot be read.
    case failed(String)
}
