/// What the writer knows of the journal of changes: its bound, and what is to be written to it with the next commit.
///
/// A row holds the changes of one commit. An entry is mostly a byte: objects that came together have numbers that follow
/// one another, and so do their sequences.
///
/// ```
/// runs of consecutive sequences, the first run first, each:
///     distance of its first sequence from the row's          varint
///     number of entries                                      varint
///     entries: object's distance from the one before, kind   varint (zigzag · 4 + kind)
/// ```
struct Journal {
    struct Entry: Equatable {
        var sequence: Int64
        var object: ObjectID
        var kind: ObjectChange.Kind
    }

    /// How many changes are kept; 0: none, and none are written.
    let limit: Int64
    /// Changes up to this sequence are no longer there.
    var floor: Int64 = 0
    /// How many changes were ever written.
    var total: Int64 = 0
    /// How many of them are no longer there.
    var dropped: Int64 = 0
    /// `floor` and `dropped`, if the transaction under way is committed.
    var newStart: (floor: Int64, dropped: Int64)?
    /// The changes of the batch under way.
    var pending: [Entry] = []
    /// Whether what is deleted now is to be forgotten by name as well.
    var isErasing = false

    var isOn: Bool { limit > 0 }

    /// How many changes are there.
    var count: Int64 { total - dropped }

    /// Whether there are so many that the oldest should go; not each time one is added.
    var isOverfull: Bool { count > limit + limit / 8 }

    init(limit: Int64) {
        self.limit = limit
    }

    // MARK: As bytes

    /// The sequence is that of the last entry.
    static func encode(_ entries: [Entry], at sequence: Int64) -> [UInt8] {
        var writer = VariableWriter()
        var last: Int64 = 0
        var start = 0
        while start < entries.count {
            var end = start + 1
            while end < entries.count, entries[end].sequence == entries[end - 1].sequence + 1 { end += 1 }
            writer.append(UInt64(sequence - entries[start].sequence))
            writer.append(UInt64(end - start))
            for entry in entries[start..<end] {
                let distance = entry.object.rawValue - last
                writer.append(UInt64(bitPattern: distance << 1 ^ distance >> 63) << 2 | UInt64(entry.kind.rawValue))
                last = entry.object.rawValue
            }
            start = end
        }
        return writer.bytes
    }

    static func decode(_ bytes: [UInt8], at sequence: Int64) throws(StoreError) -> [Entry] {
        let isCutShort = StoreError.corrupt("a row of the journal is cut short")
        var reader = VariableReader(bytes)
        var entries: [Entry] = []
        var last: Int64 = 0
        while !reader.isAtEnd {
            guard let distance = reader.next().flatMap(Int64.init(exactly:)), let count = reader.next() else {
                throw isCutShort
            }
            var number = sequence - distance
            for _ in 0..<count {
                guard let coded = reader.next(), let kind = ObjectChange.Kind(rawValue: UInt8(coded & 3)) else {
                    throw isCutShort
                }
                let zigzag = coded >> 2
                last += Int64(bitPattern: zigzag >> 1) ^ -Int64(bitPattern: zigzag & 1)
                entries.append(Entry(sequence: number, object: ObjectID(rawValue: last), kind: kind))
                number += 1
            }
        }
        return entries
    }
}
