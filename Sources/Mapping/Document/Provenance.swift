/// Where what is known of one object comes from, member by member.
public struct Provenance: Sendable {
    /// The declared members in the order of their declaration, then those that are not declared.
    public var members: [Member]

    /// A value as one response showed it.
    public struct Sighting: Sendable, Equatable {
        /// As JSON; objects in it are shown by their identities.
        public var value: [UInt8]
        /// The sequence of the observation that showed it last.
        public var source: Int64
        /// When that was: the end of its interval, in microseconds of the store's clock.
        public var time: Int64
    }

    /// What a value that was gathered over several responses is made of.
    public struct Item: Sendable, Equatable {
        /// As JSON.
        public var value: [UInt8]
        /// The effective time of the response that showed it: of a read its start, of a write its end.
        public var time: Int64
    }

    /// How a member stands.
    public enum Standing: String, Sendable {
        /// Its value is settled.
        case known
        /// Its value is settled, and another one was seen that cannot be ordered against it.
        case doubt
        /// It came to be over several responses, by a policy of its own.
        case gathered
        /// No sound value is known.
        case quarantined
        /// A write or a deletion came after all that is known of it: it moves nowhere.
        case outdated
        /// It belongs to the response, by declaration.
        case local
        /// It belongs to the response, for want of a declaration.
        case undeclared
    }

    /// One member.
    public struct Member: Sendable {
        /// Its place in the upstream's JSON, as a JSON pointer.
        public var pointer: String
        /// The declared properties that are read from there.
        public var properties: [String] = []
        /// How it stands.
        public var standing: Standing
        /// How new values meet known ones.
        public var policy = MergePolicy.latest
        /// Whether it moves into other responses.
        public var moves = false
        /// The settled value, or the newest that is shown of it.
        public var value: [UInt8]?
        /// Which response showed that value last.
        public var shown: Sighting?
        /// What the settled value replaced, and why.
        public var replaced: Knowledge.Former?
        /// What stands against the settled value.
        public var challenger: Sighting?
        /// Values that fail their checks.
        public var quarantined: [Sighting] = []
        /// What a gathered value is made of.
        public var items: [Item] = []
    }
}
