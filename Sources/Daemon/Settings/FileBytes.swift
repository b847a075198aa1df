import Glibc

/// The system's words for an error number.
package func systemMessage(_ code: Int32) -> String { String(cString: strerror(code)) }

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

package func pathBeside(_ file: String, _ name: String) -> String {
    (file.lastIndex(of: "/").map { String(file[...$0]) } ?? "") + name
}

/// Makes a folder and those above it, for their owner only; those that exist stay as they are.
///
/// - Returns: the folder that could not be made, and the error number; nil if all are there.
package func makeFolders(_ path: String) -> (folder: String, code: Int32)? {
    var folder = ""
    for component in path.split(separator: "/", omittingEmptySubsequences: false) {
        folder += component
        defer { folder += "/" }
        if folder.isEmpty || mkdir(folder, 0o700) == 0 || errno == EEXIST { continue }
        return (folder, errno)
    }
    return nil
}

package struct FileBytesError: Error, CustomStringConvertible {
    let path: String
    package let reason: String
    /// The error number of the system call that failed; 0 if none has.
    var code: Int32 = 0

    package var isAbsent: Bool { code == ENOENT || code == ENOTDIR }
    package var description: String { "\(path): \(reason)" }
}

package enum FileBytes {
    package struct Content: Sendable {
        package let bytes: [UInt8]
        package let mode: UInt32
        /// The user id of the owner.
        package let owner: UInt32
    }

    static let secretLimit = 64 << 10

    /// Reads a file of at most `limit` bytes, which may also be a pipe.
    ///
    /// - Parameter isRegular: Whether it must be a regular file itself: no pipe, and no link to another file.
    package static func read(_ path: String, limit: Int, isRegular: Bool = false)
        throws(FileBytesError) -> Content
    {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (isRegular ? O_NOFOLLOW : 0))
        guard file >= 0 else { throw failure(path, errno) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw failure(path, errno) }
        if isRegular, status.st_mode & S_IFMT != S_IFREG {
            throw FileBytesError(path: path, reason: "this is not a regular file")
        }
        if status.st_mode & S_IFMT == S_IFDIR { throw failure(path, EISDIR) }
        let bytes = try drain(file, path, limit: limit, expecting: Int(status.st_size))
        return Content(bytes: bytes, mode: status.st_mode & 0o777, owner: status.st_uid)
    }

    /// Reads a file with a secret that a user has put there, which may be a link; throws if every user of the machine may read it.
    static func readSecret(_ path: String, called name: String) throws(InvalidValue) -> [UInt8] {
        let file: Content
        do {
            file = try read(path, limit: secretLimit)
        } catch { throw InvalidValue("\(name) cannot be read: \(error)") }
        guard file.mode & 0o007 == 0 else {
            throw InvalidValue("every user of this machine may read \"\(path)\"; run: chmod o= \"\(path)\"")
        }
        return file.bytes
    }

    /// Reads a regular file below a folder, by its name relative to that.
    ///
    /// Neither the file nor a folder on the way may be a link, and no name leads upwards: so nothing elsewhere is read, whoever
    /// has made the folder.
    package static func read(_ name: String, below folder: String, limit: Int) throws(FileBytesError) -> [UInt8] {
        let path = "\(folder)/\(name)"
        func refusal(_ reason: String) -> FileBytesError {
            FileBytesError(path: path, reason: reason)
        }
        let parts = name.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard !name.utf8.contains(0), !parts.contains(where: { ["", ".", ".."].contains($0) })
        else { throw refusal("this name leads out of the folder") }
        var parent = open(folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else { throw failure(folder, errno) }
        defer { close(parent) }
        var status = stat()
        for (index, part) in parts.enumerated() {
            guard fstatat(parent, part, &status, AT_SYMLINK_NOFOLLOW) == 0 else { throw failure(path, errno) }
            if status.st_mode & S_IFMT == S_IFLNK {
                throw refusal(
                    "\(index == parts.count - 1 ? "this" : "\"\(part)\"") is a symbolic link; put the file itself there"
                )
            }
            guard index < parts.count - 1 else { break }
            let next = openat(parent, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
            guard next >= 0 else { throw failure(path, errno) }
            close(parent)
            parent = next
        }
        let file = openat(parent, parts[parts.count - 1], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard file >= 0 else { throw failure(path, errno) }
        defer { close(file) }
        guard fstat(file, &status) == 0 else { throw failure(path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw refusal("this is not a regular file") }
        return try drain(file, path, limit: limit, expecting: Int(status.st_size))
    }

    package static func readStandardInput(limit: Int) throws(FileBytesError) -> [UInt8] {
        try drain(0, "standard input", limit: limit)
    }

    private static func drain(_ file: Int32, _ path: String, limit: Int, expecting size: Int = 0)
        throws(FileBytesError) -> [UInt8]
    {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(min(size, limit))
        // Most files are read into a buffer of their size.
        var buffer = [UInt8](repeating: 0, count: min(max(size + 1, 4 << 10), 64 << 10))
        while true {
            let count = Glibc.read(file, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure(path, errno) }
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
            guard bytes.count <= limit else {
                throw FileBytesError(path: path, reason: "larger than \(Units.text(size: limit))", code: EFBIG)
            }
        }
    }

    private static func failure(_ path: String, _ code: Int32) -> FileBytesError {
        FileBytesError(path: path, reason: PermissionRemedy.reason(code, for: path), code: code)
    }
}

/// What a user can do who may not read a file.
package enum PermissionRemedy {
    /// Why a file could not be read; if its permissions are the reason, with the remedy.
    package static func reason(_ code: Int32, for path: String) -> String {
        let remedy = code == EACCES ? text(for: path) : nil
        return [systemMessage(code), remedy].compactMap(\.self).joined(separator: "; ")
    }

    /// Names the user and the group that may read the file; nil if the reason is not in its mode, or that of a folder above.
    private static func text(for path: String) -> String? {
        guard let (barrier, bits) = barrier(to: path) else { return nil }
        var status = stat()
        guard stat(barrier, &status) == 0 else { return nil }
        let subject = barrier == path ? "it" : "the folder \(barrier)"
        let owner = getpwuid(status.st_uid).map { String(cString: $0.pointee.pw_name) } ?? "\(status.st_uid)"
        let group = getgrgid(status.st_gid).map { String(cString: $0.pointee.gr_name) } ?? "\(status.st_gid)"
        guard status.st_uid != geteuid() else {
            return
                "\(subject) belongs to you, but its mode keeps you out: chmod u+\(bits == 1 ? "x" : "r") '\(barrier)'"
        }
        // Nobody should join the group root for this.
        guard status.st_mode & (bits << 3) != 0, status.st_gid != 0, !isMember(of: status.st_gid) else {
            return "\(subject) belongs to the user \(owner): run this as \(owner), for example with sudo"
        }
        return "\(subject) belongs to the user \(owner) and the group \(group): run this with sudo, or join the group "
            + "(sudo adduser \(currentUser) \(group), then log in again)"
    }

    /// The first folder on the way that this user may not search, or else the file; with the bit that others would need.
    private static func barrier(to path: String) -> (String, mode_t)? {
        for index in path.indices.dropFirst() where path[index] == "/" {
            let folder = String(path[..<index])
            if access(folder, X_OK) != 0, errno == EACCES { return (folder, 1) }
        }
        return access(path, R_OK) != 0 && errno == EACCES ? (path, 4) : nil
    }

    private static var currentUser: String {
        getpwuid(geteuid()).map { String(cString: $0.pointee.pw_name) } ?? "\(geteuid())"
    }

    private static func isMember(of group: gid_t) -> Bool {
        var groups = [gid_t](repeating: 0, count: max(0, Int(getgroups(0, nil))))
        return getegid() == group || getgroups(Int32(groups.count), &groups) > 0 && groups.contains(group)
    }
}
