/// Values that come and go: which members of objects two routes disagree about, and how often.
///
/// A value that an object really changes to and fro is seen to change by one and the same route. Where each of two routes
/// shows its own, and what is known goes from one to the other and back with every answer, it is the upstream that
/// disagrees with itself. In memory, and bounded: what is forgotten is found out anew.
struct FlipFlops {
    /// The third return settles it.
    static let limit = 3
    private static let capacity = 4096

    /// One member of one object.
    struct Member: Hashable {
        var object: ObjectID
        var member: String
    }

    /// Who showed what.
    struct Shown {
        var route: Int64
        /// Digest of the value.
        var value: UInt64
    }

    private struct Pair: Hashable {
        var lower: Int64
        var higher: Int64
    }

    private struct Record {
        /// The value that each of the two routes showed last.
        var shown: [Int64: UInt64]
        /// How often a route came back to what it had shown.
        var returns = 0
    }

    private var records: [Member: [Pair: Record]] = [:]

    /// Notes that what is known of a member went from one route's value to another one's.
    ///
    /// - Returns: whether it has returned between these two so often that it must be they who disagree.
    mutating func note(_ member: Member, from old: Shown, to new: Shown) -> Bool {
        if records.count >= Self.capacity, records[member] == nil { records = [:] }
        let pair = Pair(lower: min(old.route, new.route), higher: max(old.route, new.route))
        var record = records[member]?[pair] ?? Record(shown: [:])
        if record.shown[new.route] == new.value { record.returns += 1 }
        record.shown = [old.route: old.value, new.route: new.value]
        records[member, default: [:]][pair] = record
        guard record.returns >= Self.limit else { return false }
        records[member] = nil
        return true
    }

    /// Forgets a member that has really changed.
    mutating func forget(_ member: Member) {
        guard !records.isEmpty else { return }
        records[member] = nil
    }
}
