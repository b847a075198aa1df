import Basics
import Store
import Synchronization

/// The documents that show a member in doubt, and when each is to be fetched again (law 3).
///
/// Any thread. In memory and bounded: a forgotten document is fetched at once.
final class OpenDoubts: Sendable {
    private struct Attempts {
        /// When the document was last requested, in µs of the store's clock: a doubt may arise in the second of a request.
        var asked: Int64
        /// The number of requests without success.
        var count: Int
    }

    private let inquiries = Mutex(BoundedTable<Digest128, Attempts>(limit: 4_096))

    /// When a document is to be fetched again, in µs of the store's clock.
    ///
    /// Once for each doubt; if that does not resolve it, again after `lag`, twice `lag`, and so on.
    ///
    /// - Parameters:
    ///   - doubts: from when on each of its doubts is to be resolved, in µs of the store's clock.
    ///   - lag: how far lists may lag, in seconds.
    func nextInquiry(for digest: Digest128, about doubts: [Int64], lag: Int64) -> Int64 {
        guard let first = doubts.min() else { return .max }
        guard let inquiry = inquiries.withLock({ $0[digest] }) else { return first }
        let again = inquiry.asked + (max(lag, 1) * 1_000_000) << Int64(min(inquiry.count - 1, 10))
        return min(again, doubts.filter { $0 > inquiry.asked }.min() ?? .max)
    }

    func recordInquiry(for digest: Digest128, about doubts: [Int64], at now: Int64) {
        inquiries.withLock { inquiries in
            let known = inquiries[digest]
            let isNew = known.map { known in doubts.contains { $0 > known.asked } } ?? true
            inquiries[digest] = Attempts(asked: now, count: isNew ? 1 : (known?.count ?? 0) + 1)
        }
    }

    /// Removes a document that no longer shows a doubt.
    func forget(_ digest: Digest128) { inquiries.withLock { if !$0.isEmpty { $0[digest] = nil } } }
}
