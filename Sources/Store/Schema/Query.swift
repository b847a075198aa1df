import GRDB
import GRDBSQLite
import Mapping

/// A value bound to a statement.
enum SQLValue {
    case null
    case integer(Int64)
    /// UTF-8, such as JSON, bound without a `String`.
    case text([UInt8])
    case string(String)
    case blob([UInt8])
}

/// What can be bound to a statement; nil is NULL, and bytes are a blob.
protocol SQLBindable { var sql: SQLValue { get } }

extension SQLValue: SQLBindable { var sql: SQLValue { self } }
extension Int: SQLBindable { var sql: SQLValue { .integer(Int64(self)) } }
extension Int64: SQLBindable { var sql: SQLValue { .integer(self) } }
extension String: SQLBindable { var sql: SQLValue { .string(self) } }
extension [UInt8]: SQLBindable { var sql: SQLValue { .blob(self) } }
extension Optional: SQLBindable where Wrapped: SQLBindable { var sql: SQLValue { self?.sql ?? .null } }
/// The lower half alone, which the indexes contain.
extension Digest128: SQLBindable { var sql: SQLValue { .integer(Int64(bitPattern: low)) } }
extension StoredIdentity: SQLBindable {}
extension UpstreamKey: SQLBindable { var sql: SQLValue { .string(rawValue) } }
extension SQLBindable where Self: RowID { var sql: SQLValue { .integer(rawValue) } }
extension PrincipalID: SQLBindable {}
extension ObjectID: SQLBindable {}
extension DocumentID: SQLBindable {}
extension ObservationID: SQLBindable {}
extension VersionID: SQLBindable {}
extension SharedBodyID: SQLBindable {}
extension CommitNumber: SQLBindable {}
extension SuspectID: SQLBindable {}
extension ScopeID: SQLBindable {}
extension CollectionID: SQLBindable {}

/// A prepared statement from one connection's cache, bound and stepped directly.
///
/// GRDB owns the statement. Binding and stepping bypass its `DatabaseValue`s and `Data`, which would copy every payload
/// twice. Statements that change the schema or the transaction are not allowed, because GRDB must know of them. Use it
/// only within the database access that provided the connection, and never step it twice at once.
struct Query {
    // Keeps the handle alive.
    private let statement: Statement
    private let handle: OpaquePointer

    init(_ database: Database, _ sql: String) throws {
        statement = try database.cachedStatement(sql: sql)
        handle = statement.sqliteStatement
    }

    func run(_ values: any SQLBindable...) throws { try run(values: values) }

    /// Runs to the end and ignores rows.
    func run(values: [any SQLBindable]) throws {
        try bind(values)
        defer { sqlite3_reset(handle) }
        while try step() {}
    }

    /// Calls back for each row; the row is valid only during the call.
    func each(_ values: any SQLBindable..., body: (QueryRow) throws -> Void) throws {
        try bind(values)
        defer { sqlite3_reset(handle) }
        while try step() { try body(QueryRow(handle: handle)) }
    }

    /// Calls back for each row until the callback returns false.
    func eachWhile(_ values: any SQLBindable..., body: (QueryRow) throws -> Bool) throws {
        try bind(values)
        defer { sqlite3_reset(handle) }
        while try step() { guard try body(QueryRow(handle: handle)) else { return } }
    }

    /// The callback's result for the first row; nil if there is none.
    func first<Value>(_ values: any SQLBindable..., read: (QueryRow) throws -> Value) throws -> Value? {
        try bind(values)
        defer { sqlite3_reset(handle) }
        guard try step() else { return nil }
        return try read(QueryRow(handle: handle))
    }

    func all<Value>(_ values: any SQLBindable..., read: (QueryRow) throws -> Value) throws -> [Value] {
        try bind(values)
        defer { sqlite3_reset(handle) }
        var found: [Value] = []
        while try step() { found.append(try read(QueryRow(handle: handle))) }
        return found
    }

    /// The number in the first row; nil if there is no row.
    func integer(_ values: any SQLBindable...) throws -> Int64? {
        try bind(values)
        defer { sqlite3_reset(handle) }
        return try step() ? QueryRow(handle: handle).integer(0) : nil
    }

    private func step() throws -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: true
        case SQLITE_DONE: false
        default: throw StoreError(of: sqlite3_db_handle(handle))
        }
    }

    private func bind(_ values: [any SQLBindable]) throws {
        // An iterator would copy each value.
        for index in values.indices {
            let position = Int32(index + 1)
            let code =
                switch values[index].sql {
                case .null: sqlite3_bind_null(handle, position)
                case .integer(let number): sqlite3_bind_int64(handle, position, number)
                case .text(let bytes): bytes.withUnsafeBytes { bind(text: $0, at: position) }
                case .string(var text): text.withUTF8 { bind(text: UnsafeRawBufferPointer($0), at: position) }
                case .blob(let bytes):
                    bytes.withUnsafeBytes {
                        sqlite3_bind_blob(handle, position, $0.baseAddress ?? Self.nothing, Int32($0.count), Self.copy)
                    }
                }
            guard code == SQLITE_OK else { throw StoreError(of: sqlite3_db_handle(handle)) }
        }
    }

    private func bind(text: UnsafeRawBufferPointer, at position: Int32) -> Int32 {
        let start = (text.baseAddress ?? Self.nothing).assumingMemoryBound(to: CChar.self)
        return sqlite3_bind_text(handle, position, start, Int32(text.count), Self.copy)
    }

    // The macro SQLITE_TRANSIENT, a cast that Swift does not import. SQLite copies the value before it returns.
    private static let copy = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    // The address of an empty value, because a null pointer would bind NULL. Never read, never written.
    nonisolated(unsafe) private static let nothing = UnsafeRawPointer(
        UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
    )
}

extension Database {
    /// A statement of this connection, from GRDB's cache.
    func query(_ sql: String) throws -> Query { try Query(self, sql) }
}

/// The statements of one connection, found by the address of their text.
///
/// GRDB's own cache hashes the whole text each time, which is too slow for the writer's inner loop.
struct QueryCache {
    private var queries: [UInt: Query] = [:]

    mutating func query(_ sql: StaticString, in database: Database) throws -> Query {
        let address = UInt(bitPattern: sql.utf8Start)
        if let known = queries[address] { return known }
        let query = try database.query(sql.description)
        queries[address] = query
        return query
    }
}

struct QueryRow {
    fileprivate let handle: OpaquePointer

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    /// A row id; that of no row if the column is NULL.
    func id<ID: RowID>(_ column: Int32, as type: ID.Type = ID.self) -> ID { ID(rawValue: integer(column)) }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }
    func isInteger(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_INTEGER }
    func isText(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_TEXT }
    func isBlob(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_BLOB }

    /// An observation whose start, finish and kind are in this column and the next two.
    func observation(_ id: ObservationID, from column: Int32) -> Observation {
        let kind = Observation.Kind(rawValue: UInt8(truncatingIfNeeded: integer(column + 2))) ?? .list
        return Observation(sequence: id.rawValue, start: time(column), end: time(column + 1), kind: kind)
    }

    /// The bytes of a blob or a text; empty for NULL.
    func bytes(_ column: Int32) -> [UInt8] { [UInt8](buffer(column)) }

    /// Calls back with the bytes of a blob or a text, valid only during the call.
    func withBytes<Result>(_ column: Int32, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(buffer(column))
    }

    func string(_ column: Int32) -> String { String(decoding: buffer(column), as: UTF8.self) }
    func upstream(_ column: Int32) -> UpstreamKey { UpstreamKey(rawValue: string(column)) }

    private func buffer(_ column: Int32) -> UnsafeRawBufferPointer {
        // As SQLite's page on sqlite3_column_bytes requires: first the pointer, then the length.
        let start = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column)))
    }
}

extension StoreError {
    var isDamage: Bool { if case .corrupt = self { true } else { false } }

    /// Whether any write to the file would fail, because it is locked or not writable.
    var isOfTheFile: Bool {
        if case .unwritable = self { return true }
        guard case .sqlite(let code, _) = self else { return false }
        return [SQLITE_BUSY, SQLITE_LOCKED, SQLITE_CANTOPEN].contains(code & 0xff)
    }

    /// The last error of a connection.
    init(of connection: OpaquePointer?) {
        self.init(code: sqlite3_extended_errcode(connection), message: String(cString: sqlite3_errmsg(connection)))
    }

    /// Converts an SQLite result code.
    init(code: Int32, message: String) {
        self =
            switch code & 0xff {
            case SQLITE_FULL: .full(message)
            case SQLITE_READONLY: .unwritable(message)
            case SQLITE_IOERR where Self.codesOfWriting.contains(code >> 8): .unwritable(message)
            case SQLITE_CORRUPT, SQLITE_NOTADB: .corrupt(message)
            case _ where code == PageChecksums.mismatch: .corrupt("a page of the file has changed since it was written")
            default: .sqlite(code: code, message: message)
            }
    }

    /// Whether another connection holds a lock.
    var isLocked: Bool { if case .sqlite(let code, _) = self { code & 0xff == SQLITE_BUSY } else { false } }

    /// Whether SQLite has given up because somebody else did not let it have a lock of the WAL's index.
    var isOfLocking: Bool { if case .sqlite(let code, _) = self { code & 0xff == SQLITE_PROTOCOL } else { false } }

    /// Whether the cause is the disk: it is full, read-only or failing.
    var isOfDisk: Bool { if case .full = self { true } else if case .unwritable = self { true } else { false } }

    /// The extended codes of `SQLITE_IOERR` that are about writing a file: write, flush, flush of the folder, truncate, delete;
    /// size and opening of the WAL's index.
    private static let codesOfWriting: [Int32] = [3, 4, 5, 6, 10, 18, 19]

    init(_ error: any Error) {
        self =
            switch error {
            case let error as StoreError: error
            case let error as DatabaseError:
                StoreError(code: error.extendedResultCode.rawValue, message: error.message ?? "no message")
            default: .sqlite(code: 1, message: String(describing: error))
            }
    }
}

extension ObjectStore {
    public static var libraryVersion: String { String(cString: sqlite3_libversion()) }
}
