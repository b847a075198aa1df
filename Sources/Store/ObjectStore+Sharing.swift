public import Mapping

/// What a response has shown of objects, by names alone, so that the stores of other machines can merge it.
public struct SharedObservation: Sendable, Equatable {
    /// One object as the response showed it.
    public struct Object: Sendable, Equatable {
        public var model: String
        /// The canonical identity.
        public var identity: String
        /// The object's JSON, in which references stand for the objects within it.
        public var payload: [UInt8]
        /// Whether it was within another object, or one of several.
        public var isEmbedded: Bool

        /// Describes an object.
        public init(model: String, identity: String, payload: [UInt8], isEmbedded: Bool = false) {
            (self.model, self.identity, self.payload, self.isEmbedded) = (model, identity, payload, isEmbedded)
        }
    }

    /// The digest that identifies the principal on every machine with the same key; empty for requests without credentials.
    public var principal: [UInt8]
    public var context: String
    /// Path and query of the response, as in its cache key.
    public var url: String
    /// Whether it is a list, a search, or the like, which may lag.
    public var isList: Bool
    /// The method of the write that it is the response to; nil for a read.
    public var write: String?
    /// As in `ReceivedDocument`.
    public var dividedBy: Int64?
    public var objects: [Object]

    /// Describes what a response has shown.
    public init(
        principal: [UInt8],
        context: String,
        url: String,
        isList: Bool,
        write: String? = nil,
        dividedBy: Int64? = nil,
        objects: [Object]
    ) {
        (self.principal, self.context, self.url) = (principal, context, url)
        (self.isList, self.write, self.dividedBy, self.objects) = (isList, write, dividedBy, objects)
    }

    /// Whether it shows an object.
    public func shows(_ object: BoundObject) -> Bool {
        objects.contains { $0.model == object.model && $0.identity == object.identity }
    }
}

/// One fetch on another machine; what comes of it is one response.
public struct SharedFetch: Sendable, Equatable {
    /// Identifies the process that has fetched.
    var sender: [UInt8]
    var url: String
    /// When its request was sent, by that machine's own clock.
    var start: Int64

    /// Describes a fetch.
    public init(sender: [UInt8], url: String, start: Int64) {
        (self.sender, self.url, self.start) = (sender, url, start)
    }
}

/// New values of objects that a response has shown here, for the stores of other machines.
public struct ShownValues: Sendable, Equatable {
    public var upstream: UpstreamKey
    public var observation: SharedObservation
    /// The objects whose values are too large to be sent, and whose former values were known here.
    public var oversized: [ObjectName] = []
    /// When the response's request was sent, minus `Age`.
    public var start: Int64
    public var end: Int64

    /// The largest payload of an object, and of all objects of one response, that is sent.
    static let (objectByteLimit, byteLimit) = (16 << 10, 256 << 10)
    /// The same of all objects in the response to a write, which goes into one entry.
    static let writeByteLimit = 64 << 10
}

/// What a response on another machine has shown.
public struct AppliedValues: Sendable, Equatable {
    var observation: SharedObservation
    /// When its request was sent, minus `Age`, and when it was complete; µs of this store's clock, widened by what is not known of
    /// the other machine's.
    var start: Int64
    var end: Int64
    var fetch: SharedFetch?

    /// Describes an observation of another machine.
    public init(_ observation: SharedObservation, start: Int64, end: Int64, fetch: SharedFetch? = nil) {
        (self.observation, self.start, self.end, self.fetch) = (observation, start, end, fetch)
    }
}

/// What another machine has announced, for this store.
public enum AppliedNews: Sendable, Equatable {
    case values(AppliedValues)
    /// A write has made something outdated, and its response has shown values.
    ///
    /// Nothing that may be older is served from the cache (law 10). For the principal who wrote, the objects that the response
    /// shows are as it shows them.
    case write(Invalidation, AppliedValues?)
    case invalidation(Invalidation)

    /// What it makes outdated; nil if it shows values only.
    public var invalidation: Invalidation? {
        switch self {
        case .values: nil
        case .write(let invalidation, _), .invalidation(let invalidation): invalidation
        }
    }
}

/// To whom new values are shown.
struct ValueSharing: Sendable {
    var isWanted: @Sendable (UpstreamKey) -> Bool
    var show: @Sendable (ShownValues) -> Void
}

extension ObjectStore {
    /// Sets the function that gets the new values that responses show: before the commit that makes them visible.
    ///
    /// It is called on the writer's thread, and must be quick. If the commit fails, the values were observed all the
    /// same. What other machines have observed does not come.
    public func showValues(
        where isWanted: @escaping @Sendable (_ upstream: UpstreamKey) -> Bool,
        to show: @escaping @Sendable (ShownValues) -> Void
    ) { core.sharing = ValueSharing(isWanted: isWanted, show: show) }

    /// Commits what other machines have announced, in its order and in one transaction.
    ///
    /// Values are merged with the times of the machine that has seen them. Of objects and principals that are not known
    /// here they are remembered, in bounded memory, until a response shows them. What is outdated is removed, and its
    /// objects are marked as unknown; that goes ahead of queued responses, as a write does. An invalidation of
    /// everything is a clean, which this does not do.
    public func commit(_ news: [AppliedNews], of upstream: UpstreamKey) async throws(StoreError) {
        let invalidations = news.compactMap(\.invalidation)
        for invalidation in invalidations { try await removeDocumentsOfPatterns(invalidation) }
        try await core.commit(.sharing, invalidations.isEmpty ? .prompt : .express) { session in
            for piece in news {
                switch piece {
                case .values(let shown): _ = try session.apply(shown, of: upstream)
                case .write(let invalidation, let shown): try session.apply(invalidation, isWrite: true, shown)
                case .invalidation(let invalidation): try session.apply(invalidation, isWrite: false)
                }
            }
        }
    }
}
