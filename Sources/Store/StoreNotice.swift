/// Something the store did when it was opened, or later on its own, that the operator should know.
public enum StoreNotice: Sendable, Equatable, CustomStringConvertible {
    /// The file was damaged; it is kept at `path`, and a new one was started.
    case corruptFileSetAside(path: String, reason: String)
    /// An earlier Larder wrote the store's file in another format; it is kept as `aside`, and a new one was started.
    case earlierFileSetAside(path: String, aside: String)
    /// The file was larger than files of this process may be; it is kept as `aside`, and a new one was started.
    case largeFileSetAside(path: String, aside: String, bytes: Int64, limit: Int64)
    /// Writes were under way when the daemon last ended; the documents that they may have changed were dropped.
    case suspectsDropped(documents: Int)
    /// A model has a newer version than its objects in the file; its migrations are applied to them.
    case modelMigrated(upstream: UpstreamKey, model: String, from: Int, to: Int)
    /// Members that may have been stored are now declared secret; everything from the upstream is erased.
    case secretsErased(upstream: UpstreamKey)
    /// A part of the file is damaged and counts as not stored.
    case damaged(reason: String)
    /// The writer found the damage, and emptied the file.
    case damagedFileEmptied(reason: String)
    /// Newly secret members could not be erased; Larder tries again.
    case secretsNotErased(reason: String)
    /// The disk is full, read-only or failing; the store does not grow, and may be unable to write at all.
    case writesFail(reason: String)
    case writesWork
    /// Another process locks the file, so that nothing can be written.
    case lockedOut(by: String)
    case lockGone
    /// Another process locks the file for moments, so often that the writer has waited for a second altogether.
    case lockedAgainAndAgain(by: String)
    /// The store's file was moved, removed or replaced while in use.
    case fileMoved(path: String)

    public var isRelief: Bool { self == .writesWork || self == .lockGone }

    public var description: String {
        switch self {
        case .corruptFileSetAside(let path, let reason):
            "the store was damaged (\(reason)); it was set aside as \(path), and an empty one was started"
        case .earlierFileSetAside(let path, let aside):
            "the store \(path) was written by an earlier Larder, in a format that this one does not read; it was set aside as "
                + "\(aside), and an empty one was started, which fills again; read the old one with sqlite3, or delete it"
        case .largeFileSetAside(let path, let aside, let bytes, let limit):
            "the store \(path) has \(bytes) bytes, and no file of this process may have more than \(limit) (LimitFSIZE); it was "
                + "set aside as \(aside), and an empty one was started; to use it again, raise the limit and rename it"
        case .damaged(let reason):
            "the store is damaged (\(reason)); the damaged part counts as not stored, and is fetched again"
        case .damagedFileEmptied(let reason):
            "the store is damaged (\(reason)), and could not be written; it was emptied, and fills again"
        case .suspectsDropped(let documents):
            "writes were under way when Larder last stopped; \(documents) responses that they may have changed were dropped"
        case .modelMigrated(let upstream, let model, let from, let to):
            "objects of model \(model) of upstream \(upstream) were stored at version \(from); "
                + "they are read as of version \(to) from now on"
        case .secretsErased(let upstream):
            "members of upstream \(upstream) are now declared secret; its stored responses are being erased"
        case .secretsNotErased(let reason):
            "members that are now declared secret could not be erased from the store; Larder tries again: \(reason)"
        case .writesFail(let reason):
            "the store cannot grow: the disk is full or failing (\(reason)). Stored responses are served; new ones that do not "
                + "fit are passed on without being stored"
        case .writesWork: "the disk has room for the store again"
        case .lockedOut(let holder):
            "nothing can be written to the store: \(holder) keeps it locked. Stored responses are served, new ones are passed on "
                + "without being stored, and writes to upstreams are refused, until that process ends or lets go"
        case .lockGone: "the store can be written again"
        case .lockedAgainAndAgain(let holder):
            "\(holder) locks the store again and again, so that responses are stored late and writes to upstreams wait"
        case .fileMoved(let path):
            "the file of the store \(path) was moved, removed or replaced while it is in use: anything stored from now on will "
                + "be lost; restart Larder"
        }
    }
}
