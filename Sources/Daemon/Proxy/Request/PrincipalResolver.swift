import Basics
import CachePolicy
package import Settings
package import Store
import Synchronization

/// Resolves a request's credentials to its principal, by the store's surrogate id.
///
/// Any thread. Credentials themselves are not kept: memory holds a digest keyed for this process, the store one keyed by the
/// principal key (law 4).
package final class PrincipalResolver: Sendable {
    private let key: PrincipalKey
    private let store: ObjectStore
    /// Digests fields that may hold an unrecognised credential; its secret is not in the store.
    let fieldHasher: KeyHasher
    private let known = Mutex(Known())

    private struct Known {
        /// Enough for every token of a busy CI.
        var ids = BoundedTable<Digest128, PrincipalID>(limit: 16_384)
        /// For display.
        var labels = BoundedTable<PrincipalID, String>(limit: 16_384)
        /// How often the store has removed principals; ids found before the last time may be invalid.
        var generation = 0
    }

    package init(key: PrincipalKey, store: ObjectStore) {
        (self.key, self.store) = (key, store)
        let secret = key.digest(of: Array(OtherFields.name.utf8))
        fieldHasher = KeyHasher(secret: secret.withUnsafeBytes { $0.loadUnaligned(as: (UInt64, UInt64).self) })
    }

    /// Identifies the principal key without revealing it.
    var keyDigest: [UInt8] { key.digest(of: Array("larder.save".utf8)) }

    /// The digest of a request's fields that are neither in the key nor known to be harmless, if any.
    ///
    /// - Parameter lines: as `CacheKeyBuilder` collects them.
    func otherFields(_ lines: [UInt8]) -> Digest128? { lines.isEmpty ? nil : fieldHasher.digest(lines) }

    /// The principal for these credentials if this process has met it, for the hit path.
    ///
    /// - Parameter digest: by `CacheKeyBuilder.credentialsDigest`; nil for an anonymous request.
    @inline(__always)
    func recognise(_ digest: Digest128?) -> PrincipalID? {
        guard let digest else { return PrincipalID.anonymous }
        return known.withLock { $0.ids[digest] }
    }

    /// The principal of a request; a new one is stored durably.
    func identify(_ incoming: IncomingRequest) async throws(StoreError) -> PrincipalID {
        if let principal = recognise(incoming.credentialsDigest) { return principal }
        let generation = known.withLock(\.generation)
        let principal = try await identify(incoming.credentials, of: incoming.upstream)
        known.withLock { known in
            guard let digest = incoming.credentialsDigest, known.generation == generation else { return }
            known.ids[digest] = principal
        }
        return principal
    }

    /// The principal with these credentials; a new one is stored durably.
    func identify(_ credentials: [UInt8]?, of upstream: ProxiedUpstream) async throws(StoreError) -> PrincipalID {
        guard let credentials else { return PrincipalID.anonymous }
        let digest = key.digest(of: upstream.storeKeyBytes + [0] + credentials)
        let principal = try await store.principal(digest)
        known.withLock { $0.labels[principal] = ObjectStore.label(ofPrincipal: digest) }
        return principal
    }

    /// The label of a principal that this process has met.
    func label(of principal: PrincipalID) -> String? {
        guard principal != .anonymous else { return ObjectStore.label(ofPrincipal: []) }
        return known.withLock { $0.labels[principal] }
    }

    /// The principal of a request and its label; the id is nil if no request of its has been stored yet.
    ///
    /// Unlike `identify`, it creates none.
    func find(_ credentials: [UInt8]?, of upstream: ProxiedUpstream)
        async throws(StoreError) -> (id: PrincipalID?, label: String)
    {
        guard let credentials else { return (PrincipalID.anonymous, ObjectStore.label(ofPrincipal: [])) }
        let digest = key.digest(of: upstream.storeKeyBytes + [0] + credentials)
        return (try await store.existingPrincipal(digest), ObjectStore.label(ofPrincipal: digest))
    }
}

extension PrincipalResolver: ChangeListener {
    package func principalsForgotten() { known.withLock { $0 = Known(generation: $0.generation + 1) } }
}

/// The secret that turns credentials into principals: 32 bytes in a file that only its owner may read (law 4).
package struct PrincipalKey: Sendable {
    private let secret: [UInt8]

    /// A key that is not in a file of its own, as in a fleet.
    package init(secret: [UInt8]) {
        precondition(secret.count == Self.byteCount, "a principal key has 32 bytes")
        self.secret = secret
    }

    static let byteCount = 32

    func digest(of canonical: [UInt8]) -> [UInt8] { Crypto.authenticationCode(key: secret, message: canonical) }

    /// Reads the key, or creates one if there is no file yet; blocks on the disk; call it at start.
    package static func open(path: String) throws(SecretFileError) -> PrincipalKey {
        if let key = try load(path) { return key }
        do throws(SecretFile.Failure) {
            // If another process is faster, its key is used.
            try SecretFile.write(SecretFile.randomBytes(byteCount), to: path, replacing: false)
        } catch { throw flaw(of: path, "cannot be made: \(reason(error))") }
        guard let key = try load(path) else { throw flaw(of: path, "cannot be read: it vanished while being made") }
        return key
    }

    private static func load(_ path: String) throws(SecretFileError) -> PrincipalKey? {
        let content: FileBytes.Content?
        do throws(SecretFile.Failure) {
            content = try SecretFile.read(path)
        } catch { throw flaw(of: path, "cannot be read: \(reason(error))") }
        guard let content else { return nil }
        guard content.mode & 0o077 == 0 else {
            let mode = String(content.mode, radix: 8)
            throw flaw(of: path, "has mode \(mode), so that others may read it; run: chmod 600 \(path)")
        }
        guard content.bytes.count == byteCount else {
            let remedy = "move it away together with the store: without its key, what is stored belongs to nobody"
            throw flaw(of: path, "has \(content.bytes.count) bytes where 32 are wanted; \(remedy)")
        }
        return PrincipalKey(secret: content.bytes)
    }

    private static func flaw(of path: String, _ text: String) -> SecretFileError {
        SecretFileError("the principal key \(path) \(text)")
    }

    private static func reason(_ failure: SecretFile.Failure) -> String {
        switch failure {
        case .notAFile: "it is not a regular file"
        case .tooLarge: "it is no key: it has more than 64 KiB"
        case .system(_, let code): systemMessage(code)
        }
    }
}
