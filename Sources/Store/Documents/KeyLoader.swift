import GRDB
import Dispatch

/// Reads the keys of a store just opened into memory, behind the first requests.
enum KeyLoader {
    static func start(_ core: StoreCore) {
        DispatchQueue.global(qos: .utility).async {
            guard core.beginReading() else { return }
            defer { core.endReading() }
            do {
                try core.pool.read { database in
                    var lows: [UInt64] = []
                    // Answered from the index alone.
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
                // Stays incomplete: every miss looks at the disk, which is slower and right.
            }
        }
    }
}
