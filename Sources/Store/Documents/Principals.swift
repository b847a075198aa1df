import GRDB
import Synchronization

/// Looks up principals: 32-byte digests outside, surrogate ids inside.
extension ObjectStore {
    /// The id of a principal's digest, if it is in memory.
    ///
    /// Any thread, quick. The empty digest is `anonymous`.
    public func knownPrincipal(_ digest: [UInt8]) -> PrincipalID? {
        digest.isEmpty ? .anonymous : core.principals.id(of: digest)
    }

    /// The id of a principal's digest; a new one is made durable.
    public func principal(_ digest: [UInt8]) async throws(StoreError) -> PrincipalID {
        if let known = try await existingPrincipal(digest) { return known }
        let forgettings = core.principals.forgettings
        let id = try await core.write(.durable) { try $0.principal(digest) }
        core.principals.add(digest, id: id, lookedUpAfter: forgettings)
        return id
    }

    /// The id of a principal's digest, if there is one.
    public func existingPrincipal(_ digest: [UInt8]) async throws(StoreError) -> PrincipalID? {
        if let known = knownPrincipal(digest) { return known }
        let forgettings = core.principals.forgettings
        let stored = try await core.read { database in
            try database.query("SELECT id FROM _principals WHERE digest = ?")
                .first(digest) { $0.id(0, as: PrincipalID.self) }
        }
        if let stored { core.principals.add(digest, id: stored, lookedUpAfter: forgettings) }
        return stored
    }

    /// A principal's label: `anonymous`, or `p-` and eight hexadecimal digits of its digest.
    public static func label(ofPrincipal digest: [UInt8]) -> String {
        guard !digest.isEmpty else { return "anonymous" }
        return "p-" + digest.prefix(4).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

/// The ids of principals by digest, in memory.
final class PrincipalCache: Sendable {
    private struct State {
        var ids: [Digest128: (digest: [UInt8], id: PrincipalID)] = [:]
        var forgettings = 0
    }

    private static let limit = 16_384
    private let state = Mutex(State())

    /// How often the cache was emptied; read this before an id is looked up in the file.
    var forgettings: Int { state.withLock(\.forgettings) }

    func id(of digest: [UInt8]) -> PrincipalID? {
        state.withLock { state in
            guard let found = state.ids[Self.half(digest)], found.digest == digest else { return nil }
            return found.id
        }
    }

    /// Adds an id.
    ///
    /// - Parameter forgettings: the count read before the look-up. If the cache was emptied since, the id may be unused.
    func add(_ digest: [UInt8], id: PrincipalID, lookedUpAfter forgettings: Int) {
        state.withLock { state in
            guard state.forgettings == forgettings else { return }
            // Clients choose their credentials freely; another look-up in the file is cheap.
            if state.ids.count >= Self.limit { state.ids.removeAll() }
            state.ids[Self.half(digest)] = (digest, id)
        }
    }

    func forgetAll() {
        state.withLock { state in
            state.ids = [:]
            state.forgettings += 1
        }
    }

    // The digest is an HMAC: half of it is as good as a hash.
    private static func half(_ digest: [UInt8]) -> Digest128 {
        var padded = digest.prefix(16)
        padded.append(contentsOf: repeatElement(0, count: 16 - padded.count))
        return padded.withUnsafeBytes {
            Digest128(
                low: $0.loadUnaligned(fromByteOffset: 0, as: UInt64.self),
                high: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
            )
        }
    }
}

/// Stores principals: digests, surrogate ids, labels.
extension WriterSession {
    /// The id of a digest, created if needed.
    func principal(_ digest: [UInt8]) throws -> PrincipalID {
        let known = try query("SELECT id FROM _principals WHERE digest = ?").integer(digest)
        if let known { return PrincipalID(rawValue: known) }
        // SQLite itself would reuse the number of a forgotten principal.
        let id = numbers.principal.increment()
        try insert(id, digest)
        return id
    }

    private func insert(_ id: PrincipalID, _ digest: [UInt8]) throws {
        try query("INSERT INTO _principals (id, digest, label) VALUES (?, ?, ?)")
            .run(id, digest, ObjectStore.label(ofPrincipal: digest))
    }

    /// Removes all but the latest principals without data, and unused scopes and names.
    ///
    /// Clients choose credentials and contexts freely. If these differ with each request, they would fill the file with rows
    /// that no eviction removes. Not within a batch.
    func forgetUnused(keepingPrincipalsAfter last: PrincipalID) throws {
        try query(
            """
            DELETE FROM _collections WHERE NOT EXISTS (SELECT 1 FROM _objects o WHERE o.collection = _collections.id)
            AND id NOT IN (SELECT collection FROM _gone)
            """
        ).run()
        try query(
            """
            DELETE FROM _scopes WHERE id NOT IN (SELECT scope FROM _documents)
            AND id NOT IN (SELECT scope FROM _collections)
            """
        ).run()
        try query(
            """
            DELETE FROM _names WHERE id NOT IN (SELECT upstream FROM _scopes) AND id NOT IN (SELECT context FROM _scopes)
            AND id NOT IN (SELECT model FROM _collections)
            """
        ).run()
        try query("DELETE FROM _principals WHERE id > ? AND id <= ? AND id NOT IN (SELECT principal FROM _scopes)")
            .run(PrincipalID.anonymous, last)
        names.forget()
    }

    /// The label of a principal.
    ///
    /// Nil if it was forgotten; nothing of it must be stored then.
    func principalLabel(_ id: PrincipalID) throws -> String? {
        try query("SELECT label FROM _principals WHERE id = ?").first(id) { $0.string(0) }
    }

    /// Gives forgotten principals that still have data a new row, so that the data can be listed, cleaned and evicted.
    ///
    /// No credentials lead to such a principal.
    func restorePrincipals() throws {
        let forgotten = try query(
            "SELECT DISTINCT principal FROM _scopes WHERE principal NOT IN (SELECT id FROM _principals)"
        ).all { $0.id(0, as: PrincipalID.self) }
        for id in forgotten { try insert(id, (0..<32).map { _ in UInt8.random(in: .min ... .max) }) }
    }
}
