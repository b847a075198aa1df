import GRDB
import GRDBSQLite
import Glibc
import Mapping

/// A store's opened file: locked, checked, migrated.
struct StoreFile: Sendable {
    let pool: DatabasePool
    let lock: StoreLock
    let budget: FileBudget
    let secret: HashSecret
    let keySecret: HashSecret
    let time: StoredTime
    let numbers: WriterSession.Numbers
    let publicNumbers: PublicNumbers
    let notices: [StoreNotice]

    // A larger file is not checked as a whole, because it would take too long.
    private static let checkLimit: Int64 = 64 << 20

    /// Opens the file, or creates it; a damaged file, or one of an earlier format, is set aside and a new one created.
    static func open(_ configuration: StoreConfiguration) throws(StoreError) -> StoreFile {
        var configuration = configuration
        configuration.path = try StorePath.resolve(configuration.path)
        try refuseForeignFile(configuration.path)
        let access = try StoreAccess(path: configuration.path, group: configuration.group)
        let lock = try StoreLock(store: configuration.path)
        access.narrow()
        StoreCopy.removeLeftovers(beside: configuration.path)
        let (size, limit) = (FileBudget.extent(of: configuration.path).bytes, FileBudget.limitOfProcess)
        if size > limit {
            // Its last pages could not be written, nor could they be removed.
            return try openAnew(configuration, access, lock: lock, as: "large") { [path = configuration.path] in
                .largeFileSetAside(path: path, aside: $0, bytes: size, limit: limit)
            }
        }
        do {
            return try ready(openDespiteFullDisk(configuration, lock: lock), access)
        } catch .corrupt(let reason) {
            return try openAnew(configuration, access, lock: lock) { .corruptFileSetAside(path: $0, reason: reason) }
        } catch .earlierFormat {
            return try openAnew(configuration, access, lock: lock, as: "old") { [path = configuration.path] in
                .earlierFileSetAside(path: path, aside: $0)
            }
        }
    }

    /// Sets the access to the file and allocates the disk reserve.
    private static func ready(_ file: StoreFile, _ access: StoreAccess) throws(StoreError) -> StoreFile {
        try access.widen()
        // This takes the disk space before others do. If it fails, the writer will notice.
        _ = DiskReserve(budget: file.budget, file: file.lock.file).replenish()
        file.lock.label()
        return file
    }

    /// Opens the file; if the disk has no room for that, uses the reserve.
    private static func openDespiteFullDisk(_ configuration: StoreConfiguration, lock: StoreLock) throws(StoreError)
        -> StoreFile
    {
        let reserve = DiskReserve(budget: budget(of: configuration), file: lock.file)
        do {
            return try reserve.withRoom { try open(configuration, lock: lock, notices: []) }
        } catch {
            throw StoreError(error)
        }
    }

    private static func budget(of configuration: StoreConfiguration) -> FileBudget {
        // No file may grow past the limit of the process; within the store's own bound, none tries to.
        let limit = FileBudget.limitOfProcess
        return FileBudget(
            path: configuration.path,
            maximum: min(configuration.maximumFileBytes, limit),
            // Copies, and what replaces the contents, must have the pages of the file that is there.
            pageSize: pageSize(of: configuration.path) ?? Int64(configuration.pageSize),
            fileLimit: limit
        )
    }

    /// The size of the pages of a file that may be a store; nil without one.
    ///
    /// Call it before SQLite has opened the file: closing it releases SQLite's locks.
    private static func pageSize(of path: String) -> Int64? {
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { Glibc.close(file) }
        guard let size = FileHeader(of: file)?.pageSize else { return nil }
        return size >= 512 && size.nonzeroBitCount == 1 ? size : nil
    }

    /// Replaces this file by a new one, after damage was found in it.
    func replaced(because reason: String, _ configuration: StoreConfiguration) throws(StoreError) -> StoreFile {
        // An error does not matter: the file is no longer used.
        try? pool.close()
        var configuration = configuration
        configuration.path = try StorePath.resolve(configuration.path)
        let access = try StoreAccess(path: configuration.path, group: configuration.group)
        return try Self.openAnew(configuration, access, lock: lock) { .corruptFileSetAside(path: $0, reason: reason) }
    }

    private static func openAnew(
        _ configuration: StoreConfiguration,
        _ access: StoreAccess,
        lock: StoreLock,
        as state: String = "corrupt",
        notice: (_ path: String) -> StoreNotice
    ) throws(StoreError) -> StoreFile {
        let aside = try setAside(configuration.path, as: state, at: configuration.time.wall() / 1_000_000)
        let renewed = try lock.renewed()
        access.narrow()
        return try ready(open(configuration, lock: renewed, notices: [notice(aside)]), access)
    }

    private static func open(_ configuration: StoreConfiguration, lock: StoreLock, notices: [StoreNotice])
        throws(StoreError) -> StoreFile
    {
        let path = configuration.path
        if let holder = ForeignLocks.holderBeforeOpening(path) { throw isLocked(path, by: holder) }
        let budget = budget(of: configuration)
        PageChecksums.install
        do {
            try checkHeader(path, lock.file)
            let wasLeft = access(path + "-wal", F_OK) == 0
            let check = { try checkIdentity(path, models: configuration.models) }
            let wasClosed = try wasLeft ? check() : PageChecksums.believingUnsealed(at: path, check)
            // Another program closed it last, and copied the WAL into it.
            if !wasClosed, !wasLeft { try PageChecksums.seal(path) }
            var settings = GRDB.Configuration()
            settings.label = "larder"
            settings.foreignKeysEnabled = false
            settings.busyMode = .timeout(2)
            settings.maximumReaderCount = max(configuration.readers, 1)
            settings.persistentReadOnlyConnections = true
            settings.prepareDatabase { database in
                persistWAL(database)
                try budget.configure(database)
            }
            let pool = try DatabasePool(path: path, configuration: settings)
            try prepare(pool, path: path, file: lock.file, budget: budget, wall: configuration.time.wall())
            return try pool.writeWithoutTransaction { database in
                guard let secret = try Meta.secret(in: database) else {
                    throw StoreError.corrupt("its secret is missing")
                }
                var time = try StoredTime(in: database)
                time.isLeft = !wasClosed
                return StoreFile(
                    pool: pool,
                    lock: lock,
                    budget: budget,
                    secret: secret,
                    keySecret: try Meta.keySecret(in: database) ?? secret,
                    time: time,
                    numbers: try numbers(in: database),
                    publicNumbers: try PublicNumbers(in: database),
                    notices: notices
                )
            }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CANTOPEN {
            throw .cannotOpen(path: path, reason: error.message ?? "no reason given")
        } catch let error as RowDecodingError {
            throw .corrupt("\(error)")
        } catch {
            let error = StoreError(error)
            guard error.isLocked || error.isOfLocking else { throw error }
            // Whatever it has locked there: nobody else has a reason to lock the index of a store that is not open.
            let locks = ForeignLocks(store: path)
            defer { locks.close() }
            throw isLocked(path, by: locks.holder(of: 0...1023) ?? ForeignLocks.unknownHolder)
        }
    }

    private static func isLocked(_ path: String, by holder: String) -> StoreError {
        .cannotOpen(path: path, reason: "\(holder) keeps it locked; end that process")
    }

    /// Makes SQLite keep the WAL and its index when it closes the file.
    ///
    /// So a start creates no files, for which a full disk may have no room; and a user without write access can read
    /// the store while it is not open.
    private static func persistWAL(_ database: Database) {
        var isKept: Int32 = 1
        sqlite3_file_control(database.sqliteConnection, nil, SQLITE_FCNTL_PERSIST_WAL, &isKept)
    }

    private static func prepare(_ pool: DatabasePool, path: String, file: Int32, budget: FileBudget, wall: Int64) throws
    {
        try pool.writeWithoutTransaction { database in
            // This empties the WAL first, to make room in it.
            _ = try database.query("PRAGMA wal_checkpoint(RESTART)").integer()
            let tables = try database.query("SELECT count(*) FROM sqlite_schema").integer() ?? 0
            try checkContent(database, isNew: tables == 0, budget: budget)
            if tables == 0 { try Schema.recordChecksums(in: database, file: file) }
        }
        try Schema.migrator.migrate(pool)
        try pool.writeWithoutTransaction { database in
            try database.inTransaction(.immediate) {
                if try Meta.secretLow.integer(in: database) == nil {
                    var random = SystemRandomNumberGenerator()
                    try Meta.set((random.next(), random.next()), in: database)
                }
                try Meta.closed.set(0, in: database)
                try PublicNumbers.begin(in: database, wall: wall)
                return .commit
            }
            try budget.limit(database)
        }
    }

    /// Refuses a file of another program or a later Larder, or one with objects that are newer than the models.
    ///
    /// It opens the file only for reading, so that a refused file is not changed.
    ///
    /// - Returns: whether a daemon closed it properly.
    static func checkIdentity(_ path: String, models: [UpstreamKey: Models]) throws -> Bool {
        var status = stat()
        guard stat(path, &status) == 0, status.st_size > 0 else { return true }
        var settings = GRDB.Configuration()
        settings.readonly = true
        settings.label = "larder-check"
        let queue = try DatabaseQueue(path: path, configuration: settings)
        defer { try? queue.close() }
        return try queue.read { database in
            let migrator = Schema.migrator
            let tables = try database.query("SELECT count(*) FROM sqlite_schema").integer() ?? 0
            let application = try database.query("PRAGMA application_id").integer()
            if tables > 0, application != Schema.applicationID {
                throw StoreError.cannotOpen(path: path, reason: "it is an SQLite database of another program")
            }
            if tables > 0, try Schema.isEarlier(database) { throw StoreError.earlierFormat }
            if try migrator.hasBeenSuperseded(database) {
                let applied = try migrator.appliedIdentifiers(database)
                let known = migrator.migrations.last ?? "?"
                throw StoreError.newerSchema(path: path, found: applied.max() ?? "?", known: known)
            }
            try ModelVersions(path: path, models: models).check(in: database)
            guard tables > 0 else { return true }
            guard try Schema.hasChecksums(database) else {
                throw StoreError.corrupt("its pages have lost their checksums")
            }
            return try Meta.closed.integer(in: database) == 1
        }
    }

    /// Refuses a file that was never a store, before anything is changed: the path may be a typing mistake.
    ///
    /// A damaged store may have lost its header too, but it has its lock file beside it.
    static func refuseForeignFile(_ path: String) throws(StoreError) {
        guard access(path + ".lock", F_OK) != 0 else { return }
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return }
        defer { Glibc.close(file) }
        var beginning = [UInt8](repeating: 0, count: FileHeader.magic.count)
        let count = read(file, &beginning, beginning.count)
        if count > 0, !beginning[..<count].elementsEqual(FileHeader.magic) {
            throw .cannotOpen(path: path, reason: "it is no SQLite database, and was never a store; name another file")
        }
    }

    /// Refuses a damaged header that SQLite would treat as an empty database, or notice only later.
    static func checkHeader(_ path: String, _ descriptor: Int32) throws(StoreError) {
        var (status, wal) = (stat(), stat())
        guard fstat(descriptor, &status) == 0, status.st_size > 0 else { return }
        guard let header = FileHeader(of: descriptor) else { throw .corrupt("it is no SQLite database") }
        // With a WAL, the file may be shorter than its header says: the rest is in the WAL.
        if stat(path + "-wal", &wal) == 0, wal.st_size > 0 { return }
        if Int64(status.st_size) < header.number(at: 28) * header.pageSize { throw .corrupt("it has been cut short") }
    }

    private static func checkContent(_ database: Database, isNew: Bool, budget: FileBudget) throws {
        guard !isNew else { return }
        let wasClosed = try? Meta.closed.integer(in: database) == 1
        guard wasClosed != true, budget.fileBytes <= checkLimit else { return }
        let result = try database.query("PRAGMA quick_check(1)").first { $0.string(0) }
        guard result == "ok" else { throw StoreError.corrupt(result ?? "quick_check gave no result") }
    }

    static func numbers(in database: Database) throws -> WriterSession.Numbers {
        func last(_ column: String, _ table: String) throws -> Int64 {
            let last = try database.query("SELECT max(\(column)) FROM \(table)").integer() ?? 0
            // Numbers go on from the last one, and must never reach the end of 64 bits.
            guard RowBounds.numbers ~= last else {
                throw StoreError.corrupt("\(table) has numbers that no store reaches")
            }
            return last
        }
        let (object, sequence) = (try Meta.object.integer(in: database) ?? 0, try Meta.commitNumber(in: database))
        guard RowBounds.numbers ~= object, RowBounds.numbers ~= sequence.rawValue else {
            throw StoreError.corrupt("it has numbers that no store reaches")
        }
        _ = (try last("id", "_names"), try last("id", "_collections"), try last("sequence", "_changes"))
        return WriterSession.Numbers(
            document: DocumentID(rawValue: try last("id", "_documents")),
            // Object ids are never reused: the journal may still contain an object that is gone.
            object: ObjectID(rawValue: max(try last("id", "_objects"), object)),
            version: VersionID(rawValue: try last("id", "_versions")),
            observation: ObservationID(rawValue: try last("id", "_observations")),
            suspect: SuspectID(rawValue: try last("suspect", "_suspects")),
            // Ids of forgotten principals are not reused while they have data.
            principal: PrincipalID(rawValue: max(try last("id", "_principals"), try last("principal", "_scopes"))),
            scope: ScopeID(rawValue: try last("id", "_scopes")),
            sequence: sequence
        )
    }

    /// Renames an unusable file with its WAL and index; returns its new name.
    private static func setAside(_ path: String, as state: String, at seconds: Int64) throws(StoreError) -> String {
        var time = time_t(seconds)
        var parts = tm()
        localtime_r(&time, &parts)
        var text = [CChar](repeating: 0, count: 32)
        strftime(&text, text.count, "%Y%m%d-%H%M%S", &parts)
        let stamp = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        var target = "\(path).\(state)-\(stamp)"
        var number = 1
        while access(target, F_OK) == 0 {
            number += 1
            target = "\(path).\(state)-\(stamp)-\(number)"
        }
        for suffix in ["-wal", "-shm", ""] where access(path + suffix, F_OK) == 0 {
            guard rename(path + suffix, target + suffix) == 0 else {
                let reason = "it cannot be used and cannot be set aside: \(StoreError.reason())"
                throw .cannotOpen(path: path, reason: reason)
            }
        }
        return target
    }
}

/// Resolves the path of a store's file.
///
/// SQLite keeps the WAL and its index beside the target of a symbolic link. The lock, the budget, and the renaming of a
/// damaged file must use the same place.
enum StorePath {
    /// The path with all symbolic links resolved; the file itself need not exist.
    ///
    /// - Throws: an error that names the kind of file if it is not a regular one.
    static func resolve(_ path: String) throws(StoreError) -> String {
        var path = path
        // The kernel follows as many links.
        for _ in 0..<40 {
            if let resolved = real(path) {
                try checkKind(of: resolved, namedAs: path)
                return resolved
            }
            guard errno == ENOENT else { throw cannotOpen(path, errno) }
            let (folder, name) = split(path)
            guard let folder = real(folder) else { throw cannotOpen(path, errno) }
            path = folder == "/" ? "/\(name)" : "\(folder)/\(name)"
            // For a link to a file that does not exist yet, the file is created at the target.
            guard let target = target(ofLink: path) else { return path }
            path = target.hasPrefix("/") ? target : split(path).folder + "/" + target
        }
        throw cannotOpen(path, ELOOP)
    }

    private static func checkKind(of path: String, namedAs name: String) throws(StoreError) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw cannotOpen(name, errno) }
        let reason =
            switch status.st_mode & S_IFMT {
            case S_IFREG: nil as String?
            case S_IFDIR: "it is a folder; name a file in it, such as \(name)/larder.db"
            case S_IFIFO: "it is a named pipe; name a file"
            case S_IFSOCK: "it is a socket; name a file"
            default: "it is a device; name a file"
            }
        if let reason { throw .cannotOpen(path: name, reason: reason) }
    }

    private static func real(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    private static func target(ofLink path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
    }

    private static func split(_ path: String) -> (folder: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        let folder = path[..<slash]
        return (folder.isEmpty ? "/" : String(folder), String(path[path.index(after: slash)...]))
    }

    private static func cannotOpen(_ path: String, _ code: Int32) -> StoreError {
        .cannotOpen(path: path, reason: StoreError.reason(code))
    }
}

/// Sets who may read a store's files.
///
/// A configured group may read them (0640). Without a group, a store in a folder that others may enter is readable only by its
/// owner (0600); in any other folder, the folder and the umask decide.
struct StoreAccess {
    private let path: String
    private let group: (name: String, id: gid_t)?

    /// Looks up the group; throws if this machine does not have it.
    init(path: String, group: String?) throws(StoreError) {
        self.path = path
        guard let group else {
            self.group = nil
            return
        }
        var entry = Glibc.group()
        var result: UnsafeMutablePointer<Glibc.group>?
        var room = [CChar](repeating: 0, count: 16 * 1024)
        getgrnam_r(group, &entry, &room, room.count, &result)
        guard result != nil else { throw .group(path: path, name: group, reason: "this machine does not have it") }
        self.group = (group, entry.gr_gid)
    }

    /// Restricts access to the owner, before SQLite creates files beside the database: these get its mode, but not its
    /// group.
    func narrow() {
        guard group != nil || isOpenFolder else { return }
        for file in files { chmod(file, 0o600) }
    }

    func widen() throws(StoreError) {
        guard let group else { return }
        for file in files {
            guard chown(file, uid_t.max, group.id) == 0, chmod(file, 0o640) == 0 else {
                let code = errno
                // A file that does not exist needs no access.
                if code == ENOENT { continue }
                let isForeign = code == EPERM
                let reason = isForeign ? "the user that runs Larder is not a member of it" : StoreError.reason(code)
                throw .group(path: path, name: group.name, reason: reason)
            }
        }
    }

    /// The database is last: it becomes readable only after the others.
    private var files: [String] { ["-wal", "-shm", ""].map { path + $0 } }

    private var isOpenFolder: Bool {
        var status = stat()
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        return stat(folder, &status) == 0 && status.st_mode & 0o001 != 0
    }
}
