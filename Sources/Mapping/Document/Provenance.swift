/// Where what is known of one object comes from, member by member.
public struct Provenance: Sendable {
    /// The declared members in the order of their declaration, then those that are not declared.
    public var members: [Member]

    /// A value as one answer showed it.
    public struct Sighting: Sendable, Equatable {
        /// As JSON; objects in it are shown by their identities.
        public var value: [UInt8]
        /// Which answer, and when.
        public var observation: Observation
    }

    /// Why one sighting counts for less than another (law 3).
    public enum Rule: String, Sendable {
        /// The object's `modified` member is later in the other.
        case modified
        /// It is a list's, too soon after a detail or a write.
        case lag
        /// The other was observed later.
        case later
    }

    /// A sighting that counts no more.
    public struct Overruled: Sendable, Equatable {
        /// What was shown.
        public var sighting: Sighting
        /// By which rule; nil where nothing that is still known tells.
        public var rule: Rule?
    }

    /// What a value that was gathered over several answers is made of.
    public struct Item: Sendable, Equatable {
        /// As JSON.
        public var value: [UInt8]
        /// The effective time of the answer that showed it: of a read its start, of a write its end.
        public var time: Int64
    }

    /// How a member stands.
    public enum Standing: String, Sendable {
        /// Its newest value is known.
        case known
        /// Answers that overlapped in time disagree: each document keeps its own literal.
        case disputed
        /// One answer shows the object several times and disagrees with itself about it.
        case contradicted
        /// It came to be over several answers, by a policy of its own.
        case gathered
        /// No sound value is known.
        case quarantined
        /// A write or a deletion came after all that told of it: what was known until then moves nowhere.
        case outdated
        /// It belongs to the answer, by declaration.
        case local
        /// It belongs to the answer, for want of a declaration.
        case undeclared
    }

    /// One member.
    public struct Member: Sendable {
        /// Its place in the upstream's JSON, as a JSON pointer.
        public var pointer: String
        /// The declared properties that are read from there.
        public var properties: [String]
        /// How it stands.
        public var standing: Standing
        /// How new values meet known ones.
        public var policy: MergePolicy
        /// Whether it moves into other answers.
        public var moves: Bool
        /// The newest value, or the newest that is shown of it; nil where several are candidates.
        public var value: [UInt8]?
        /// Who shows that value, the newest first; the candidates where it is disputed or contradicted.
        public var sightings: [Sighting]
        /// What was known before.
        public var overruled: [Overruled]
        /// Values that fail their checks.
        public var quarantined: [Sighting]
        /// What a gathered value is made of.
        public var items: [Item]
    }
}

extension MergePolicy {
    /// Its name in the config.
    public var name: String {
        switch self {
        case .latest: "latest"
        case .replace: "replace"
        case .keep: "keep"
        case .union: "union"
        case .sum: "sum"
        }
    }
}

extension ObservationOrder {
    /// By which rule `left` is newer than `right`; nil where it is not.
    func rule(_ left: Side, over right: Side) -> Provenance.Rule? {
        guard overrides(left, right) else { return nil }
        if let mine = left.modified, let theirs = right.modified, mine.isLater(than: theirs) == true {
            return .modified
        }
        // Without the lag of lists, what would decide is the clock alone.
        let byClock = ObservationOrder(lag: 0).overrides(
            Side(observation: left.observation, modified: nil),
            Side(observation: right.observation, modified: nil)
        )
        return byClock ? .later : .lag
    }
}
