public import Mapping

/// Paths of one upstream that a write has made worthless, by a pattern; queries are not looked at.
public struct InvalidationPattern: Sendable, Equatable {
    /// The upstream's name.
    public var upstream: String
    /// What stands before the paths that patterns speak of.
    public var base: String
    /// The pattern, its captures filled in.
    public var pattern: RoutePattern
    /// How every path that it matches begins.
    private let start: String

    /// Makes a pattern of paths below a base path.
    public init(upstream: String, base: String, pattern: RoutePattern) {
        self.upstream = upstream
        self.base = base
        self.pattern = pattern
        start = base + pattern.plainStart
    }

    /// Whether a document's path and query are meant.
    public func matches(url: some StringProtocol) -> Bool {
        let path = url.beforeQuery.utf8
        // Nearly all are told apart by how they begin.
        guard path.starts(with: start.utf8) || path.starts(with: "\(base)//".utf8) else { return false }
        return pattern.matches(path: String(decoding: path.dropFirst(base.utf8.count), as: UTF8.self))
    }
}

/// A write whose answer has come, or never will.
public struct SettledWrite: Sendable {
    /// What it has done to the object that it speaks of.
    public enum Effect: Sendable, Equatable {
        /// Something, as far as its answer does not tell.
        case changed
        /// It is gone.
        case deleted
        /// It was gone before; nothing else has changed.
        case absent
    }

    /// The upstream's name.
    public var upstream: String
    /// Who wrote.
    public var principal: PrincipalID
    /// The representation asked for.
    public var context: String
    /// The path that was written to.
    public var path: String
    /// The request's method; empty where the daemon ended before it was answered.
    public var method = ""
    /// When its answer was complete, or it was given up.
    public var time: Int64
    /// What it has done.
    public var effect: Effect
    /// The object that the path names, by its route.
    public var bound: BoundObject?
    /// What its answer tells.
    public var observation: ReceivedObservation?
    /// Paths whose documents go.
    public var targets: [InvalidationTarget]
    /// Paths whose documents go unless the models say how a deletion shows in them.
    public var collections: [InvalidationTarget]
    /// Further paths whose documents go.
    public var patterns: [InvalidationPattern]
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
        bound: BoundObject? = nil,
        observation: ReceivedObservation? = nil,
        targets: [InvalidationTarget] = [],
        collections: [InvalidationTarget] = [],
        patterns: [InvalidationPattern] = [],
        suspect: SuspectID? = nil
    ) {
        self.upstream = upstream
        self.principal = principal
        self.context = context
        self.path = path
        self.time = time
        self.effect = effect
        self.bound = bound
        self.observation = observation
        self.targets = targets
        self.collections = collections
        self.patterns = patterns
        self.suspect = suspect
    }
}

/// What the store has made of a write.
public struct WriteSettlement: Sendable, Equatable {
    /// Further paths whose documents have gone: of collections, and of what was created.
    public var removed: [String] = []
    /// What the mapping had to say of its answer.
    public var warnings: [MappingWarning] = []
}

/// An answer that says of an object that there is none: a GET's 404 or 410.
public struct ObservedAbsence: Sendable {
    /// The request.
    public var key: DocumentKey
    /// Its method.
    public var method = "GET"
    /// The object that the path names, by its route.
    public var bound: BoundObject?
    /// The moment from which on the answer speaks.
    public var start: Int64

    /// The object that it is about by its path alone; a query may ask for something else than the object as such.
    var named: BoundObject? { key.url.utf8.contains(UInt8(ascii: "?")) ? nil : bound }

    /// Describes an answer.
    public init(key: DocumentKey, bound: BoundObject?, start: Int64) {
        self.key = key
        self.bound = bound
        self.start = start
    }
}
