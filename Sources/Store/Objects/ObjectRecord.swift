import Mapping

/// The decoded row of one object, while the writer works on a batch.
///
/// Every stored version of the object has an entry, because it is the base of the settled values, because documents pin it, or
/// both. If very many versions are only pinned, the oldest are rows of `_spilled` instead.
final class ObjectRecord {
    struct Entry: Equatable {
        var version: VersionID
        /// The digest of the payload; equal payloads of one object are one version.
        var content: UInt64
        /// How many places in documents show it.
        var uses: Int64
        /// For the base, the last observation that showed it; `zero` if the version is only pinned.
        var observation: ObservationID
    }

    let id: ObjectID
    let collection: CollectionID
    let identity: StoredIdentity
    var changed = CommitNumber.zero
    /// The entries of versions, beginning with the base, if there is one.
    var entries: [Entry] = []
    /// How many places in documents show versions without an entry.
    var spilledUses: Int64 = 0
    /// The settled values, if they differ from the base version.
    var merged: [UInt8]?
    /// When the settled values were observed.
    private(set) var knowledge = Knowledge.whole(isEmbedded: false)
    /// The values of members with a merge policy.
    var accumulated: [UInt8] = []
    /// Since when its members show it to be deleted; nil under a tombstone, which has the same column.
    var deletedSince: Int64?
    /// When the latest write to it was complete, whatever replaced its values since; nil for none.
    private(set) var wrote: Int64?
    private(set) var mark: ObjectMark?
    private(set) var markSource = MarkSourceChange.none
    let isStored: Bool
    let wasPinned: Bool
    var isModified = false
    /// The versions of it in the response being stored.
    var contributions: [Contribution] = []

    /// What becomes of the stored request that caused the mark.
    enum MarkSourceChange: Equatable {
        case none
        /// The new mark has no known source.
        case removed
        case replaced(MarkSource)
    }

    init(id: ObjectID, collection: CollectionID, identity: StoredIdentity) {
        (self.id, self.collection, self.identity) = (id, collection, identity)
        (isStored, wasPinned) = (false, false)
    }

    /// Reads the columns id, collection, identity and changed, those of `StoredState`, and wrote.
    init(_ row: QueryRow) throws {
        (id, collection, identity) = (row.id(0), row.id(1), StoredIdentity(row, column: 2))
        changed = row.id(3)
        let stored = try StoredState(row, from: 4)
        (entries, merged, knowledge) = (stored.entries, stored.merged, stored.knowledge)
        (accumulated, deletedSince, mark) = (stored.accumulated, stored.deletedSince, stored.mark)
        wrote = row.isNull(11) ? nil : row.integer(11)
        wasPinned = entries.contains { $0.uses > 0 }
        // In the file, the last entry may represent all spilled versions.
        if entries.last?.version == Self.spilled { spilledUses = entries.removeLast().uses }
        isStored = true
    }

    /// The version that gives the settled values their shape; nil if nothing is known.
    var base: Entry? { entries.first.flatMap { $0.observation == .zero ? nil : $0 } }

    /// The observations of all that is known of it; empty if nothing is known.
    var observations: [ObservationID] {
        base.map { [$0.observation] + knowledge.sources.map(ObservationID.init) } ?? []
    }

    var isPinned: Bool { spilledUses > 0 || entries.contains { $0.uses > 0 } }

    /// Whether nothing of it needs to be stored.
    var isEmpty: Bool { spilledUses == 0 && entries.allSatisfy { $0.uses == 0 && $0.observation == .zero } }

    /// The entries as stored, with one for the uses of spilled versions.
    var state: [UInt8] {
        guard spilledUses > 0 else { return Self.encode(entries) }
        return Self.encode(entries + [Entry(version: Self.spilled, content: 0, uses: spilledUses, observation: .zero)])
    }

    /// The version number of that entry, which no real version has.
    private static let spilled = VersionID.zero

    /// The number of entries beyond which the oldest pinned-only ones are spilled.
    private static let entryLimit = 128

    /// Removes and returns the oldest pinned-only entries, if there are very many.
    func takeSurplus() -> [Entry] {
        guard entries.count > Self.entryLimit else { return [] }
        let first = base == nil ? 0 : 1
        // New entries are added at the end.
        let surplus = Array(entries[first...].dropLast(Self.entryLimit / 2))
        entries.removeSubrange(first..<first + surplus.count)
        spilledUses += surplus.reduce(0) { $0 + $1.uses }
        return surplus
    }

    /// Sets when the settled values were observed; the caller counts the uses of observations.
    func setKnowledge(_ knowledge: Knowledge) {
        self.knowledge = knowledge
        isModified = true
    }

    /// Sets the mark, and the request that caused it, if known.
    func setMark(_ mark: ObjectMark?, by source: MarkSource? = nil) {
        guard mark != self.mark else { return }
        self.mark = mark
        markSource = source.map { .replaced($0) } ?? .removed
        if mark?.isTombstone == true { deletedSince = nil }
        isModified = true
    }

    func setWrite(at time: Int64) {
        guard wrote.map({ $0 < time }) ?? true else { return }
        wrote = time
        isModified = true
    }

    /// Turns the tombstone of an object that exists again into an `unobserved` mark with the same time and source.
    func weakenTombstone() {
        guard case .tombstone(let time)? = mark else { return }
        mark = .unobserved(time, isReused: true)
        isModified = true
    }

    func isKnownOnly(as version: VersionID) -> Bool {
        mark == nil && merged == nil && base?.version == version && knowledge.doubts.isEmpty
    }

    func index(of version: VersionID) -> Int? {
        guard entries.count > Self.many else { return entries.firstIndex { $0.version == version } }
        return finder.index(in: entries, { $0.byVersion[version] }) { $0.version == version }
    }

    /// The entry of a content: the digest of a payload and its declared model version.
    func index(ofContent content: UInt64) -> Int? {
        guard entries.count > Self.many else { return entries.firstIndex { $0.content == content } }
        return finder.index(in: entries, { $0.byContent[content] }) { $0.content == content }
    }

    /// The number of versions beyond which `finder` replaces a linear search.
    private static let many = 32
    private var finder = EntryFinder()

    // MARK: Stored form

    static func encode(_ entries: [Entry]) -> [UInt8] {
        var writer = VariableWriter()
        var last: Int64 = 0
        for entry in entries {
            writer.append(signed: entry.version.rawValue - last)
            writer.append(UInt64(entry.uses))
            writer.append(UInt64(entry.observation.rawValue))
            writer.append(fixed: entry.content)
            last = entry.version.rawValue
        }
        return writer.bytes
    }

    static func decode(_ bytes: [UInt8]) throws(StoreError) -> [Entry] {
        var reader = VariableReader(bytes, of: "an object's state is")
        var entries: [Entry] = []
        var last: Int64 = 0
        while !reader.isAtEnd {
            last &+= try reader.nextSigned()
            let uses = try reader.nextInteger()
            let observation = ObservationID(rawValue: try reader.nextInteger())
            guard RowBounds.numbers ~= uses else {
                throw .corrupt("an object's state has more uses than a store can have")
            }
            let (version, content) = (VersionID(rawValue: last), try reader.nextFixed())
            entries.append(Entry(version: version, content: content, uses: uses, observation: observation))
        }
        return entries
    }

    /// The column `deleted`: the time of its tombstone; or since when its members show it to be deleted, times -1.
    var deleted: Int64? {
        if case .tombstone(let time) = mark { return time }
        return deletedSince.map { -max($0, 1) }
    }

    /// The column `unobserved`: negative for a write of the principal's own.
    var unobserved: Int64? { if case .unobserved(let time, let isOwn, _) = mark { isOwn ? -time : time } else { nil } }
}

extension ObjectMark {
    init?(deleted: Int64, unobserved: Int64, reused: Int64) {
        // A negative `deleted` is the time since when the object's members show the deletion.
        if deleted > 0 {
            self = .tombstone(deleted)
        } else if unobserved != 0 {
            self = .unobserved(abs(unobserved), isOwn: unobserved < 0, isReused: reused != 0)
        } else {
            return nil
        }
    }
}

/// An index of the entries of an object with very many versions.
///
/// It only gives hints: each one is checked, and the index is rebuilt if one is wrong.
struct EntryFinder {
    private(set) var byVersion: [VersionID: Int] = [:]
    private(set) var byContent: [UInt64: Int] = [:]
    private var count = 0

    mutating func index(
        in entries: [ObjectRecord.Entry],
        _ hint: (EntryFinder) -> Int?,
        _ isWanted: (ObjectRecord.Entry) -> Bool
    ) -> Int? {
        // New entries are at the end. Any other change affects their number or makes hints wrong.
        if count > entries.count { self = EntryFinder() }
        while count < entries.count { add(entries[count]) }
        guard let index = hint(self), !isWanted(entries[index]) else { return hint(self) }
        self = EntryFinder()
        for entry in entries { add(entry) }
        return hint(self)
    }

    private mutating func add(_ entry: ObjectRecord.Entry) {
        byVersion[entry.version] = count
        if byContent[entry.content] == nil { byContent[entry.content] = count }
        count += 1
    }
}

/// An object's identity as stored in its row: an integer if the canonical text is one.
enum StoredIdentity: Hashable {
    case integer(Int64)
    case text(String)

    init(_ canonical: String) {
        if let number = Int64(canonical), String(number) == canonical {
            self = .integer(number)
        } else {
            self = .text(canonical)
        }
    }

    init(_ row: QueryRow, column: Int32) {
        self = row.isInteger(column) ? .integer(row.integer(column)) : .text(row.string(column))
    }

    var sql: SQLValue {
        switch self {
        case .integer(let number): .integer(number)
        case .text(let text): .string(text)
        }
    }

    var text: String {
        switch self {
        case .integer(let number): String(number)
        case .text(let text): text
        }
    }
}
