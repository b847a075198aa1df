import CachePolicy
import Store

/// The fetches behind stale responses: one at a time for each document, and after failures not again at once.
///
/// A value for one thread.
package struct Refreshes {
    /// One document: a key and the variant of it.
    struct Subject: Hashable {
        let digest: Digest128
        let variant: [UInt8]

        init(_ stored: ReadyResponse) {
            digest = stored.residence.digest
            variant = stored.response.selection.bytes
        }
    }

    private struct Failure {
        var count: Int
        /// In ns of the loop's clock.
        var notBefore: UInt64
    }

    private var running: Set<Subject> = []
    private var failures: [Subject: Failure] = [:]
    private static let limit = 4_096

    /// Whether a document may be refreshed now; if so it counts as being refreshed until `ended`.
    mutating func begin(_ subject: Subject, now: UInt64) -> Bool {
        if let failure = failures[subject], now < failure.notBefore { return false }
        return running.insert(subject).inserted
    }

    /// The refresh is over; one that failed is repeated after 1, 2, 4 … and at last every 60 seconds.
    mutating func ended(_ subject: Subject, hasSucceeded: Bool, now: UInt64) {
        running.remove(subject)
        guard !hasSucceeded else {
            failures[subject] = nil
            return
        }
        if failures.count >= Self.limit { failures = failures.filter { $0.value.notBefore > now } }
        if failures.count >= Self.limit { failures = [:] }
        let count = (failures[subject]?.count ?? 0) + 1
        let seconds = min(60, UInt64(1) << UInt64(min(count - 1, 6)))
        failures[subject] = Failure(count: count, notBefore: now + seconds * 1_000_000_000)
    }
}
