/// Finds entries of an object that is shown in very many versions.
///
/// What it remembers are places to look at first: each is checked, and all are noted anew where one does not hold.
struct EntryFinder {
    private var byVersion: [Int64: Int] = [:]
    private var byContent: [UInt64: Int] = [:]
    /// How many entries are noted.
    private var count = 0

    mutating func index(of version: Int64, in entries: [ObjectRecord.Entry]) -> Int? {
        note(entries)
        guard let index = byVersion[version] else { return nil }
        if index < entries.count, entries[index].version == version { return index }
        noteAnew(entries)
        return byVersion[version]
    }

    mutating func index(ofContent content: UInt64, in entries: [ObjectRecord.Entry]) -> Int? {
        note(entries)
        guard let index = byContent[content] else { return nil }
        if index < entries.count, entries[index].content == content { return index }
        noteAnew(entries)
        return byContent[content]
    }

    /// Entries are added at the end; whatever else is done to them leaves another number of them, or wrong places.
    private mutating func note(_ entries: [ObjectRecord.Entry]) {
        guard count != entries.count else { return }
        guard count < entries.count else { return noteAnew(entries) }
        for index in count..<entries.count { note(entries[index], at: index) }
        count = entries.count
    }

    private mutating func noteAnew(_ entries: [ObjectRecord.Entry]) {
        self = EntryFinder()
        for (index, entry) in entries.enumerated() { note(entry, at: index) }
        count = entries.count
    }

    private mutating func note(_ entry: ObjectRecord.Entry, at index: Int) {
        byVersion[entry.version] = index
        if byContent[entry.content] == nil { byContent[entry.content] = index }
    }
}
