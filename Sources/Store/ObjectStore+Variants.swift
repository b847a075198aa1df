import Mapping

/// What there is to know of a variant without reading its body.
public struct StoredVariant: Sendable {
    /// Names the `Vary` selection.
    public var variant: [UInt8]
    /// The fields, in the caller's own form.
    public var head: [UInt8]
    /// What freshness is reckoned from, in the caller's own form.
    public var policy: [UInt8]
    /// One of the objects that it shows has changed since it was last found to show the newest.
    public var isSuspicious: Bool
}

/// One of the documents of a URL, without its body.
public struct DocumentOfURL: Sendable {
    /// The principal's label.
    public var principal: String
    /// The representation asked for, as in its key.
    public var context: String
    /// Names the `Vary` selection.
    public var variant: [UInt8]
    /// The status code.
    public var status: Int
    /// What freshness is reckoned from, in the caller's own form.
    public var policy: [UInt8]
}

extension ObjectStore {
    /// All variants under a key, at most ``variantLimit``, the newest first; no body is read for them.
    public func variants(at key: DocumentKey) async throws(StoreError) -> [StoredVariant] {
        let digest = core.hasher.digest(key)
        guard mayHave(digest) else { return [] }
        let models = core.models
        return try await core.read { database in
            try DocumentReader(database, models: models).variants(at: key, digest: digest)
        }
    }
}
