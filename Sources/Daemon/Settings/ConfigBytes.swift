import Glibc

/// Why a file could not be read.
package struct ConfigBytesError: Error, CustomStringConvertible {
    let path: String
    let reason: String
    /// Whether there is no such file.
    let isAbsent: Bool

    package var description: String { "\(path): \(reason)" }
}

/// A file, read at once.
package enum ConfigBytes {
    /// Reads a plain file of at most `limit` bytes.
    package static func read(_ path: String, limit: Int) throws(ConfigBytesError) -> (bytes: [UInt8], mode: UInt32) {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw failure(path, errno) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw failure(path, errno) }
        if status.st_mode & S_IFMT == S_IFDIR { throw failure(path, EISDIR) }
        return (try drain(file, path, limit: limit), status.st_mode & 0o7777)
    }

    /// Reads standard input to its end.
    package static func readStandardInput(limit: Int) throws(ConfigBytesError) -> [UInt8] {
        try drain(0, "standard input", limit: limit)
    }

    private static func drain(_ file: Int32, _ path: String, limit: Int) throws(ConfigBytesError) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = Glibc.read(file, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure(path, errno) }
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
            guard bytes.count <= limit else {
                throw ConfigBytesError(path: path, reason: "larger than \(Units.text(size: limit))", isAbsent: false)
            }
        }
    }

    private static func failure(_ path: String, _ code: Int32) -> ConfigBytesError {
        ConfigBytesError(path: path, reason: systemMessage(code), isAbsent: code == ENOENT || code == ENOTDIR)
    }
}

/// The system's words for an error number.
package func systemMessage(_ code: Int32) -> String {
    String(cString: strerror(code))
}
