import Dispatch
import GRDB
import Synchronization

/// The set of all document keys, in memory, which lets a miss skip the disk.
///
/// It contains the lower halves of the digests. Until all keys of a newly opened store have been read, it reports every key as
/// present. It may also contain keys whose halves collide, or that were removed during that reading. A stored key is never
/// missing.
final class KeyPresence: Sendable {
    private struct State {
        var lows: Set<UInt64> = []
        var isComplete = false
    }

    private let state = Mutex(State())

    func mayContain(_ low: UInt64) -> Bool {
        state.withLock { !$0.isComplete || $0.lows.contains(low) }
    }

    func insert(_ lows: [UInt64]) {
        state.withLock { $0.lows.formUnion(lows) }
    }

    func remove(_ low: UInt64) {
        _ = state.withLock { $0.lows.remove(low) }
    }

    func complete() {
        state.withLock { $0.isComplete = true }
    }
}

/// Reads the keys of a newly opened store into memory, while the first requests are served.
enum KeyLoader {
    static func start(_ core: StoreCore) {
        DispatchQueue.global(qos: .utility).async {
            guard core.beginReading() else { return }
            defer { core.endReading() }
            do {
                try core.pool.read { database in
                    var lows: [UInt64] = []
                    // This reads only the index.
                    try Query(database, "SELECT low FROM _documents INDEXED BY _documents_low").each { row in
                        lows.append(UInt64(bitPattern: row.integer(0)))
                        if lows.count == 4096 {
                            core.presence.insert(lows)
                            lows.removeAll(keepingCapacity: true)
                        }
                    }
                    core.presence.insert(lows)
                }
                core.presence.complete()
            } catch {
                // The set stays incomplete: every miss reads the disk, which is slower but correct.
            }
        }
    }
}
