public import Mapping

/// The settings of a store.
public struct StoreConfiguration: Sendable {
    /// The database file; its folder must exist.
    var path: String
    var maximumFileBytes: Int64
    /// How long the first job of a batch waits for others.
    var batchDelay: Duration
    /// How many documents and observations may wait to be written.
    var queueLimit = 1024
    /// How many bytes of bodies may wait to be written.
    var queueBytes: Int
    /// The maximum number of objects in one body; a body with more is stored as received.
    var objectLimit: Int
    var readers: Int
    var lag: Lag
    /// The lag of upstreams with their own setting.
    public var lags: [UpstreamKey: Lag] = [:]
    public var models: [UpstreamKey: Models]
    var time = TimeSource.system
    /// The size of a database page in bytes; applies only to new files.
    var pageSize = 8192
    /// The group that may read the files; nil for only their owner, or everybody who may enter the folder.
    public var group: String?
    /// After this many new principals, those without data are forgotten.
    var unusedPrincipals: Int64 = 4096
    /// How many changes of objects the journal keeps; 0 for no journal.
    var changes: Int64
    /// Receives notices of what the store does on its own while it is open; any thread.
    public var notify: @Sendable (StoreNotice) -> Void = { _ in }
    /// Receives a report of each commit; writer's thread.
    public var committed: @Sendable (CommitReport) -> Void = { _ in }
    /// Called on the writer's thread at the steps of each commit, for tests; the commit continues when it returns.
    public var commitStep: (@Sendable (CommitStep) -> Void)?

    /// Creates a configuration; what the daemon's config sets has its default there.
    public init(
        path: String,
        maximumFileBytes: Int64,
        batchDelay: Duration,
        queueBytes: Int,
        objectLimit: Int,
        readers: Int,
        lag: Lag,
        changes: Int64,
        models: [UpstreamKey: Models] = [:]
    ) {
        (self.path, self.maximumFileBytes, self.batchDelay) = (path, maximumFileBytes, batchDelay)
        (self.queueBytes, self.objectLimit, self.readers) = (queueBytes, objectLimit, readers)
        (self.lag, self.changes, self.models) = (lag, changes, models)
    }
}

/// A step of a commit.
public enum CommitStep: Sendable {
    /// All is written, and memory is marked; readers still find the former state.
    case marked
    /// Readers find the new state; memory, streams and waiting callers are not notified yet.
    case committed
}
