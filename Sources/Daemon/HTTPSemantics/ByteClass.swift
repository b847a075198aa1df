/// What a byte may be part of, by the grammars of RFC 9110 and 9112.
package struct ByteClass: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// `tchar` (RFC 9110 §5.6.2): methods and field names.
    package static let token = ByteClass(rawValue: 1)
    /// Visible ASCII but `#`: request targets.
    ///
    /// Raw 8-bit bytes are not allowed there.
    package static let target = ByteClass(rawValue: 2)
    /// What a host and a port consist of (RFC 3986 §3.2), without the comma that would join two.
    package static let host = ByteClass(rawValue: 4)
    /// Field values: visible ASCII, obs-text, space and tab.
    package static let value = ByteClass(rawValue: 8)

    /// The classes of each byte, 256 entries that live as long as the process.
    // Unsafe in name only: written once, before anybody sees it.
    package nonisolated(unsafe) static let table: UnsafePointer<UInt8> = {
        let table = UnsafeMutablePointer<UInt8>.allocate(capacity: 256)
        table.initialize(repeating: 0, count: 256)
        func mark(_ bytes: some Sequence<UInt8>, _ kind: ByteClass) {
            for byte in bytes { table[Int(byte)] |= kind.rawValue }
        }
        let alphanumerics = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".utf8)
        mark(alphanumerics, .host)
        mark((0...0xFF).filter(FieldSyntax.isTokenByte), .token)
        mark("-._~!$&'()*+;=%:[]".utf8, .host)
        mark((0x21...0x7E).filter { $0 != UInt8(ascii: "#") }, .target)
        mark(0x20...0x7E, .value)
        mark(0x80...0xFF, .value)
        mark([0x09], .value)
        return UnsafePointer(table)
    }()
}
