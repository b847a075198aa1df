import Foundation
import GRDBSQLite
import Mapping
import Synchronization
import TestSupport

@testable import Store

/// A store's file, or a copy, with changed bytes or changed values: it is refused or read, and the store goes on.
///
/// The first byte of an input says whether the file is opened or loaded as a copy, and whether its pages get new checksums.
/// Then come edits: values in rows, or bytes at places.
enum StoreFuzzing: FuzzTarget {
    private static let key: [UInt8] = [1, 2, 3]

    static let seeds: [[UInt8]] = (0..<64 as Range<UInt64>).map { seed in
        var random = SeededGenerator(seed: seed)
        return [UInt8(seed % 4)] + (0..<24).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    /// A store with rows in every table, and a copy of it.
    private static let files: (store: [UInt8], copy: [UInt8]) = wait {
        let bench = try await Bench.filled()
        try await bench.store.save(to: bench.folder.file("copy"), principalKey: key)
        await bench.store.close()
        return (bench.folder.bytes("larder.db"), bench.folder.bytes("copy"))
    }

    static func run(_ input: ArraySlice<UInt8>) {
        var reader = InputReader(input)
        let mode = reader.byte()
        let (isCopy, isSealed) = (mode & 1 != 0, mode & 2 != 0)
        let file = edited(isCopy ? files.copy : files.store, &reader, mayEditValues: isSealed)
        wait {
            let folder = TemporaryFolder()
            let name = isCopy ? "copy" : "larder.db"
            try Data(file).write(to: URL(fileURLWithPath: folder.file(name)))
            if isSealed { try PageChecksums.seal(folder.file(name), isNew: true) }
            let bench: Bench
            do { bench = try Bench(folder: folder) } catch {
                require(error is StoreError && !isCopy, "\(error)")
                return
            }
            if isCopy { await load(folder.file(name), into: bench) }
            await use(bench)
            await bench.store.close()
        }
    }

    private static func load(_ copy: String, into bench: Bench) async {
        do {
            let path = bench.store.copyPaths.loading
            try FileManager.default.moveItem(atPath: copy, toPath: path)
            _ = try await bench.store.load(path, principalKey: key, replacing: true, bodyLimit: 1 << 20) { _ in true }
        } catch {
            require(error is StoreError, "\(error)")
        }
    }

    /// Reads, writes and cleans; nothing else than an error of the store may come of it, and new responses are stored.
    private static func use(_ bench: Bench) async {
        for url in ["/issues", "/issues/1", "/plain"] { _ = try? await bench.body(url) }
        _ = try? await bench.store.list(DocumentListing())
        _ = try? await bench.store.warnings()
        for (model, identity) in [("Issue", "1"), ("Issue", "2"), ("User", "7")] {
            let query = ObjectQuery(model: model, identity: identity)
            let objects = (try? await bench.store.objects(query))?.rows ?? []
            for object in objects.prefix(4) { _ = try? await bench.store.why(object.id) }
        }
        _ = try? await bench.receive("/issues/1", #"{"id":1,"title":"new","user":{"id":7}}"#, issue)
        _ = try? await bench.receive("/issues", #"[{"id":2,"title":"new"}]"#, issues)
        _ = try? await bench.body("/issues")
        _ = try? await bench.store.clean(CleanFilter())
        // Where the writer meets damage, the file is emptied, and what was stored just before is gone.
        let body = #"{"id":3,"title":"c"}"#
        for _ in 0..<3 {
            _ = try? await bench.receive("/issues/3", body, issue)
            if let stored = try? await bench.body("/issues/3") {
                require(stored == body, "stored: \(stored)")
                return
            }
        }
        require(false, "no response is stored any more: \(bench.notices)")
    }

    // MARK: Edits

    private static func edited(_ file: [UInt8], _ reader: inout InputReader, mayEditValues: Bool) -> [UInt8] {
        var file = file
        var database: OpaquePointer?
        if mayEditValues { database = open(file) }
        defer { sqlite3_close(database) }
        var places: [(at: Int, bytes: [UInt8])] = []
        var end = file.count
        for _ in 0..<8 where !reader.rest.isEmpty {
            switch reader.byte() % 8 {
            case 0...4 where database != nil: changeValue(in: database, &reader)
            case 7: end = min(end, (reader.byte() << 12 | reader.byte() << 4) % max(1, file.count))
            default:
                let at = (reader.byte() << 16 | reader.byte() << 8 | reader.byte()) % file.count
                places.append((at, reader.bytes(reader.byte() % 16 + 1)))
            }
        }
        if let database { file = bytes(of: database, like: file) }
        for (at, bytes) in places {
            for (offset, byte) in bytes.enumerated() where at + offset < file.count { file[at + offset] = byte }
        }
        return Array(file.prefix(end))
    }

    /// The names of the tables and their columns, in the order of the schema.
    private static let columns: [(table: String, column: String)] = {
        guard let database = open(files.store) else { return [] }
        defer { sqlite3_close(database) }
        var statement: OpaquePointer?
        let query =
            "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c "
            + "WHERE t.type = 'table' ORDER BY t.rowid, c.cid"
        sqlite3_prepare_v2(database, query, -1, &statement, nil)
        defer { sqlite3_finalize(statement) }
        var columns: [(String, String)] = []
        while sqlite3_step(statement) == SQLITE_ROW {
            guard let table = sqlite3_column_text(statement, 0), let column = sqlite3_column_text(statement, 1)
            else { continue }
            columns.append((String(cString: table), String(cString: column)))
        }
        require(columns.count > 40, "the store's tables cannot be read")
        return columns
    }()

    /// Replaces one value of all rows, or of one.
    private static func changeValue(in database: OpaquePointer?, _ reader: inout InputReader) {
        let (table, column) = columns[reader.byte() % columns.count]
        let row = reader.byte()
        let filter = row < 128 ? "" : " WHERE rowid = (SELECT rowid FROM \(table) LIMIT 1 OFFSET \(row % 8))"
        var statement: OpaquePointer?
        sqlite3_prepare_v2(database, "UPDATE OR REPLACE \(table) SET \(column) = ?1\(filter)", -1, &statement, nil)
        defer { sqlite3_finalize(statement) }
        let kind = reader.byte()
        let content = reader.bytes(kind / 8)
        switch kind % 8 {
        case 0: sqlite3_bind_null(statement, 1)
        case 1: sqlite3_bind_double(statement, 1, Double(content.first ?? 0) + 0.5)
        case 2...4: sqlite3_bind_int64(statement, 1, content.reduce(0) { $0 << 8 | Int64($1) })
        case 5: bind(content) { sqlite3_bind_text(statement, 1, $0, $1, $2) }
        default: bind(content) { sqlite3_bind_blob(statement, 1, $0, $1, $2) }
        }
        sqlite3_step(statement)
    }

    private static func bind(
        _ content: [UInt8],
        _ bind: (UnsafePointer<CChar>?, Int32, sqlite3_destructor_type?) -> Int32
    ) {
        // SQLite copies the value (SQLITE_TRANSIENT).
        let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        // A null pointer would be NULL rather than an empty value.
        (content + [0]).withUnsafeBytes {
            _ = bind($0.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(content.count), copies)
        }
    }

    /// A database in memory with the bytes of a file, without its checksums.
    private static func open(_ file: [UInt8]) -> OpaquePointer? {
        var database: OpaquePointer?
        guard sqlite3_open(":memory:", &database) == SQLITE_OK,
            let memory = sqlite3_malloc64(UInt64(file.count))?.assumingMemoryBound(to: UInt8.self)
        else { fatalError("SQLite cannot open a database in memory") }
        memory.update(from: file, count: file.count)
        // A database in memory has no WAL.
        (memory[18], memory[19]) = (1, 1)
        let (size, flags) = (Int64(file.count), SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE)
        let code = sqlite3_deserialize(database, "main", memory, size, size, UInt32(flags))
        require(code == SQLITE_OK, "SQLite cannot read the file: \(code)")
        return database
    }

    private static func bytes(of database: OpaquePointer, like file: [UInt8]) -> [UInt8] {
        var size: Int64 = 0
        guard let memory = sqlite3_serialize(database, "main", &size, 0) else { fatalError("SQLite has no memory") }
        defer { sqlite3_free(memory) }
        var bytes = Array(UnsafeBufferPointer(start: memory, count: Int(size)))
        bytes[18...19] = file[18...19]
        return bytes
    }

    // MARK: Waiting

    /// Runs asynchronous work on other threads, and waits for it.
    private static func wait<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) -> Value {
        let done = DispatchSemaphore(value: 0)
        let result = Mutex<Result<Value, any Error>?>(nil)
        Task.detached {
            let value: Result<Value, any Error>
            do { value = .success(try await work()) } catch { value = .failure(error) }
            result.withLock { $0 = value }
            done.signal()
        }
        done.wait()
        switch result.withLock({ $0 }) {
        case .success(let value)?: return value
        case .failure(let error)?: fatalError("\(error)")
        case nil: fatalError("the work has no result")
        }
    }
}
