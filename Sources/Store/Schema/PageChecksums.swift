import GRDB
import GRDBSQLite
import Glibc
import Synchronization

/// Maintains a checksum at the end of each page of the database file.
///
/// It is computed when a page is written, and compared when it is read; a page with a wrong one gives
/// `SQLITE_IOERR_DATA`. SQLite reads and writes through this layer over its own VFS. The WAL is not covered: its frames
/// have their own checksums, which SQLite compares when it opens a leftover WAL.
///
/// The checksum is zero in memory and in the WAL. A page with a checksum of zero in the file was therefore copied from
/// the WAL by another program that closed the store last, after the daemon was killed. Such a page is an error until
/// `seal` has verified that this happened.
enum PageChecksums {
    /// The number of bytes for it at the end of a page; SQLite leaves them free.
    static let reserved: Int32 = 8
    /// SQLite's code for a page that does not match its checksum.
    static let mismatch = SQLITE_IOERR | 32 << 8

    // A macro that Swift does not import.
    private static let shortRead = SQLITE_IOERR | 2 << 8

    /// Installs the layer between SQLite and the files; runs once per process, before the first file is opened.
    static let install: Void = {
        guard let system = sqlite3_vfs_find(nil) else { preconditionFailure("SQLite has no VFS") }
        let layer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        layer.initialize(to: system.pointee)
        layer.pointee.zName = UnsafePointer(strdup("larder"))
        layer.pointee.pNext = nil
        layer.pointee.szOsFile = Int32(File.size) + system.pointee.szOsFile
        layer.pointee.xOpen = { _, name, file, flags, outFlags in open(name, file, flags, outFlags) }
        // All other functions concern file names and stay the same. The system's functions expect the system's data.
        layer.pointee.pAppData = system.pointee.pAppData
        below = system
        sqlite3_vfs_register(layer, 1)
    }()

    // Written once by `install`, before any file is opened.
    nonisolated(unsafe) private static var below: UnsafeMutablePointer<sqlite3_vfs>!

    /// An open database file: the part that SQLite sees, the state of its pages, and then the system's own file.
    private struct File {
        var base = sqlite3_file()
        /// The page size in bytes; 0 if the file has no checksums, or its header has not been read.
        var pageSize: Int32 = 0
        /// Whether pages with a checksum of zero are accepted.
        var takesUnsealed = false
        /// Whether checksums are not compared, because the whole file is about to be replaced.
        var isUnread = false

        static var size: Int { (MemoryLayout<File>.size + 15) & ~15 }
    }

    private typealias Handle = UnsafeMutablePointer<sqlite3_file>

    private static func file(_ handle: Handle) -> UnsafeMutablePointer<File> {
        UnsafeMutableRawPointer(handle).assumingMemoryBound(to: File.self)
    }

    private static func system(_ handle: Handle?) -> Handle {
        (UnsafeMutableRawPointer(handle!) + File.size).assumingMemoryBound(to: sqlite3_file.self)
    }

    private static func open(
        _ name: UnsafePointer<CChar>?,
        _ handle: Handle?,
        _ flags: Int32,
        _ outFlags: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        guard let handle else { return SQLITE_CANTOPEN }
        guard flags & SQLITE_OPEN_MAIN_DB != 0 else { return below.pointee.xOpen(below, name, handle, flags, outFlags) }
        file(handle).initialize(to: File())
        let code = below.pointee.xOpen(below, name, system(handle), flags, outFlags)
        guard code == SQLITE_OK else { return code }
        file(handle).pointee.takesUnsealed =
            name.map { unsealed.withLock { [path = String(cString: $0)] in $0.contains(path) } } ?? false
        handle.pointee.pMethods = UnsafePointer(methods)
        return code
    }

    // Immutable after initialization.
    nonisolated(unsafe) private static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
        let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        methods.initialize(to: sqlite3_io_methods())
        // Version 3 would map the file into memory, which would bypass the comparison.
        methods.pointee.iVersion = 2
        methods.pointee.xClose = { system($0).pointee.pMethods.pointee.xClose(system($0)) }
        methods.pointee.xRead = { read($0!, $1!, $2, $3) }
        methods.pointee.xWrite = { write($0!, $1!, $2, $3) }
        methods.pointee.xTruncate = { system($0).pointee.pMethods.pointee.xTruncate(system($0), $1) }
        methods.pointee.xSync = { system($0).pointee.pMethods.pointee.xSync(system($0), $1) }
        methods.pointee.xFileSize = { system($0).pointee.pMethods.pointee.xFileSize(system($0), $1) }
        methods.pointee.xLock = { system($0).pointee.pMethods.pointee.xLock(system($0), $1) }
        methods.pointee.xUnlock = { system($0).pointee.pMethods.pointee.xUnlock(system($0), $1) }
        methods.pointee.xCheckReservedLock = { system($0).pointee.pMethods.pointee.xCheckReservedLock(system($0), $1) }
        methods.pointee.xFileControl = { handle, operation, argument in
            guard operation == comparing else {
                return system(handle).pointee.pMethods.pointee.xFileControl(system(handle), operation, argument)
            }
            file(handle!).pointee.isUnread = argument!.load(as: Int32.self) == 0
            return SQLITE_OK
        }
        methods.pointee.xSectorSize = { system($0).pointee.pMethods.pointee.xSectorSize(system($0)) }
        methods.pointee.xDeviceCharacteristics = {
            system($0).pointee.pMethods.pointee.xDeviceCharacteristics(system($0))
        }
        methods.pointee.xShmMap = { system($0).pointee.pMethods.pointee.xShmMap(system($0), $1, $2, $3, $4) }
        methods.pointee.xShmLock = { system($0).pointee.pMethods.pointee.xShmLock(system($0), $1, $2, $3) }
        methods.pointee.xShmBarrier = { system($0).pointee.pMethods.pointee.xShmBarrier(system($0)) }
        methods.pointee.xShmUnmap = { system($0).pointee.pMethods.pointee.xShmUnmap(system($0), $1) }
        return methods
    }()

    // The number of our file control. SQLite leaves numbers from 100 on to VFSs.
    private static let comparing: Int32 = 0x4c72

    /// Lets a connection read pages without comparing checksums, while all of them are being replaced.
    static func withoutComparing<Result>(in database: Database, _ work: () throws -> Result) rethrows -> Result {
        setComparing(false, in: database)
        defer { setComparing(true, in: database) }
        return try work()
    }

    /// Sets whether a connection compares checksums.
    ///
    /// One that fills a new file must not: SQLite may read a page beyond its end, which it has allocated but not yet written.
    static func setComparing(_ isComparing: Bool, in database: Database) {
        var isCompared: Int32 = isComparing ? 1 : 0
        sqlite3_file_control(database.sqliteConnection, "main", comparing, &isCompared)
    }

    // MARK: Pages

    private static func read(_ handle: Handle, _ buffer: UnsafeMutableRawPointer, _ count: Int32, _ offset: Int64)
        -> Int32
    {
        let system = system(handle)
        let pageSize = file(handle).pointee.pageSize
        guard !file(handle).pointee.isUnread else {
            return system.pointee.pMethods.pointee.xRead(system, buffer, count, offset)
        }
        if pageSize > 0, count != pageSize, count > 100 {
            // SQLite reads parts of pages for long values. A part is correct if the whole page is.
            let start = offset / Int64(pageSize) * Int64(pageSize)
            guard offset - start + Int64(count) <= Int64(pageSize) else { return mismatch }
            return withUnsafeTemporaryAllocation(byteCount: Int(pageSize), alignment: 8) { page in
                let code = read(handle, page.baseAddress!, pageSize, start)
                if code == SQLITE_OK {
                    buffer.copyMemory(from: page.baseAddress! + Int(offset - start), byteCount: Int(count))
                }
                return code
            }
        }
        let code = system.pointee.pMethods.pointee.xRead(system, buffer, count, offset)
        if offset == 0, count >= 100, code == SQLITE_OK { readHeader(buffer, of: handle) }
        guard count == file(handle).pointee.pageSize else { return code }
        // SQLite would treat missing bytes as zeros.
        guard code != shortRead else { return mismatch }
        guard code == SQLITE_OK else { return code }
        let trailer = buffer + Int(count - reserved)
        let kept = UInt64(littleEndian: trailer.loadUnaligned(as: UInt64.self))
        guard kept == checksum(buffer, count, at: offset) || kept == 0 && file(handle).pointee.takesUnsealed else {
            return mismatch
        }
        trailer.storeBytes(of: 0, as: UInt64.self)
        return code
    }

    private static func write(_ handle: Handle, _ buffer: UnsafeRawPointer, _ count: Int32, _ offset: Int64) -> Int32 {
        let system = system(handle)
        if offset == 0, count >= 100 { readHeader(buffer, of: handle) }
        guard count == file(handle).pointee.pageSize else {
            return system.pointee.pMethods.pointee.xWrite(system, buffer, count, offset)
        }
        // The checksum goes into a copy: the page that SQLite keeps has a checksum of zero.
        return withUnsafeTemporaryAllocation(byteCount: Int(count), alignment: 8) { page in
            page.copyMemory(from: UnsafeRawBufferPointer(start: buffer, count: Int(count)))
            let sum = checksum(buffer, count, at: offset).littleEndian
            (page.baseAddress! + Int(count - reserved)).storeBytes(of: sum, as: UInt64.self)
            return system.pointee.pMethods.pointee.xWrite(system, page.baseAddress, count, offset)
        }
    }

    private static func readHeader(_ bytes: UnsafeRawPointer, of handle: Handle) {
        let header = FileHeader([UInt8](UnsafeRawBufferPointer(start: bytes, count: FileHeader.size)))
        file(handle).pointee.pageSize = header.map { $0.hasChecksums ? Int32($0.pageSize) : 0 } ?? 0
    }

    /// The checksum of a page without its last bytes; never 0, and dependent on the page's position.
    private static func checksum(_ page: UnsafeRawPointer, _ count: Int32, at offset: Int64) -> UInt64 {
        var sum = UInt64(bitPattern: offset) ^ 0x9e37_79b9_7f4a_7c15
        var place = 0
        let end = Int(count - reserved)
        while place < end {
            // Each step is reversible: a single different word always gives a different sum.
            sum =
                (sum ^ UInt64(littleEndian: page.loadUnaligned(fromByteOffset: place, as: UInt64.self)))
                &* 0x9fb2_1c65_1e98_df25
            sum ^= sum >> 32
            place += 8
        }
        return sum == 0 ? 1 : sum
    }

    /// Leaves the end of each page free in a file that is created or rewritten.
    static func reserve(in database: Database) {
        var count = reserved
        sqlite3_file_control(database.sqliteConnection, "main", SQLITE_FCNTL_RESERVE_BYTES, &count)
    }

    // MARK: Pages copied by another program

    private static let unsealed = Mutex<Set<String>>([])

    /// Opens a file so that pages without a checksum are accepted.
    static func believingUnsealed<Result>(at path: String, _ work: () throws -> Result) rethrows -> Result {
        // SQLite opens files by their resolved names.
        let name = realpath(path, nil).map { name in
            defer { free(name) }
            return String(cString: name)
        }
        guard let name else { return try work() }
        _ = unsealed.withLock { $0.insert(name) }
        defer { _ = unsealed.withLock { $0.remove(name) } }
        return try work()
    }

    /// Adds checksums to pages without one, or to all pages of a new file; reads every page.
    ///
    /// Use it only for a file that another program closed last, or for a new one. The file must not be open.
    static func seal(_ path: String, isNew: Bool = false) throws(StoreError) {
        let descriptor = Glibc.open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { Glibc.close(descriptor) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65536, alignment: 8)
        defer { buffer.deallocate() }
        guard let header = FileHeader(of: descriptor), header.hasChecksums, header.pageSize >= 512 else { return }
        let pageSize = Int32(header.pageSize)
        let trailer = Int(pageSize - reserved)
        var offset: Int64 = 0
        while pread(descriptor, buffer.baseAddress, Int(pageSize), Int(offset)) == Int(pageSize) {
            if isNew || buffer.loadUnaligned(fromByteOffset: trailer, as: UInt64.self) == 0 {
                var sum = checksum(buffer.baseAddress!, pageSize, at: offset).littleEndian
                guard pwrite(descriptor, &sum, 8, Int(offset) + trailer) == 8 else {
                    throw .cannotOpen(path: path, reason: StoreError.reason())
                }
            }
            offset += Int64(pageSize)
        }
        guard fsync(descriptor) == 0 else { throw .cannotOpen(path: path, reason: StoreError.reason()) }
    }
}

extension Schema {
    /// The user version of a file whose pages have checksums: "chk8"; beside the reserved bytes, so that neither is
    /// damaged unnoticed.
    static let checksummed: Int64 = 0x6368_6b38

    static func hasChecksums(_ database: Database) throws -> Bool {
        try database.query("PRAGMA user_version").integer() == checksummed
    }

    /// Records that a file's pages have checksums, if its header reserves space for them.
    ///
    /// - Parameter file: must stay open as long as SQLite has the file open: closing it would release SQLite's locks.
    static func recordChecksums(in database: Database, file: Int32) throws {
        guard FileHeader(of: file)?.reservesChecksums == true else { return }
        try database.execute(sql: "PRAGMA user_version = \(checksummed)")
    }
}
