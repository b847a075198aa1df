import Glibc

/// Sets who may read a store's files.
///
/// A configured group may read them (0640). Without a group, a store in a folder that others may enter is readable only by its
/// owner (0600); in any other folder, the folder and the umask decide.
struct StoreAccess {
    private let path: String
    private let group: (name: String, id: gid_t)?

    /// Looks up the group.
    ///
    /// - Throws: if this machine does not have the group.
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

    /// Restricts access to the owner.
    ///
    /// Call it before SQLite creates files beside the database: these get the database's mode, but not its group.
    func narrow() {
        guard group != nil || isOpenFolder else { return }
        for file in files { chmod(file, 0o600) }
    }

    /// Gives the group access; call it once all files exist.
    func widen() throws(StoreError) {
        guard let group else { return }
        for file in files {
            guard chown(file, uid_t.max, group.id) == 0, chmod(file, 0o640) == 0 else {
                let code = errno
                // A file that does not exist needs no access.
                if code == ENOENT { continue }
                let reason =
                    code == EPERM
                    ? "the user that runs Larder is not a member of it" : String(cString: strerror(code))
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
