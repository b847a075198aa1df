import Mapping

/// Digests document keys and contents under the store's persisted secret.
///
/// A value: every worker carries its own copy. Neither allocates nor locks.
public struct KeyHasher: Sendable {
    private let secret: (UInt64, UInt64)

    /// Makes a hasher over a secret; two hashers of one secret agree.
    public init(secret: (UInt64, UInt64)) {
        self.secret = secret
    }

    /// The digest of a key given as bytes, as the hit path has them.
    public func digest(
        upstream: UnsafeRawBufferPointer,
        principal: PrincipalID,
        context: UnsafeRawBufferPointer,
        url: UnsafeRawBufferPointer
    ) -> Digest128 {
        var hash = SipHash(key: secret)
        // Lengths first: no two different keys may feed the same bytes.
        hash.feed(UInt64(upstream.count) << 32 | UInt64(context.count))
        hash.feed(UInt64(bitPattern: principal.rawValue))
        hash.feed(upstream)
        hash.feed(context)
        hash.feed(url)
        return hash.finish()
    }

    /// The digest of a key given as text; equal to that of its UTF-8 bytes.
    public func digest(_ key: DocumentKey) -> Digest128 {
        var upstream = key.upstream
        var context = key.context
        var url = key.url
        return upstream.withUTF8 { upstream in
            context.withUTF8 { context in
                url.withUTF8 { url in
                    digest(
                        upstream: UnsafeRawBufferPointer(upstream),
                        principal: key.principal,
                        context: UnsafeRawBufferPointer(context),
                        url: UnsafeRawBufferPointer(url)
                    )
                }
            }
        }
    }

    /// The digest of one part of a request to an upstream, such as its credentials, as the hit path has it.
    ///
    /// For tables in memory, one for each kind of part: parts of two kinds may have the same digest.
    public func digest(part: UnsafeRawBufferPointer, upstream: UnsafeRawBufferPointer) -> Digest128 {
        var hash = SipHash(key: secret)
        hash.feed(UInt64(upstream.count))
        hash.feed(upstream)
        hash.feed(part)
        return hash.finish()
    }

    /// The digest of anything else: of its description, and of its body, however that comes in pieces.
    public func digest(_ description: [UInt8], body: [[UInt8]] = []) -> Digest128 {
        var hash = SipHash(key: secret)
        hash.feed(UInt64(description.count))
        description.withUnsafeBytes { hash.feed($0) }
        for piece in body { piece.withUnsafeBytes { hash.feed($0) } }
        return hash.finish()
    }

    /// Names an upstream's path, whoever asked for it and with whatever query: what invalidation looks for.
    func place(upstream: String, url: String) -> Int64 {
        var upstream = upstream
        var url = url.beforeQuery
        var hash = SipHash(key: secret)
        upstream.withUTF8 { bytes in
            hash.feed(UInt64(bytes.count))
            hash.feed(UnsafeRawBufferPointer(bytes))
        }
        url.withUTF8 { hash.feed(UnsafeRawBufferPointer($0)) }
        return Int64(bitPattern: hash.finish().low)
    }

    /// Names a key by which an object can be found.
    func lookUp(_ value: String) -> Int64 { Int64(bitPattern: content(Array(value.utf8))) }

    /// Names a version among the versions of one object.
    func content(_ payload: [UInt8]) -> UInt64 {
        var hash = SipHash(key: secret)
        payload.withUnsafeBytes { hash.feed($0) }
        return hash.finish().low
    }
}
