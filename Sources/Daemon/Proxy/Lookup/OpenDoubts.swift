import Store
import Synchronization

/// Which documents show a member in doubt, and when each is to be asked for again (law 3).
///
/// Any thread. In memory, and bounded: what is forgotten is asked for at once.
final class OpenDoubts: Sendable {
    private static let capacity = 4096

    private struct Inquiry {
        /// When the document was asked for last, in seconds of the store's clock.
        var asked: Int64
        /// How often it was, in vain.
        var count: Int
    }

    private let inquiries = Mutex<[Digest128: Inquiry]>([:])

    /// When a document is to be asked for again, in seconds of the store's clock.
    ///
    /// Once for each doubt; where that does not settle it, again after `lag`, twice `lag`, and so on.
    ///
    /// - Parameters:
    ///   - doubts: from when on each doubt that it shows is to be settled, in µs of the store's clock.
    ///   - lag: how far lists may lag, in seconds.
    func nextInquiry(for digest: Digest128, about doubts: [Int64], lag: Int64) -> Int64 {
        let times = doubts.map { $0 / 1_000_000 }
        guard let first = times.min() else { return .max }
        guard let inquiry = inquiries.withLock({ $0[digest] }) else { return first }
        let again = inquiry.asked + max(lag, 1) << Int64(min(inquiry.count - 1, 10))
        return min(again, times.filter { $0 > inquiry.asked }.min() ?? .max)
    }

    /// Notes that a document is being asked for.
    func noteInquiry(for digest: Digest128, about doubts: [Int64], at now: Int64) {
        inquiries.withLock { inquiries in
            if inquiries.count >= Self.capacity, inquiries[digest] == nil { inquiries = [:] }
            let known = inquiries[digest]
            let isNew = known.map { known in doubts.contains { $0 / 1_000_000 > known.asked } } ?? true
            inquiries[digest] = Inquiry(asked: now, count: isNew ? 1 : (known?.count ?? 0) + 1)
        }
    }

    /// Forgets a document that shows no doubt any more.
    func forget(_ digest: Digest128) {
        inquiries.withLock { inquiries in
            if !inquiries.isEmpty { inquiries[digest] = nil }
        }
    }
}
