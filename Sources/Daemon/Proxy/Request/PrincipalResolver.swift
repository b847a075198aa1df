import CachePolicy
package import Store
import Synchronization

/// Whose data a request may see: from its credentials to the store's surrogate id.
///
/// Any thread. Credentials themselves are kept nowhere: what is remembered is a keyed digest of them, in memory the
/// process's own, in the store that of the principal key (law 4).
package final class PrincipalResolver: Sendable {
    private let key: PrincipalKey
    private let store: ObjectStore
    /// Digests fields that may hold a credential which nobody recognised: its secret is not in the store.
    let fieldHasher: KeyHasher
    private let known = Mutex(Known())
    /// Enough for every token of a busy CI; beyond, all are looked up anew.
    private static let limit = 16_384

    private struct Known {
        var ids: [Digest128: PrincipalID] = [:]
        /// How often the store has forgotten principals: what was looked up before the last time may be nobody's.
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

    /// Says which key principals are made by, and nothing about it.
    var keyDigest: [UInt8] { key.digest(of: Array("larder.save".utf8)) }

    /// The digest of a request's fields that are neither in the key nor known to be harmless; nil for none.
    package func otherFields(of incoming: IncomingRequest) -> Digest128? {
        incoming.parts.otherFields.isEmpty ? nil : fieldHasher.digest(incoming.parts.otherFields)
    }

    /// The principal behind these credentials if this process has met it; nil otherwise.
    ///
    /// For the hit path.
    ///
    /// - Parameter digest: by `quickDigest`; nil for an anonymous request.
    @inline(__always)
    func recognise(_ digest: Digest128?) -> PrincipalID? {
        guard let digest else { return PrincipalID.anonymous }
        return known.withLock { $0.ids[digest] }
    }

    /// The principal behind a request, made durable when it is a new one.
    ///
    /// - Parameters:
    ///   - credentials: the canonical text; nil for an anonymous request.
    ///   - quick: the digest by which the hit path will ask.
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

    /// The principal behind a request and what people call it; its id is nil where nobody has asked on its behalf yet.
    ///
    /// Makes none, unlike `identify`.
    package func find(
        _ credentials: [UInt8]?,
        of upstream: ProxiedUpstream
    ) async throws(StoreError) -> (id: PrincipalID?, label: String) {
        guard let credentials else { return (PrincipalID.anonymous, ObjectStore.label(ofPrincipal: [])) }
        let digest = key.digest(of: upstream.storeKeyBytes + [0] + credentials)
        return (try await store.existingPrincipal(digest), ObjectStore.label(ofPrincipal: digest))
    }

    /// A digest of a request's field lines that is good within this process.
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
