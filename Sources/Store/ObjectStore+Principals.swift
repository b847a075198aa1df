/// Principals: 32-byte digests from outside, surrogate ids inside.
extension ObjectStore {
    /// The id of a principal's digest, if it is in memory; any thread, quick.
    ///
    /// The empty digest is `anonymous`.
    public func knownPrincipal(_ digest: [UInt8]) -> PrincipalID? {
        digest.isEmpty ? .anonymous : core.principals.id(of: digest)
    }

    /// The id of a principal's digest, made durable if it is new.
    public func principal(_ digest: [UInt8]) async throws(StoreError) -> PrincipalID {
        if let known = try await existingPrincipal(digest) { return known }
        let forgettings = core.principals.forgettings
        let id = try await core.write(.durable) { try $0.principal(digest) }
        core.principals.add(digest, id: id, lookedUpAfter: forgettings)
        return id
    }

    /// The id of a principal's digest; nil where there is none, and none is made.
    public func existingPrincipal(_ digest: [UInt8]) async throws(StoreError) -> PrincipalID? {
        if let known = knownPrincipal(digest) { return known }
        let forgettings = core.principals.forgettings
        let stored = try await core.read { database in
            try Query(database, "SELECT id FROM _principals WHERE digest = ?").first(.blob(digest)) {
                $0.id(0, as: PrincipalID.self)
            }
        }
        if let stored { core.principals.add(digest, id: stored, lookedUpAfter: forgettings) }
        return stored
    }

    /// What people call a principal: `anonymous`, or `p-` and eight hexadecimal digits of its digest.
    public static func label(ofPrincipal digest: [UInt8]) -> String {
        guard !digest.isEmpty else { return "anonymous" }
        let digits = Array("0123456789abcdef".utf8)
        var text = Array("p-".utf8)
        for byte in digest.prefix(4) {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}
