import Glibc

/// The header of a database file (SQLite's file format, §1.3).
struct FileHeader {
    static let magic = Array("SQLite format 3\0".utf8)
    static let size = 100

    private let bytes: [UInt8]

    /// Nil for bytes that do not begin a database.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.size, bytes.starts(with: Self.magic) else { return nil }
        self.bytes = bytes
    }

    /// Reads the header of an open file; nil if it has none.
    init?(of descriptor: Int32) {
        var bytes = [UInt8](repeating: 0, count: Self.size)
        guard pread(descriptor, &bytes, bytes.count, 0) == bytes.count else { return nil }
        self.init(bytes)
    }

    subscript(offset: Int) -> UInt8 { bytes[offset] }

    /// The number in the four bytes at an offset.
    func number(at offset: Int) -> Int64 { bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int64($1) } }

    var pageSize: Int64 {
        let size = Int64(bytes[16]) << 8 | Int64(bytes[17])
        // 65536 does not fit into two bytes.
        return size == 1 ? 65_536 : size
    }

    /// Whether the end of each page is left free for its checksum.
    var reservesChecksums: Bool { Int32(bytes[20]) == PageChecksums.reserved }

    /// Whether pages have checksums; the header says so in two places, in case one is damaged.
    var hasChecksums: Bool { reservesChecksums || number(at: 60) == Schema.checksummed }
}
