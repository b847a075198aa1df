/// The arrival of versions with one response: which response, and when it was observed on the store's own clock.
public struct Observation: Sendable, Equatable {
    /// What kind of response showed the object.
    public enum Kind: UInt8, Sendable {
        /// A response about this object.
        case detail = 0
        /// A response of a list or search, which may lag behind.
        case list = 1
        /// The response to a write.
        case write = 2
    }

    /// The number of the response; what one response shows twice has one number.
    public var sequence: Int64
    /// When the request was sent, earlier by what the response's `Age` says; microseconds.
    public var start: Int64
    /// When the response was complete; microseconds.
    public var end: Int64
    /// The kind of response.
    public var kind: Kind

    /// Describes an arrival.
    public init(sequence: Int64, start: Int64, end: Int64, kind: Kind) {
        self.sequence = sequence
        self.start = start
        self.end = end
        self.kind = kind
    }

    /// The time since when what the response shows was certainly still true, or became so.
    ///
    /// - Parameter isEmbedded: whether the object in question stands within another one, or beside others.
    public func lo(isEmbedded: Bool, lag: Lag) -> Int64 {
        switch kind {
        case _ where isEmbedded: start - lag.lists
        case .detail: start - lag.details
        case .list: start - lag.lists
        case .write: start
        }
    }

    /// Since when a response speaks: a read is as old as its request, a write as new as its response.
    public var effectiveTime: Int64 { kind == .write ? end : start }
}

/// How far responses may lag behind the truth, in microseconds (`lag:`).
public struct Lag: Sendable, Equatable {
    /// Lists, searches, and objects embedded in others.
    public var lists: Int64
    /// Responses about one object.
    public var details: Int64

    /// What the config says.
    public init(lists: Int64, details: Int64 = 0) {
        self.lists = lists
        self.details = details
    }
}

/// One version of an object as one response shows it.
public struct Contribution: Sendable, Equatable {
    /// When.
    public var observation: Observation
    /// The store's number of the version; opaque here.
    public var version: Int64
    /// The version's bytes in payload form.
    public var payload: [UInt8]
    /// Which response showed it, the same for every refresh of that response; 0 where nobody needs to know any more.
    public var origin: Int64
    /// Whether it stands within another object, or beside others: then it may lag as a list does.
    public var isEmbedded: Bool

    /// Pairs a version with its observation.
    public init(
        observation: Observation,
        version: Int64,
        payload: [UInt8],
        origin: Int64 = 0,
        isEmbedded: Bool = false
    ) {
        self.origin = origin
        self.observation = observation
        self.version = version
        self.payload = payload
        self.isEmbedded = isEmbedded
    }

    /// The time since when what it shows was certainly still true, or became so.
    public func lo(lag: Lag) -> Int64 { observation.lo(isEmbedded: isEmbedded, lag: lag) }

    /// The kind of response that it counts as.
    var kind: Observation.Kind { isEmbedded ? .list : observation.kind }
}
