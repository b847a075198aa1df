import Glibc

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
