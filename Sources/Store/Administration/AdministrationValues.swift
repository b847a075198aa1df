public import Mapping

/// Selects a part of the store; all conditions must hold.
public struct CleanFilter: Sendable {
    /// Objects of this model, and documents that show them.
    public var model: String?
    /// The object's identity; has an effect only with `model`.
    public var identity: String?
    /// An upstream's name.
    public var upstream: String?
    /// A principal's label.
    public var principal: String?
    /// Documents whose path and query begin with this.
    public var urlPrefix: String?
    /// Documents whose path and query this accepts, such as a route's.
    public var url: (@Sendable (String) -> Bool)?
    /// Only what was last observed more than this many microseconds ago.
    public var olderThan: Int64?
    /// Only what belongs to a principal.
    var isPrivate = false

    /// Creates a filter; without a condition it selects everything.
    public init(
        model: String? = nil,
        identity: String? = nil,
        upstream: String? = nil,
        principal: String? = nil,
        urlPrefix: String? = nil,
        url: (@Sendable (String) -> Bool)? = nil,
        olderThan: Int64? = nil
    ) {
        self.model = model
        self.identity = identity
        self.upstream = upstream
        self.principal = principal
        self.urlPrefix = urlPrefix
        self.url = url
        self.olderThan = olderThan
    }
}

/// How much the store contains, or a clean removed.
public struct StoreCount: Sendable, Equatable {
    /// Number of objects.
    public var objects = 0
    /// Number of documents.
    public var documents = 0
    /// Bytes in use in the file, or freed in it.
    public var bytes: Int64 = 0
    /// Number of objects of each model.
    public var models: [String: Int] = [:]
}

/// What a clean did.
public struct CleanResult: Sendable, Equatable {
    /// Whether the bytes are erased.
    public enum Erasure: String, Sendable {
        /// They are neither in the file nor in its WAL.
        case erased
        /// Another process still reads the WAL; they are erased when it ends its transaction.
        case pending
        /// Nothing was removed: a dry run.
        case notAsked
    }

    /// What was removed, or would be.
    public var removed: StoreCount
    /// Whether the bytes are erased.
    public var erasure: Erasure
    /// How many other objects no document shows any more; they are kept until their room is needed.
    public var unshown = 0
    /// Whether it was stopped before its end.
    public var isStopped = false
}

/// Receives the progress of a clean after each slice; returns whether to continue.
public typealias CleanProgress = @Sendable (StoreCount) -> Bool

/// A query for objects.
public struct ObjectQuery: Sendable {
    /// A model's name; nil: all.
    public var model: String?
    /// One identity; nil: all.
    public var identity: String?
    /// The value of one of the object's keys; nil: all.
    public var key: String?
    /// An upstream's name; nil: all.
    public var upstream: String?
    /// A principal's label; nil: all.
    public var principal: String?
    /// Whether to include the mapped view.
    public var view: View = .wire
    /// The page size.
    public var limit: Int
    /// The `next` of the previous page.
    public var after: Int64?
    /// Whether to list deleted objects instead of existing ones.
    public var areDeleted = false

    /// How objects are shown.
    public enum View: Sendable {
        /// The upstream's members.
        case wire
        /// The models' form as well: all properties, or only these.
        case mapped(members: [String]?)
    }

    /// Creates a query.
    public init(
        model: String? = nil,
        identity: String? = nil,
        key: String? = nil,
        upstream: String? = nil,
        principal: String? = nil,
        limit: Int = 100,
        after: Int64? = nil
    ) {
        self.model = model
        self.identity = identity
        self.key = key
        self.upstream = upstream
        self.principal = principal
        self.limit = limit
        self.after = after
    }
}

/// An object in a listing.
public struct ObjectRow: Sendable {
    /// Its id in the store.
    public var id: ObjectID
    /// The upstream's name.
    public var upstream: String
    /// The principal's label.
    public var principal: String
    /// The requested representation.
    public var context: String
    /// The model's name.
    public var model: String
    /// Its identity.
    public var identity: String
    /// Its newest known members as JSON; nested objects are `"Model:identity"`.
    public var json: [UInt8] = []
    /// The time of its newest observation, in microseconds of the store's clock.
    public var observed: Int64 = 0
    /// Since when its state is unknown, because no observation followed a write; microseconds of the store's clock.
    public var unknownSince: Int64?
    /// Whether it was found by a key from a route's path, which its members need not contain.
    public var isBound = false
    /// The mapped view, if requested: related objects by their identities, and the values of key paths through them.
    public var mapped: MappedBody?
}

/// A document in a listing.
public struct DocumentRow: Sendable {
    /// Its id.
    public var id: DocumentID
    /// The upstream's name.
    public var upstream: String
    /// The principal's label.
    public var principal: String
    /// The requested representation.
    public var context: String
    /// Path and query.
    public var url: String
    /// The status code.
    public var status: Int
    /// How many objects it shows.
    public var objects: Int
    /// The length of the body received, in bytes.
    public var bytes: Int64
    /// When its request was sent, minus `Age`.
    public var start: Int64
    /// When its last byte arrived, minus `Age`.
    public var end: Int64
    /// When it was last used, microseconds of the store's clock (to the second).
    public var used: Int64
}

/// One page of a listing.
public struct Page<Row: Sendable>: Sendable {
    /// The rows.
    public var rows: [Row] = []
    /// The cursor of the next page; nil at the end.
    public var next: Int64?
}

/// A problem that did not fail a response, counted.
public struct StoredWarning: Sendable, Equatable {
    /// The kind, from a fixed set.
    public var kind: String
    /// What it is about: a model, a route, an upstream.
    public var subject: String
    /// The sentence that describes it.
    public var message: String
    /// The path and query of the response in which it was last seen; empty if it concerns no response.
    public var url = ""
    /// The JSON pointer of the place in that response; empty for the whole body.
    public var pointer = ""
    /// How often it was seen.
    public var count = 1
    /// When it was first seen, microseconds of the store's clock.
    public var first: Int64 = 0
    /// When it was last seen.
    public var last: Int64 = 0
}

extension StoredWarning {
    /// Creates a warning that was seen once.
    public init(kind: String, subject: String, message: String) {
        self.init(kind: kind, subject: subject, message: message, url: "")
    }
}

/// The state of a store at run time, for operators.
public struct StoreStatistics: Sendable, Equatable {
    /// Bytes of the database file.
    public var fileBytes: Int64 = 0
    /// Bytes of the WAL.
    public var walBytes: Int64 = 0
    /// How many jobs are waiting to be written.
    public var queued = 0
    /// Commits since opening.
    public var commits: Int64 = 0
    /// Batches that failed since opening.
    public var failures: Int64 = 0
    /// How often damage was found in the file since opening.
    public var damaged: Int64 = 0
    /// Documents evicted since opening.
    public var evicted: Int64 = 0
    /// The last error; nil once a commit has succeeded again.
    public var trouble: String?

    /// Statistics of a store that has just been opened.
    public init() {}
}
