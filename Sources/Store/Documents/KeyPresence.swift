import Dispatch
import GRDB
import Synchronization

/// The set of all document keys, in memory: lets a miss skip the disk.
///
/// Holds the lower halves of the digests in one flat table of 8 bytes a slot.
/// Contains every key until the keys of a store just opened have been read.
/// May also contain keys whose halves collide, or that went during that
/// reading. A stored key is never missing.
final class KeyPresence: Sendable {
    private struct Table {
        /// 0 is an empty slot; the half 0 itself is stored as 1.
        var slots = [UInt64](repeating: 0, count: 1024)
        var count = 0
        var isComplete = false

        private func position(of value: UInt64) -> Int {
            let mask = slots.count - 1
            var index = Int(truncatingIfNeeded: value) & mask
            while slots[index] != 0, slots[index] != value { index = (index + 1) & mask }
            return index
        }

        func contains(_ value: UInt64) -> Bool { slots[position(of: value)] == value }

        mutating func insert(_ value: UInt64) {
            let index = position(of: value)
            guard slots[index] == 0 else { return }
            slots[index] = value
            count += 1
            if count * 2 > slots.count { grow() }
        }

        mutating func remove(_ value: UInt64) {
            let mask = slots.count - 1
            var hole = position(of: value)
            guard slots[hole] == value else { return }
            slots[hole] = 0
            count -= 1
            // Backward shift: a value that could not be found past the hole moves into it.
            var index = (hole + 1) & mask
            while slots[index] != 0 {
                let home = Int(truncatingIfNeeded: slots[index]) & mask
                if (index - home) & mask >= (index - hole) & mask {
                    slots[hole] = slots[index]
                    slots[index] = 0
                    hole = index
                }
                index = (index + 1) & mask
            }
        }

        private mutating func grow() {
            let old = slots
            slots = [UInt64](repeating: 0, count: old.count * 2)
            for value in old where value != 0 { slots[position(of: value)] = value }
        }
    }

    private let table = Mutex(Table())

    func mayContain(_ low: UInt64) -> Bool {
        table.withLock { !$0.isComplete || $0.contains(max(low, 1)) }
    }

    func insert(_ lows: [UInt64]) {
        table.withLock { table in
            for low in lows { table.insert(max(low, 1)) }
        }
    }

    func remove(_ lows: [UInt64]) {
        table.withLock { table in
            for low in lows { table.remove(max(low, 1)) }
        }
    }

    func complete() {
        table.withLock { $0.isComplete = true }
    }
}

/// Reads the keys of a store just opened into memory, while the first requests are served.
enum KeyLoader {
    static func start(_ core: StoreCore) {
        DispatchQueue.global(qos: .utility).async {
            guard core.beginReading() else { return }
            defer { core.endReading() }
            do {
                try core.pool.read { database in
                    var lows: [UInt64] = []
                    // Reads only the index.
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
                // Stays incomplete: every miss looks at the disk, which is slower but correct.
            }
        }
    }
}
