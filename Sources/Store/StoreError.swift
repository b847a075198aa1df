import Glibc

/// Why the store could not do what was requested.
public enum StoreError: Error, Sendable, Equatable {
    /// Another process, with this admin address, has the store open.
    case locked(path: String, pid: Int32?, admin: String? = nil)
    case newerSchema(path: String, found: String, known: String)
    /// Objects that are in the file were stored under a newer version of a model than the configuration declares.
    case newerModel(path: String, upstream: UpstreamKey, model: String, found: Int, declared: Int)
    case cannotOpen(path: String, reason: String)
    /// The files cannot be given to the group that is to read them.
    case group(path: String, name: String, reason: String)
    /// The store's own bound is reached; or, on opening, the disk is full.
    case full(String)
    /// The disk accepts no writes: it is full, read-only or failing; a `StoreNotice` reports when that begins and ends.
    case unwritable(String)
    /// Another process locks the file; a `StoreNotice` reports when that begins and ends.
    case lockedOut(String)
    case corrupt(String)
    case earlierFormat
    /// Too many jobs are waiting to be written.
    case queueFull
    /// The request cannot be fulfilled as given, or not now; the reason says what to do.
    case refused(String)
    case closed
    case sqlite(code: Int32, message: String)
}

extension StoreError {
    /// The system's words for an error number, by default that of the last call.
    static func reason(_ code: Int32 = errno) -> String { String(cString: strerror(code)) }

    /// Why a file cannot be opened or made, after the call that failed; if another user owns it or its folder, with the remedy.
    static func reason(opening path: String) -> String {
        let code = errno
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        let barrier = access(path, F_OK) == 0 ? path : folder
        var status = stat()
        guard code == EACCES || code == EPERM, stat(barrier, &status) == 0, status.st_uid != geteuid()
        else { return "\(path): \(reason(code))" }
        return
            "\(path): \(reason(code)): \(barrier) belongs to the user \(status.st_uid), and Larder runs as the user \(geteuid()) "
            + "in the group \(getegid()); run it as that user, or give the folder to this one: chown -R \(geteuid()) '\(folder)'"
    }
}

extension StoreError: CustomStringConvertible {
    /// Describes errors to the person who runs the daemon.
    public var description: String {
        switch self {
        case .locked(let path, let pid, let admin):
            "the store \(path) is in use by " + (pid.map { "process \($0)" } ?? "another process")
                + (admin.map { " (admin side: \($0))" } ?? "")
                + "; stop that one, or give this one another file with --store"
        case .newerSchema(let path, let found, let known):
            "the store \(path) was written by a newer Larder (schema \(found), this one knows \(known)); "
                + "update Larder, or give it another file with --store"
        case .newerModel(let path, let upstream, let model, let found, let declared):
            "the store \(path) holds objects of model \(model) of upstream \(upstream) at version \(found), and the "
                + "configuration declares version \(declared); use the configuration that the store was filled with, "
                + "raise the model's version again, remove these objects first (larder clean --model), or give this one another "
                + "file with --store"
        case .cannotOpen(let path, let reason): "the store \(path) cannot be opened: \(reason)"
        case .group(let path, let name, let reason):
            "the store \(path) cannot be given to the group \"\(name)\" (store.group): \(reason)"
        case .full(let reason): "the store has no room: \(reason)"
        case .unwritable(let reason):
            "nothing can be written to the store: \(reason); make room on its disk, or see what is wrong with it"
        case .lockedOut(let reason):
            "nothing can be written to the store: \(reason); try again when that process has ended"
        case .corrupt(let reason): "the store is damaged: \(reason)"
        case .earlierFormat: "the store was written by an earlier Larder, in a format that this one does not read"
        case .queueFull: "too much is waiting to be written to the store"
        case .refused(let reason): reason
        case .closed: "the store is closed"
        case .sqlite(let code, let message): "SQLite error \(code): \(message)"
        }
    }
}
