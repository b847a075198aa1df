import CachePolicy
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
    /// Enough for every token of a busy CI; past it, all are looked up again.
    private static let limit = 16_384

    private struct Known {
        var ids: [Digest128: PrincipalID] = [:]
        /// How often the store has removed principals; ids found before the last time may be invalid.
        var forgettings = 0
    }

    package init(key: PrincipalKey, store: ObjectStore) {
        self.key = key
        self.store = store
        fieldHasher = key.digest(of: Array(OtherFields.name.utf8)).withUnsafeBytes { secret in
            KeyHasher(
                secret: (
                    secret.loadUnaligned(as: UInt64.self), secret.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
                )
            )
        }
    }

    /// Identifies the principal key without revealing it.
    var keyDigest: [UInt8] { key.digest(of: Array("larder.save".utf8)) }

    /// The digest of a request's fields that are neither in the key nor known to be harmless, if any.
    package func otherFields(of incoming: IncomingRequest) -> Digest128? {
        incoming.parts.otherFields.isEmpty ? nil : fieldHasher.digest(incoming.parts.otherFields)
    }

    /// The principal for these credentials if this process has met it, for the hit path.
    ///
    /// - Parameter digest: by `quickDigest`; nil for an anonymous request.
    @inline(__always)
    func recognise(_ digest: Digest128?) -> PrincipalID? {
        guard let digest else { return PrincipalID.anonymous }
        return known.withLock { $0.ids[digest] }
    }

    /// The principal of a request; a new one is stored durably.
    ///
    /// - Parameters:
    ///   - credentials: the canonical text; nil for an anonymous request.
    ///   - quick: the digest by which the hit path will look it up.
    func identify(
        _ credentials: [UInt8]?,
        quick: Digest128?,
        of upstream: ProxiedUpstream
    ) async throws(StoreError) -> PrincipalID {
        guard let credentials else { return PrincipalID.anonymous }
        if let quick, let principal = recognise(quick) { return principal }
        let forgettings = known.withLock(\.forgettings)
        let principal = try await store.principal(key.digest(of: upstream.storeKeyBytes + [0] + credentials))
        if let quick {
            known.withLock { known in
                guard known.forgettings == forgettings else { return }
                if known.ids.count >= Self.limit { known.ids.removeAll() }
                known.ids[quick] = principal
            }
        }
        return principal
    }

    /// The principal of a request and its label; the id is nil if no request of its has been stored yet.
    ///
    /// Unlike `identify`, it creates none.
    package func find(
        _ credentials: [UInt8]?,
        of upstream: ProxiedUpstream
    ) async throws(StoreError) -> (id: PrincipalID?, label: String) {
        guard let credentials else { return (PrincipalID.anonymous, ObjectStore.label(ofPrincipal: [])) }
        let digest = key.digest(of: upstream.storeKeyBytes + [0] + credentials)
        return (try await store.existingPrincipal(digest), ObjectStore.label(ofPrincipal: digest))
    }

    /// A digest of a request's field lines, valid within this process.
    static func quickDigest(_ lines: [UInt8], _ upstream: ProxiedUpstream, _ hasher: KeyHasher) -> Digest128 {
        lines.withUnsafeBytes { lines in
            upstream.storeKeyBytes.withUnsafeBytes { name in
                hasher.digest(part: lines, upstream: name)
            }
        }
    }
}

extension PrincipalResolver: ChangeListener {
    package func objectsChanged(_ objects: [ObjectID]) {}

    package func documentsRemoved(_ keys: [Digest128]) {}

    package func principalsForgotten() {
        known.withLock { known in
            known.ids.removeAll()
            known.forgettings += 1
        }
    }
}
