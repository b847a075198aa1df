import Basics
import CachePolicy
import HTTPSemantics
import Store
import Synchronization

/// The newest rate-limit fields that one upstream has sent, for each principal and resource (`budget: { fields: newest }`).
///
/// Programs such as go-github take the fields of every response as current. So what is served from the cache has the newest ones,
/// in place of those it was stored with, and `X-From-Cache`. Any thread.
final class NewestRateLimit: Sendable {
    private struct Key: Hashable {
        let principal: PrincipalID
        let resource: String?
    }

    private struct Entry {
        let lines: Fields
        /// The same as they are sent.
        let bytes: [UInt8]
    }

    private let known = Mutex(BoundedTable<Key, Entry>(limit: 4_096))

    private static let fromCache: Fields = ["X-From-Cache": "1"]
    private static let fromCacheBytes = fromCache.encoded

    /// Records the fields of a response of the upstream.
    func record(_ fields: Fields, of principal: PrincipalID) {
        var lines = fields.filter(RateLimitFields.isOne)
        guard !lines.isEmpty else { return }
        let key = Key(principal: principal, resource: RateLimitFields.resource(fields))
        lines.append(contentsOf: Self.fromCache)
        let entry = Entry(lines: lines, bytes: lines.encoded)
        known.withLock { $0[key] = entry }
    }

    /// The lines that a hit has in place of its own, encoded, and whether these are newer ones.
    func lines(for principal: PrincipalID, _ resource: String?) -> (bytes: [UInt8], areNewer: Bool) {
        let entry = known.withLock { $0[Key(principal: principal, resource: resource)] }
        return entry.map { ($0.bytes, true) } ?? (Self.fromCacheBytes, false)
    }

    /// Gives the fields of a response from the cache the newest lines.
    func renew(_ fields: inout Fields, of principal: PrincipalID) {
        let key = Key(principal: principal, resource: RateLimitFields.resource(fields))
        if let entry = known.withLock({ $0[key] }) {
            fields.removeAll(where: RateLimitFields.isOne)
            fields.append(contentsOf: entry.lines)
        } else {
            fields.append(contentsOf: Self.fromCache)
        }
    }
}
