import Glibc

/// Who may read a store's files.
///
/// A group that is named reads them (0640). Without one, a store in a folder that others may enter is its owner's alone
/// (0600); in any other folder that and the umask decide.
struct StoreAccess {
    private let path: String
    private let group: (name: String, id: gid_t)?

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

    /// Before SQLite makes files beside the database: it gives them the database's mode, but not its group.
    func narrow() {
        guard group != nil || isOpenFolder else { return }
        for file in files { chmod(file, 0o600) }
    }

    /// Once all files are there.
    func widen() throws(StoreError) {
        guard let group else { return }
        for file in files {
            guard chown(file, uid_t.max, group.id) == 0, chmod(file, 0o640) == 0 else {
                let code = errno
                // One that is not there has nothing to be read.
                if code == ENOENT { continue }
                let reason =
                    code == EPERM
                    ? "the user that runs Larder is not a member of it" : String(cString: strerror(code))
                throw .group(path: path, name: group.name, reason: reason)
            }
        }
    }

    /// The database comes last: until then nobody who may not read the others can read it.
    private var files: [String] { ["-wal", "-shm", ""].map { path + $0 } }

    private var isOpenFolder: Bool {
        var status = stat()
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        return stat(folder, &status) == 0 && status.st_mode & 0o001 != 0
    }
}
