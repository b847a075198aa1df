public import Basics

/// The state of a store at run time, for operators; counts are since its opening.
public struct StoreStatistics: Sendable, Equatable {
    /// Responses that wait to be committed.
    public var queued = 0
    /// Jobs of any kind that the writer has not begun.
    public var queuedJobs = 0
    public var commits: Int64 = 0
    public var commitTimes = Histogram()
    public var jobs: [String: Int64] = [:]
    /// Bytes of responses in them.
    public var committedBytes: Int64 = 0
    /// How long complete responses waited until they were committed.
    public var responseTimes = Histogram()
    var failures: Int64 = 0
    /// How often damage was found in the file.
    public var damaged: Int64 = 0
    public var evicted: Int64 = 0
    public var warnings: Int64 = 0
    /// The process whose lock keeps the store from being written, such as `process 4711 (sqlite3)`; nil for none.
    public var lockHolder: String?

    mutating func record(_ report: CommitReport) {
        commits += 1
        commitTimes.record(seconds: report.seconds)
        committedBytes += Int64(report.bytes)
        for (kind, count) in report.jobs { jobs[kind, default: 0] += Int64(count) }
    }
}

/// What one commit was about.
public struct CommitReport: Sendable {
    public let jobs: [(kind: String, count: Int)]
    /// About how many bytes of responses it added to the file.
    public let bytes: Int
    public let seconds: Double

    init(_ jobs: some Sequence<Job>, seconds: Double) {
        // A table would hash the kinds' names.
        var counts: [(kind: Job.Kind, count: Int)] = []
        var bytes = 0
        for job in jobs {
            let known = counts.firstIndex { $0.kind == job.kind }
            if let known { counts[known].count += 1 } else { counts.append((job.kind, 1)) }
            bytes += job.bytes
        }
        let kinds = counts.count > 1 ? Job.Kind.allCases : counts.map(\.kind)
        self.jobs = kinds.compactMap { kind in counts.first { $0.kind == kind }.map { (kind.rawValue, $0.count) } }
        (self.bytes, self.seconds) = (bytes, seconds)
    }
}
