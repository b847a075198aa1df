import Store
import Synchronization

/// Whose data a request may see: from its credentials to the store's surrogate id.
///
/// Any thread. Credentials themselves are kept nowhere: what is remembered is a keyed digest of them, in memory the
/// process's own, in the store that of the principal key (law 4).
final class Principals: Sendable {
    private let key: PrincipalKey
    private let store: Store
    private let known = Mutex<[Digest128: PrincipalID]>([:])
    /// Enough for every token of a busy CI; beyond, all are looked up anew.
    private static let limit = 16_384

    init(key: PrincipalKey, store: Store) {
        self.key = key
        self.store = store
    }

    /// The principal behind these credentials if this process has met it; nil otherwise.
    ///
    /// For the hit path.
    ///
    /// - Parameter digest: by `quickDigest`; nil for an anonymous request.
    @inline(__always)
    func recognise(_ digest: Digest128?) -> PrincipalID? {
        guard let digest else { return Store.anonymous }
        return known.withLock { $0[digest] }
    }

    /// The principal behind a request, made durable when it is a new one.
    ///
    /// - Parameters:
    ///   - credentials: the canonical text; nil for an anonymous request.
    ///   - quick: the digest by which the hit path will ask.
    func identify(
        _ credentials: [UInt8]?,
        quick: Digest128?,
        of upstream: Upstream
    ) async throws(StoreError) -> PrincipalID {
        guard let credentials else { return Store.anonymous }
        if let quick, let principal = recognise(quick) { return principal }
        let principal = try await store.principal(key.digest(of: upstream.nameBytes + [0] + credentials))
        if let quick {
            known.withLock { known in
                if known.count >= Self.limit { known.removeAll() }
                known[quick] = principal
            }
        }
        return principal
    }

    /// The principal behind a request and what people call it; its id is nil where nobody has asked on its behalf yet.
    ///
    /// Makes none, unlike `identify`.
    func find(
        _ credentials: [UInt8]?,
        of upstream: Upstream
    ) async throws(StoreError) -> (id: PrincipalID?, label: String) {
        guard let credentials else { return (Store.anonymous, Store.label(ofPrincipal: [])) }
        let digest = key.digest(of: upstream.nameBytes + [0] + credentials)
        return (try await store.existingPrincipal(digest), Store.label(ofPrincipal: digest))
    }

    /// A digest of a request's field lines that is good within this process.
    static func quickDigest(_ lines: [UInt8], _ upstream: Upstream, _ hasher: KeyHasher) -> Digest128 {
        lines.withUnsafeBytes { lines in
            upstream.nameBytes.withUnsafeBytes { name in
                hasher.digest(
                    upstream: name,
                    principal: -1,
                    context: lines,
                    url: UnsafeRawBufferPointer(start: nil, count: 0)
                )
            }
        }
    }
}
