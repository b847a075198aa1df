/// One response as evidence about objects: its number, its kind, and when it was observed on the store's own clock.
public struct Observation: Sendable, Equatable {
    /// The kind of response that showed an object.
    public enum Kind: UInt8, Sendable {
        case detail = 0
        /// A response of a list or search, which may lag.
        case list = 1
        case write = 2
        /// No response: somebody has given the object (`larder seed`).
        case seed = 3
        /// No response: the upstream has sent the object, at some time after it had this state (a webhook).
        case delivery = 4
    }

    /// The number of the response, shared by everything in it.
    public var sequence: Int64
    /// When the request was sent, minus the response's `Age`; microseconds.
    public var start: Int64
    /// When the response was complete; microseconds.
    public var end: Int64
    public var kind: Kind

    /// Describes an observation.
    public init(sequence: Int64, start: Int64, end: Int64, kind: Kind) {
        (self.sequence, self.start, self.end, self.kind) = (sequence, start, end, kind)
    }

    /// The start of the interval in which the values were true at some time; embedded objects may lag like a list.
    public func lo(isEmbedded: Bool, lag: Lag) -> Int64 {
        switch kind {
        case .seed: start
        // It may be sent again long after.
        case .delivery: Self.beforeAll
        case _ where isEmbedded: start - lag.lists
        case .detail: start - lag.details
        case .list: start - lag.lists
        case .write: start
        }
    }

    /// The end of that interval; what was given is older than every response that is complete later.
    var hi: Int64 { kind == .seed ? Self.beforeAll : end }

    /// A time before that of any response; microseconds.
    static let beforeAll: Int64 = -(1 << 52)

    /// The stamp that counts: a given one may be in the future, and must not keep later responses away.
    func counting(_ stamp: ModificationTime?) -> ModificationTime? { kind == .seed ? nil : stamp }

    /// The time at which a response counts: the start of a read, the end of a write.
    public var effectiveTime: Int64 { kind == .write ? end : start }
}

/// How far responses may lag behind the truth, in microseconds (`lag:`).
public struct Lag: Sendable, Equatable {
    /// The lag of lists, searches, and objects embedded in others.
    public var lists: Int64
    /// The lag of responses about one object.
    public var details: Int64

    /// Creates the lag that the config declares.
    public init(lists: Int64, details: Int64 = 0) { (self.lists, self.details) = (lists, details) }
}

/// One version of an object as shown by one response.
public struct Contribution: Sendable, Equatable {
    public var observation: Observation
    /// The store's number of the version; opaque here.
    public var version: Int64
    public var payload: [UInt8]
    /// The digest of the cache key under which it was shown, the same for every refresh; 0 if this is no longer needed.
    var origin: Int64
    /// Whether the object is within another one, or one of several; it may then lag like a list.
    public var isEmbedded: Bool
    /// Whether a 304 stands for it.
    public var isNotModified = false

    /// Pairs a version with its observation.
    public init(observation: Observation, version: Int64, payload: [UInt8], origin: Int64 = 0, isEmbedded: Bool = false)
    {
        (self.origin, self.observation, self.version) = (origin, observation, version)
        (self.payload, self.isEmbedded) = (payload, isEmbedded)
    }

    /// The start of the interval in which the version was true at some time.
    public func lo(lag: Lag) -> Int64 { observation.lo(isEmbedded: isEmbedded, lag: lag) }

    /// The document that said it, and when; nil for a write or a delivery.
    var word: DocumentWord? {
        guard observation.kind != .write, origin != 0 else { return nil }
        return DocumentWord(document: origin, sent: observation.start, isNotModified: isNotModified)
    }

    /// The kind of response that it counts as.
    var kind: Observation.Kind { isEmbedded && observation.kind != .seed ? .list : observation.kind }
}

/// What a document says of an object in one response.
struct DocumentWord: Sendable {
    /// The digest of the document's cache key.
    var document: Int64
    /// `lo` without the lag: `lag` orders different documents, not two words of one.
    var sent: Int64
    /// Whether it is a 304, which stands for what its validator covers.
    var isNotModified = false
}

/// The word that settled or confirmed a value last.
public struct LastWord: Equatable, Sendable {
    /// The digest of the document's cache key.
    public var document: Int64
    /// When the response was complete.
    public var completed: Int64

    /// Names a document and a time.
    public init(document: Int64, completed: Int64) { (self.document, self.completed) = (document, completed) }
}
