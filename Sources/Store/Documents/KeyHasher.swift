import Dispatch
import GRDB
import Mapping
import Synchronization

/// The random key of a store's digests.
public typealias HashSecret = (UInt64, UInt64)

/// Digests document keys and contents under the store's persisted secret; a value, which neither allocates nor locks.
public struct KeyHasher: Sendable {
    private let secret: HashSecret

    /// Creates a hasher for a secret; hashers with the same secret agree.
    public init(secret: HashSecret) { self.secret = secret }

    /// The digest of a key in bytes, the form available on the hit path.
    public func digest(
        upstream: UnsafeRawBufferPointer,
        principal: PrincipalID,
        context: UnsafeRawBufferPointer,
        url: UnsafeRawBufferPointer
    ) -> Digest128 {
        var hash = SipHash(key: secret)
        // The lengths come first, so that two different keys never feed the same bytes.
        hash.feed(UInt64(upstream.count) << 32 | UInt64(context.count))
        hash.feed(UInt64(bitPattern: principal.rawValue))
        hash.feed(upstream)
        hash.feed(context)
        hash.feed(url)
        return hash.finish()
    }

    /// The digest of a key as text, equal to that of its UTF-8 bytes.
    public func digest(_ key: CacheKey) -> Digest128 {
        var (upstream, context, url) = (key.upstream.rawValue, key.context, key.url)
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

    /// The digest of one part of a request to an upstream, such as its credentials, for the hit path.
    ///
    /// It is for tables in memory, one for each kind of part: parts of two kinds may have the same digest.
    public func digest(part: UnsafeRawBufferPointer, upstream: UnsafeRawBufferPointer) -> Digest128 {
        var hash = SipHash(key: secret)
        hash.feed(UInt64(upstream.count))
        hash.feed(upstream)
        hash.feed(part)
        return hash.finish()
    }

    /// The digest of a description and a body, regardless of how the body is split into pieces.
    public func digest(_ description: [UInt8], body: [[UInt8]] = []) -> Digest128 {
        var hash = SipHash(key: secret)
        hash.feed(UInt64(description.count))
        description.withUnsafeBytes { hash.feed($0) }
        for piece in body { piece.withUnsafeBytes { hash.feed($0) } }
        return hash.finish()
    }

    /// The hash of an upstream's path, for invalidation; it is the same for every principal and query.
    func pathHash(upstream: UpstreamKey, url: String) -> Int64 {
        var (upstream, url) = (upstream.rawValue, url.beforeQuery)
        let digest = upstream.withUTF8 { upstream -> Digest128 in
            url.withUTF8 { self.digest(part: UnsafeRawBufferPointer($0), upstream: UnsafeRawBufferPointer(upstream)) }
        }
        return Int64(bitPattern: digest.low)
    }

    func keyHash(_ value: String) -> Int64 { Int64(bitPattern: contentHash(Array(value.utf8))) }

    /// The hash of a version's payload, unique among the versions of one object.
    func contentHash(_ payload: [UInt8]) -> UInt64 {
        var hash = SipHash(key: secret)
        payload.withUnsafeBytes { hash.feed($0) }
        return hash.finish().low
    }
}

/// A 128-bit digest of a document's key, under the store's own secret, so that no client can choose colliding keys.
public struct Digest128: Hashable, Sendable {
    /// The lower 64 bits, which the store's index contains.
    public let low: UInt64
    public let high: UInt64

    /// Combines the two halves of a digest.
    public init(low: UInt64, high: UInt64) { (self.low, self.high) = (low, high) }

    /// Feeds one half: its bits are uniform already.
    public func hash(into hasher: inout Hasher) { hasher.combine(low) }
}

/// SipHash-1-3 with a 128-bit result, fed piece by piece.
///
/// One round per word and three to finish: enough against flooding, and the fastest member of the family. The tests verify it
/// by the reference implementation's 2-4 vectors.
struct SipHash {
    private var v0: UInt64
    private var v1: UInt64
    private var v2: UInt64
    private var v3: UInt64
    /// The bytes that do not fill a word yet, the first of them lowest.
    private var tail: UInt64 = 0
    private var length = 0
    private let compressionRounds: Int
    private let finalizationRounds: Int

    init(key: HashSecret, compressionRounds: Int = 1, finalizationRounds: Int = 3) {
        v0 = 0x736f_6d65_7073_6575 ^ key.0
        v1 = 0x646f_7261_6e64_6f6d ^ key.1 ^ 0xee
        v2 = 0x6c79_6765_6e65_7261 ^ key.0
        v3 = 0x7465_6462_7974_6573 ^ key.1
        (self.compressionRounds, self.finalizationRounds) = (compressionRounds, finalizationRounds)
    }

    private mutating func round() {
        v0 &+= v1
        v1 = (v1 << 13 | v1 >> 51) ^ v0
        v0 = v0 << 32 | v0 >> 32
        v2 &+= v3
        v3 = (v3 << 16 | v3 >> 48) ^ v2
        v0 &+= v3
        v3 = (v3 << 21 | v3 >> 43) ^ v0
        v2 &+= v1
        v1 = (v1 << 17 | v1 >> 47) ^ v2
        v2 = v2 << 32 | v2 >> 32
    }

    @inline(__always)
    private mutating func compress(_ word: UInt64) {
        v3 ^= word
        for _ in 0..<compressionRounds { round() }
        v0 ^= word
    }

    // Inlined, so that the state stays in registers.
    @inline(__always)
    mutating func feed(_ bytes: UnsafeRawBufferPointer) {
        var index = 0
        // Whole words need no shifting, as long as nothing waits in the tail.
        if length & 7 == 0 {
            while index + 8 <= bytes.count {
                compress(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
                index += 8
            }
            length += index
        }
        while index + 8 <= bytes.count {
            feed(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
            index += 8
        }
        while index < bytes.count {
            tail |= UInt64(bytes[index]) &<< (UInt64(length & 7) &* 8)
            index += 1
            length += 1
            if length & 7 == 0 {
                compress(tail)
                tail = 0
            }
        }
    }

    /// Feeds the eight bytes of a word, the lowest first.
    @inline(__always)
    mutating func feed(_ word: UInt64) {
        let filled = UInt64(length & 7) &* 8
        compress(tail | word &<< filled)
        tail = filled == 0 ? 0 : word &>> (64 &- filled)
        length += 8
    }

    mutating func finish() -> Digest128 {
        compress(tail | UInt64(length & 0xff) << 56)
        v2 ^= 0xee
        for _ in 0..<finalizationRounds { round() }
        let low = v0 ^ v1 ^ v2 ^ v3
        v1 ^= 0xdd
        for _ in 0..<finalizationRounds { round() }
        return Digest128(low: low, high: v0 ^ v1 ^ v2 ^ v3)
    }
}

/// The lower halves of the digests of all document keys, in memory, so that a miss skips the disk.
///
/// Until all keys of a newly opened store have been read, it reports every key as present. It may also contain keys
/// whose halves collide, or that were removed during that reading. A stored key is never missing.
final class KeyPresence: Sendable {
    private struct State {
        var lows: Set<UInt64> = []
        var isComplete = false
    }

    private let state = Mutex(State())

    func mayContain(_ low: UInt64) -> Bool { state.withLock { !$0.isComplete || $0.lows.contains(low) } }

    func insert(_ lows: [UInt64]) { state.withLock { $0.lows.formUnion(lows) } }

    func remove(_ low: UInt64) { _ = state.withLock { $0.lows.remove(low) } }

    func complete() { state.withLock { $0.isComplete = true } }
}

extension StoreCore {
    /// Reads the keys of a newly opened store into memory, while the first requests are served.
    func loadKeys() {
        DispatchQueue.global(qos: .utility).async { [self] in
            guard beginReading() else { return }
            defer { endReading() }
            // After an error the set stays incomplete: every miss reads the disk, which is slower but correct.
            try? pool.read { database in
                var lows: [UInt64] = []
                // This reads only the index.
                try database.query("SELECT low FROM _documents INDEXED BY _documents_low").each { row in
                    lows.append(UInt64(bitPattern: row.integer(0)))
                    if lows.count == 4096 {
                        presence.insert(lows)
                        lows.removeAll(keepingCapacity: true)
                    }
                }
                presence.insert(lows)
                presence.complete()
            }
        }
    }
}
