import GRDB
import GRDBSQLite
import Glibc

/// A file from elsewhere that claims to be a copy of a store.
///
/// Anybody may have made it, so it is opened only to be read, and no statement runs on it but our own: its tables and indexes
/// must be, word for word, those of a store, and its views are not used. Its pages never become the store's.
enum ForeignCopy {
    /// Opens a copy, checks all that can be checked without its rows, and reads it.
    ///
    /// - Parameter work: reads the rows; `migration` is the last migration that its tables went through.
    static func read<Value>(_ path: String, _ work: (_ copy: Database, _ migration: String) throws -> Value) throws
        -> Value
    {
        let size = try checkHeader(path)
        PageChecksums.install
        var settings = Configuration()
        settings.readonly = true
        settings.label = "larder-copy"
        settings.prepareDatabase { database in
            try database.execute(
                sql: """
                    PRAGMA query_only = ON;
                    PRAGMA trusted_schema = OFF;
                    PRAGMA cell_size_check = ON;
                    PRAGMA mmap_size = 0;
                    PRAGMA temp_store = MEMORY;
                    """
            )
            sqlite3_limit(database.sqliteConnection, SQLITE_LIMIT_LENGTH, Int32(clamping: max(size, 1 << 20)))
        }
        let queue = try DatabaseQueue(path: path, configuration: settings)
        defer { try? queue.close() }
        return try queue.read { copy in
            try bounded(copy, size: size) {
                let migration = try checkSchema(copy, path: path)
                let problem = try copy.query("PRAGMA quick_check(1)").first { $0.string(0) }
                guard problem == "ok" else { throw StoreError.corrupt("its pages or indexes are broken") }
                return try work(copy, migration)
            }
        }
    }

    /// Interrupts statements when they have done much more than a file of this size can need.
    private static func bounded<Value>(_ copy: Database, size: Int64, _ work: () throws -> Value) throws -> Value {
        // In thousands of SQLite's instructions; a row takes some tens of bytes, and less than a thousand instructions.
        let left = UnsafeMutablePointer<Int64>.allocate(capacity: 1)
        left.initialize(to: 10_000 + size / 16)
        defer { left.deallocate() }
        sqlite3_progress_handler(
            copy.sqliteConnection,
            1_000,
            { left in
                let left = left!.assumingMemoryBound(to: Int64.self)
                left.pointee -= 1
                return left.pointee < 0 ? 1 : 0
            },
            left
        )
        defer { sqlite3_progress_handler(copy.sqliteConnection, 0, nil, nil) }
        do {
            return try work()
        } catch {
            guard case .sqlite(let code, _) = StoreError(error), code & 0xff == SQLITE_INTERRUPT else { throw error }
            throw StoreError.corrupt("it takes far longer to read than its size explains")
        }
    }

    // MARK: Header

    /// Refuses a file whose header is not that of a copy; returns its size.
    private static func checkHeader(_ path: String) throws -> Int64 {
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { throw StoreError.refused(StoreError.reason()) }
        defer { Glibc.close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_size > 0 else {
            throw StoreError.refused("the file is empty; make a copy with larder save")
        }
        try StoreFile.checkHeader(path, file)
        guard let header = FileHeader(of: file) else { throw StoreError.corrupt("it is cut short") }
        guard header.number(at: 68) == Schema.applicationID else {
            throw StoreError.cannotOpen(path: path, reason: "it is an SQLite database of another program")
        }
        // A store has a WAL, a copy has none.
        guard header[18] <= 1, header[19] <= 1 else { throw isStore }
        // The format of the schema, the encoding of texts (UTF-8), and the checksums of pages.
        guard header.number(at: 44) == 4, header.number(at: 56) == 1, header.number(at: 60) == Schema.checksummed,
            header.reservesChecksums
        else { throw changed("its header differs") }
        return Int64(status.st_size)
    }

    private static let isStore = StoreError.refused("this is a store, not a copy; make one with larder save")

    private static func changed(_ how: String) -> StoreError {
        .refused("the copy is not as larder save makes it: \(how); make a new one with larder save")
    }

    // MARK: Schema

    private struct Entry: Hashable {
        var type: String
        var name: String
        var table: String
        var sql: String

        static func all(in database: Database) throws -> [Entry] {
            try database.query("SELECT type, name, tbl_name, sql FROM sqlite_schema").all { row in
                Entry(type: row.string(0), name: row.string(1), table: row.string(2), sql: row.string(3))
            }
        }

        /// Whether it is a view that takes no table's name.
        var isView: Bool {
            type == "view" && sql.hasPrefix("CREATE VIEW ") && (name == Views.objects || !name.hasPrefix("_"))
        }
        var isMigrations: Bool { name == "grdb_migrations" && type == "table" }
    }

    /// The tables and indexes that our own migrations make, up to one.
    private static func ownEntries(upTo migration: String) throws -> Set<Entry> {
        let own = try DatabaseQueue()
        defer { try? own.close() }
        try Schema.migrator.migrate(own, upTo: migration)
        return Set(try own.read(Entry.all))
    }

    /// Refuses a schema that differs from a store's; returns the last migration that it went through.
    private static func checkSchema(_ copy: Database, path: String) throws -> String {
        let entries = try Entry.all(in: copy).filter { !$0.isView }
        let known = Schema.migrator.migrations
        guard let newest = known.last else { preconditionFailure("there is at least one migration") }
        // Only a table that is ours, word for word, is read.
        let isReadable = try ownEntries(upTo: newest).contains { own in own.isMigrations && entries.contains(own) }
        guard isReadable else { throw changed("it does not say what its format is") }
        let applied = Set(try copy.query("SELECT identifier FROM grdb_migrations").all { $0.string(0) })
        if !applied.contains(known[0]), applied.allSatisfy({ $0 < known[0] }) { throw StoreError.earlierFormat }
        guard let last = known.last(where: applied.contains), applied.isSubset(of: known) else {
            throw StoreError.newerSchema(path: path, found: applied.max() ?? "?", known: newest)
        }
        let own = try ownEntries(upTo: last)
        if let foreign = entries.first(where: { !own.contains($0) }) {
            let type = ["table", "index", "trigger", "view"].contains(foreign.type) ? foreign.type : "thing"
            throw changed("it has \(type == "index" ? "an" : "a") \(type) that Larder does not make")
        }
        guard entries.count == own.count else { throw changed("tables or indexes are missing") }
        return last
    }

    /// The digest of the principal key under which the copy was made.
    static func principalKey(of copy: Database) throws -> [UInt8] {
        let key = try copy.query("SELECT value FROM _meta WHERE key = ?").first(Meta.principalKey.rawValue) {
            $0.bytes(0)
        }
        guard let key else { throw isStore }
        return key
    }
}
