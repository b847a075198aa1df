import Glibc

/// Resolves the path of a store's file.
///
/// SQLite keeps the WAL and its index beside the target of a symbolic link. The lock, the budget, and the renaming of a damaged
/// file must use the same place.
enum StorePath {
    /// The path with all symbolic links resolved.
    ///
    /// The file itself need not exist.
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
        let reason: String
        switch status.st_mode & S_IFMT {
        case S_IFREG: return
        case S_IFDIR: reason = "it is a folder; name a file in it, such as \(name)/larder.db"
        case S_IFIFO: reason = "it is a named pipe; name a file"
        case S_IFSOCK: reason = "it is a socket; name a file"
        default: reason = "it is a device; name a file"
        }
        throw .cannotOpen(path: name, reason: reason)
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
        .cannotOpen(path: path, reason: String(cString: strerror(code)))
    }
}
