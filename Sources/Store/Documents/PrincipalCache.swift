import Synchronization

/// Principals' ids by digest, in memory.
final class PrincipalCache: Sendable {
    private struct Half: Hashable {
        let low: UInt64
        let high: UInt64
    }

    private static let limit = 16_384
    private let state = Mutex(State())

    private struct State {
        var ids: [Half: (digest: [UInt8], id: PrincipalID)] = [:]
        var forgettings = 0
    }

    /// How often all have been forgotten: to be asked before an id is looked up in the file.
    var forgettings: Int { state.withLock(\.forgettings) }

    func id(of digest: [UInt8]) -> PrincipalID? {
        state.withLock { state in
            guard let found = state.ids[Self.half(digest)], found.digest == digest else { return nil }
            return found.id
        }
    }

    /// - Parameter forgettings: as of before the look-up; once all have been forgotten since, the id may be nobody's.
    func add(_ digest: [UInt8], id: PrincipalID, lookedUpAfter forgettings: Int) {
        state.withLock { state in
            guard state.forgettings == forgettings else { return }
            // Credentials are the clients' to choose; asking the file again is cheap.
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
