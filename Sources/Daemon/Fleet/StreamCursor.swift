import Proxy

struct StreamEntry: Sendable, Equatable {
    var id: EntryID
    /// The entry before it, which the script that appended it has named.
    var predecessor: EntryID
    var sealed: [UInt8]
}

/// How far a stream has been read, and whether an entry is missing; a value.
///
/// Entries go missing when the stream is trimmed before it is read, evicted or deleted, and when a replica without its end takes
/// the server's place.
struct StreamCursor: Sendable, Equatable {
    /// The last entry that was read.
    private(set) var position: EntryID
    /// The last entry of the stream when that was asked for last.
    private(set) var last: EntryID

    init(at position: EntryID) { (self.position, last) = (position, position) }

    /// Reads entries that were found after `position`.
    ///
    /// - Parameter isAll: whether they are all that the stream had, at a time after the last call of `checked`.
    /// - Returns: those that follow, in order, and whether after them at least one is missing.
    mutating func take(_ entries: [StreamEntry], isAll: Bool) -> (taken: [StreamEntry], hasGap: Bool) {
        var taken: [StreamEntry] = []
        for entry in entries {
            guard entry.predecessor == position, entry.id > position else { return (taken, true) }
            position = entry.id
            taken.append(entry)
        }
        return (taken, isAll && position < last)
    }

    /// Notes the stream's last entry; false if it is before what was read already, so that the stream is another one.
    mutating func checked(last: EntryID) -> Bool {
        self.last = last
        return last >= position
    }
}
