import HTTPSemantics

/// The roles that a byte may have, by the grammars of RFC 9110 and 9112.
enum ByteClass {
    /// `tchar` (RFC 9110 §5.6.2): methods and field names.
    static let token: UInt8 = 1
    /// Visible ASCII except `#`: request targets; raw 8-bit bytes are not allowed there.
    static let target: UInt8 = 2
    /// Host and port (RFC 3986 §3.2), without the comma that would join two.
    static let host: UInt8 = 4
    /// Field values: visible ASCII, obs-text, space and tab.
    static let value: UInt8 = 8

    /// The classes of each byte, 256 entries that live as long as the process.
    // Safe: written once, before it is shared.
    nonisolated(unsafe) static let table: UnsafePointer<UInt8> = {
        let table = UnsafeMutablePointer<UInt8>.allocate(capacity: 256)
        table.initialize(repeating: 0, count: 256)
        func mark(_ bytes: some Sequence<UInt8>, _ kind: UInt8) {
            for byte in bytes { table[Int(byte)] |= kind }
        }
        let alphanumerics = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".utf8)
        mark(alphanumerics, host)
        mark((0...0xFF).filter(FieldSyntax.isTokenByte), token)
        mark("-._~!$&'()*+;=%:[]".utf8, host)
        mark((0x21...0x7E).filter { $0 != UInt8(ascii: "#") }, target)
        mark(0x20...0x7E, value)
        mark(0x80...0xFF, value)
        mark([0x09], value)
        return UnsafePointer(table)
    }()
}
