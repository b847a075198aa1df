/// What operators want to know of a store at run time.
public struct StoreStatistics: Sendable, Equatable {
    /// Bytes of the database file.
    public var fileBytes: Int64 = 0
    /// Bytes of the WAL.
    public var walBytes: Int64 = 0
    /// What waits to be written.
    public var queued = 0
    /// Commits since opening.
    public var commits: Int64 = 0
    /// Batches that failed since opening.
    public var failures: Int64 = 0
    /// How often something in the file was found damaged since opening.
    public var damaged: Int64 = 0
    /// Documents evicted since opening.
    public var evicted: Int64 = 0
    /// What went wrong last; nil once a commit has succeeded again.
    public var trouble: String?

    /// Statistics of a store that has just been opened.
    public init() {}
}
