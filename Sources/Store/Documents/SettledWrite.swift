public import Mapping

/// A pattern of paths of one upstream that a write invalidates, with any query.
public struct InvalidationPattern: Sendable, Equatable {
    /// The upstream's name.
    public var upstream: String
    /// The base path; patterns match what follows it.
    public var base: String
    /// The pattern, with its captures filled in.
    public var pattern: RoutePattern
    /// The beginning of every path that it matches.
    private let start: String

    /// Creates a pattern for paths below a base path.
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

/// A write whose response has arrived, or never will.
public struct SettledWrite: Sendable {
    /// The effect on the written object.
    public enum Effect: Sendable, Equatable {
        /// The write may have changed everything that its response does not show.
        case changed
        /// The write deleted the object.
        case deleted
        /// The object did not exist, so nothing has changed.
        case absent
    }

    /// The upstream's name.
    public var upstream: String
    /// The principal that wrote.
    public var principal: PrincipalID
    /// The requested representation.
    public var context: String
    /// The path that was written to.
    public var path: String
    /// The request's method; empty if the daemon ended before the response arrived.
    public var method = ""
    /// When the response was complete, or Larder stopped waiting for it.
    public var time: Int64
    /// The effect on the object.
    public var effect: Effect
    /// The object that the path identifies, by its route.
    public var bound: BoundObject?
    /// The response; nil if it shows no objects.
    public var observation: ReceivedObservation?
    /// Paths whose documents are removed.
    public var targets: [InvalidationTarget] = []
    /// Paths whose documents are removed unless the models declare how a deletion shows in them.
    public var collections: [InvalidationTarget] = []
    /// Further paths whose documents are removed.
    public var patterns: [InvalidationPattern] = []
    /// The mark that was made before the request was sent.
    public var suspect: SuspectID?
    /// Whether the path is that of a collection, in which the write may have created an object.
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

/// The result of settling a write.
public struct WriteSettlement: Sendable, Equatable {
    /// Further paths whose documents were removed: those of collections and of a created object.
    public var removed: [String] = []
    /// The mapping's warnings about the response.
    public var warnings: [MappingWarning] = []
}

/// A response that shows that an object does not exist: a 404 or 410 to a GET.
public struct ObservedAbsence: Sendable {
    /// The cache key of the request.
    public var key: DocumentKey
    /// The method of the request.
    public var method = "GET"
    /// The object that the path identifies, by its route.
    public var bound: BoundObject?
    /// When its request was sent, minus `Age`.
    public var start: Int64

    /// The object, if the path alone identifies it; a query may ask for something other than the object itself.
    var named: BoundObject? { key.url.utf8.contains(UInt8(ascii: "?")) ? nil : bound }

    /// Describes a response.
    public init(key: DocumentKey, bound: BoundObject?, start: Int64) {
        self.key = key
        self.bound = bound
        self.start = start
    }
}
