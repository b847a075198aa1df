import Basics
import CachePolicy
import Store

/// The background refreshes: at most one at a time for each document, with a pause after failures.
///
/// A value for one thread.
struct Refreshes {
    /// A document: a cache key and a variant.
    struct Subject: Hashable {
        let digest: Digest128
        let variant: [UInt8]

        init(_ stored: ReadyResponse) {
            digest = stored.entry.digest
            variant = stored.response.selection.bytes
        }
    }

    private struct Failure {
        var count: Int
        /// In ns of the loop's clock.
        var notBefore: UInt64
    }

    private var running: Set<Subject> = []
    private var failures = BoundedTable<Subject, Failure>(limit: 4_096)

    /// Begins a refresh that `mayStart`; it lasts until `ended`.
    mutating func began(_ subject: Subject) { running.insert(subject) }

    func mayStart(_ subject: Subject, now: UInt64) -> Bool {
        !running.contains(subject) && failures[subject].map { now >= $0.notBefore } ?? true
    }

    /// Ends a refresh; one that failed may be repeated after a pause.
    mutating func ended(_ subject: Subject, hasSucceeded: Bool, now: UInt64) {
        running.remove(subject)
        guard !hasSucceeded else {
            failures[subject] = nil
            return
        }
        let count = (failures[subject]?.count ?? 0) + 1
        failures[subject] = Failure(count: count, notBefore: now + Self.pause(after: count))
    }

    /// The pause after this many failures in a row, in ns: 1, 2, 4 … and at most 60 seconds.
    static func pause(after failures: Int) -> UInt64 {
        min(60, UInt64(1) << UInt64(min(failures - 1, 6))) * 1_000_000_000
    }
}
