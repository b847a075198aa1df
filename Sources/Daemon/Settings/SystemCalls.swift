import Glibc

/// The system's words for an error number.
package func systemMessage(_ code: Int32) -> String {
    String(cString: strerror(code))
}

/// Writes all bytes to a file; blocks.
///
/// - Returns: the number of bytes written, and the error number if it ended early; 0 for none.
package func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> (written: Int, code: Int32) {
    var written = 0
    while written < bytes.count {
        let count = Glibc.write(descriptor, bytes.baseAddress! + written, bytes.count - written)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return (written, count < 0 ? errno : EIO) }
        written += count
    }
    return (written, 0)
}
