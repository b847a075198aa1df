/// What became of one object, at one commit sequence of its own.
public struct ObjectChange: Sendable, Equatable {
    /// What became of it.
    public enum Kind: UInt8, Sendable, CaseIterable {
        /// An answer showed it for the first time, or for the first time since it was forgotten or deleted.
        case created = 0
        /// A member has a value now that it did not have before.
        case changed = 1
        /// It is known to be deleted.
        case deleted = 2
        /// A write happened, and nobody told what it made of the object.
        case unknown = 3

        /// The word for it, for people and programs.
        public var name: String {
            switch self {
            case .created: "created"
            case .changed: "changed"
            case .deleted: "deleted"
            case .unknown: "unknown"
            }
        }
    }

    /// The commit sequence; no two changes have the same.
    public var sequence: Int64
    /// What became of it.
    public var kind: Kind
    /// When it was committed: microseconds of the store's clock.
    public var time: Int64
    /// The upstream's name.
    public var upstream: String
    /// The principal's label.
    public var principal: String
    /// The representation it was asked for in.
    public var context: String
    /// The model's name; of a cluster its base's.
    public var model: String
    /// The models that it is an object of: of a cluster its base and the concrete one that its members choose, or every
    /// one where nothing is known of its members any more.
    public var models: [String]
    /// Its identity, as the store has it.
    public var identity: String
    /// Its identity as JSON, spelled by the upstream where an answer that shows it is still there.
    public var id: [UInt8]
    /// Its newest known members as JSON, as of the moment of reading; nil where none were asked for or are known.
    public var json: [UInt8]?
}

/// A part of the journal.
public struct ChangePage: Sendable {
    /// The changes, in the order of their sequences.
    public var changes: [ObjectChange]
    /// The commit sequence up to which this page tells everything: what to go on after.
    public var end: Int64
    /// Whether that was all there was.
    public var isLast: Bool
    /// The commit sequence up to which changes are no longer in the journal.
    public var floor: Int64
    /// Changes of this page's stretch that a clean has taken away, whose they were included.
    public var erased: Int
}
