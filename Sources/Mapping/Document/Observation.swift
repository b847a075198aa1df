/// The arrival of versions with one answer: which answer, and when it was observed on the store's own clock.
public struct Observation: Sendable, Equatable {
    /// What kind of answer showed the object.
    public enum Kind: UInt8, Sendable {
        /// An answer about this object.
        case detail = 0
        /// An answer of a list or search, which may lag behind.
        case list = 1
        /// The answer to a write.
        case write = 2
    }

    /// The number of the answer; what one answer shows twice has one number.
    public var sequence: Int64
    /// When the request was sent, minus the answer's `Age`; microseconds.
    public var start: Int64
    /// When the answer was complete, minus its `Age`; microseconds.
    ///
    /// What an intermediary has kept for a while does not tell of what happened since.
    public var end: Int64
    /// The kind of answer.
    public var kind: Kind
    /// The number of the route that the answer fell under; 0: unknown.
    public var route: Int64

    /// Describes an arrival.
    public init(sequence: Int64, start: Int64, end: Int64, kind: Kind, route: Int64 = 0) {
        self.sequence = sequence
        self.start = start
        self.end = end
        self.kind = kind
        self.route = route
    }
}

/// One version of an object, and when it was observed.
public struct Contribution: Sendable, Equatable {
    /// When.
    public var observation: Observation
    /// The store's number of the version; opaque here.
    public var version: Int64
    /// The version's bytes in payload form.
    public var payload: [UInt8]
    /// Which answer showed it, the same for every refresh of that answer; 0 where nobody needs to know any more.
    public var origin: Int64

    /// Pairs a version with its observation.
    public init(observation: Observation, version: Int64, payload: [UInt8], origin: Int64 = 0) {
        self.origin = origin
        self.observation = observation
        self.version = version
        self.payload = payload
    }
}
