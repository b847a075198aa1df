import GRDB

/// Looks for the documents that show an object, the newest first.
///
/// No index leads from objects to documents: every answer that comes in would pay for a question that people ask now and
/// then. So the pins of all documents are looked at, in slices of some milliseconds, each in a snapshot of its own, so
/// that neither the WAL nor other readers wait for it. An object knows in how many places it is shown: once these are
/// found, the rest need not be looked at.
struct ShowingScan: Sendable {
    let object: ObjectID
    /// Documents from this one on have been looked at.
    private(set) var position: DocumentID
    private(set) var isAtEnd = false
    /// In how many places it is shown that have not been met yet; nil where the scan did not see the beginning.
    private var missing: Int64?
    private var isBegun: Bool

    /// How many documents are looked at between two looks at the clock.
    private static let stride = 64

    /// - Parameter position: where an earlier scan left off.
    init(object: ObjectID, position: DocumentID? = nil) {
        self.object = object
        self.position = position ?? .max
        isBegun = position != nil
    }

    /// The next of them, so many at most, until a point in time.
    mutating func next(_ limit: Int, until deadline: ContinuousClock.Instant, in database: Database) throws
        -> [DocumentID]
    {
        if !isBegun {
            isBegun = true
            let entries = try Query(database, "SELECT state FROM _objects WHERE id = ?")
                .first(.id(object)) { try ObjectRecord.decode($0.bytes(0)) }
            missing = entries?.reduce(0) { $0 + $1.uses } ?? 0
        }
        var found: [DocumentID] = []
        var looks = 0
        var isStopped = missing == 0
        var (position, missing) = (position, missing)
        if !isStopped {
            try Query(database, "SELECT document, pins FROM _bodies WHERE document < ? ORDER BY document DESC")
                .eachWhile(.id(position)) { row in
                    position = row.id(0)
                    let places = row.withBytes(1) { Pins.places(of: object, in: $0) }
                    if places > 0 {
                        found.append(position)
                        missing = missing.map { $0 - Int64(places) }
                    }
                    looks += 1
                    isStopped = found.count == limit || missing == 0
                    if looks % Self.stride == 0, ContinuousClock.now >= deadline { isStopped = true }
                    return !isStopped
                }
        }
        (self.position, self.missing) = (position, missing)
        isAtEnd = !isStopped || missing.map { $0 <= 0 } ?? false
        return found
    }
}

extension Pins {
    /// How often an object is pinned; nothing is made of the other pins.
    static func places(of object: ObjectID, in bytes: UnsafeRawBufferPointer) -> Int {
        var count = 0
        var (last, value): (Int64, UInt64) = (0, 0)
        var shift: UInt64 = 0
        var isObject = true
        for byte in bytes {
            if shift < 64 { value |= UInt64(byte & 0x7f) << shift }
            shift += 7
            guard byte < 0x80 else { continue }
            if isObject {
                last = last &+ (Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1))
                if last == object.rawValue { count += 1 }
            }
            isObject.toggle()
            (value, shift) = (0, 0)
        }
        return count
    }
}
