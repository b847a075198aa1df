public import Mapping

/// A pattern of paths of one upstream that a write invalidates; queries are ignored.
public struct InvalidationPattern: Sendable, Equatable {
    /// The upstream's name.
    public var upstream: String
    /// The base path; patterns match what follows it.
    public var base: String
    /// The pattern, its captures filled in.
    public var pattern: RoutePattern
    /// The beginning of every path that it matches.
    private let start: String

    /// Makes a pattern of paths below a base path.
    public init(upstream: String, base: String, pattern: RoutePattern) {
        self.upstream = upstream
        self.base = base
        self.pattern = pattern
        start = base + pattern.plainStart
    }

    /// Whether it matches a document's path and query.
    public func matches(url: some StringProtocol) -> Bool {
        let path = url.beforeQuery.utf8
        // Nearly all other paths begin differently.
        guard path.starts(with: start.utf8) || path.starts(with: "\(base)//".utf8) else { return false }
        return pattern.matches(path: String(decoding: path.dropFirst(base.utf8.count), as: UTF8.self))
    }
}

/// A write whose response has come, or never will.
public struct SettledWrite: Sendable {
    /// What it did to its object.
    public enum Effect: Sendable, Equatable {
        /// It may have changed all that its response does not show.
        case changed
        /// It deleted the object.
        case deleted
        /// The object did not exist; nothing has changed.
        case absent
    }

    /// The upstream's name.
    public var upstream: String
    /// Whose write it is.
    public var principal: PrincipalID
    /// The representation asked for.
    public var context: String
    /// The path that was written to.
    public var path: String
    /// The request's method; empty if the daemon ended before the response came.
    public var method = ""
    /// When its response was complete, or Larder gave up waiting.
    public var time: Int64
    /// What it did to its object.
    public var effect: Effect
    /// The object that the path names, by its route.
    public var bound: BoundObject?
    /// What its response shows.
    public var observation: ReceivedObservation?
    /// Paths whose documents are removed.
    public var targets: [InvalidationTarget] = []
    /// Paths whose documents are removed unless the models say how a deletion shows in them.
    public var collections: [InvalidationTarget] = []
    /// Further paths whose documents are removed.
    public var patterns: [InvalidationPattern] = []
    /// The mark that was made before it was sent.
    public var suspect: SuspectID?
    /// Whether its path is that of a collection, in which it may have created an object.
    public var isCreation = false

    /// Describes a write.
    public init(
        upstream: String,
        principal: PrincipalID,
        context: String,
        path: String,
        time: Int64,
        effect: Effect = .changed,
        bound: BoundObject? = nil
    ) {
        self.upstream = upstream
        self.principal = principal
        self.context = context
        self.path = path
        self.time = time
        self.effect = effect
        self.bound = bound
    }
}

/// What the store did for a write.
public struct WriteSettlement: Sendable, Equatable {
    /// Further paths whose documents were removed: of collections, and of a created object.
    public var removed: [String] = []
    /// The mapping's warnings about its response.
    public var warnings: [MappingWarning] = []
}

/// A response that says that an object does not exist: a 404 or 410 to a GET.
public struct ObservedAbsence: Sendable {
    /// The request.
    public var key: DocumentKey
    /// Its method.
    public var method = "GET"
    /// The object that the path names, by its route.
    public var bound: BoundObject?
    /// When its request was sent, minus `Age`.
    public var start: Int64

    /// The object, if the path alone names it; a query may ask for something else than the object itself.
    var named: BoundObject? { key.url.utf8.contains(UInt8(ascii: "?")) ? nil : bound }

    /// Describes a response.
    public init(key: DocumentKey, bound: BoundObject?, start: Int64) {
        self.key = key
        self.bound = bound
        self.start = start
    }
}
