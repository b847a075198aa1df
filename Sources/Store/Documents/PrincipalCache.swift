import Synchronization

/// Principals' ids by digest, in memory.
final class PrincipalCache: Sendable {
    private struct Half: Hashable {
        let low: UInt64
        let high: UInt64
    }

    private static let limit = 16_384
    private let ids = Mutex<[Half: (digest: [UInt8], id: PrincipalID)]>([:])

    func id(of digest: [UInt8]) -> PrincipalID? {
        ids.withLock { ids in
            guard let found = ids[Self.half(digest)], found.digest == digest else { return nil }
            return found.id
        }
    }

    func add(_ digest: [UInt8], id: PrincipalID) {
        ids.withLock { ids in
            // Credentials are the clients' to choose; asking the file again is cheap.
            if ids.count >= Self.limit { ids.removeAll() }
            ids[Self.half(digest)] = (digest, id)
        }
    }

    func forgetAll() {
        ids.withLock { $0 = [:] }
    }

    // The digest is an HMAC: half of it is as good as a hash.
    private static func half(_ digest: [UInt8]) -> Half {
        var padded = digest.prefix(16)
        padded.append(contentsOf: repeatElement(0, count: 16 - padded.count))
        return padded.withUnsafeBytes {
            Half(
                low: $0.loadUnaligned(fromByteOffset: 0, as: UInt64.self),
                high: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
            )
        }
    }
}
