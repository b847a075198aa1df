public import Mapping

/// Which part of the store is meant; conditions add up.
public struct CleanFilter: Sendable {
    /// Objects of this model, and the documents that show them.
    public var model: String?
    /// The object's identity; counts with `model` only.
    public var identity: String?
    /// An upstream's name.
    public var upstream: String?
    /// A principal's label.
    public var principal: String?
    /// Documents whose path and query begin so.
    public var urlPrefix: String?
    /// Documents whose path and query this accepts, such as a route's.
    public var url: (@Sendable (String) -> Bool)?
    /// What was last observed longer ago than this many microseconds.
    public var olderThan: Int64?

    /// Makes a filter; without any condition it means everything.
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

    /// The filter that means everything.
    public static let all = CleanFilter()
}

/// How much the store holds, or a clean took away.
public struct StoreCount: Sendable, Equatable {
    /// Number of objects.
    public var objects: Int
    /// Number of documents.
    public var documents: Int
    /// Bytes in use in the file, or set free in it.
    public var bytes: Int64
    /// Number of objects of each model.
    public var models: [String: Int]
}

/// What a clean did.
public struct CleanResult: Sendable, Equatable {
    /// Whether the bytes are gone.
    public enum Erasure: String, Sendable {
        /// They are in neither the file nor its WAL.
        case erased
        /// A foreign reader still keeps the WAL; they go as soon as it lets go.
        case pending
        /// Nothing was asked to go.
        case notAsked
    }

    /// What was removed, or would be.
    public var removed: StoreCount
    /// Whether the bytes are gone.
    public var erasure: Erasure
    /// Other objects that no document shows any more, or would; they stay known until there is no room for them.
    public var unshown = 0
    /// Whether it was stopped before its end.
    public var isStopped = false
}

/// Told how far a clean has come, after each slice of it; says whether it is to go on.
public typealias CleanProgress = @Sendable (StoreCount) -> Bool

/// Which objects to list.
public struct ObjectQuery: Sendable {
    /// A model's name; nil: all.
    public var model: String?
    /// One identity; nil: all.
    public var identity: String?
    /// The value of one of its model's keys; nil: all.
    public var key: String?
    /// An upstream's name; nil: all.
    public var upstream: String?
    /// A principal's label; nil: all.
    public var principal: String?
    /// Whether their mapped view is wanted as well.
    public var view: View = .wire
    /// The page's size.
    public var limit: Int
    /// The `next` of the page before.
    public var after: Int64?
    /// Whether the objects meant are those that are deleted, which are left out otherwise.
    public var areDeleted = false

    /// How objects are shown.
    public enum View: Sendable {
        /// With the members that the upstream gave.
        case wire
        /// Besides, as their models have them, all of it or only these members.
        case mapped(members: [String]?)
    }

    /// Makes a query.
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

/// An object as people are shown it.
public struct ObjectRow: Sendable {
    /// Its id in the store.
    public var id: ObjectID
    /// The upstream's name.
    public var upstream: String
    /// The principal's label.
    public var principal: String
    /// The representation it was asked in.
    public var context: String
    /// The model's name.
    public var model: String
    /// Its identity.
    public var identity: String
    /// Its newest known members as JSON; nested objects are `"Model:identity"`.
    public var json: [UInt8]
    /// The commit sequence of its last change.
    public var changed: Int64
    /// The time of its newest observation, microseconds of the store's clock.
    public var observed: Int64
    /// Since when nobody knows what has become of it (microseconds of the store's clock), for want of a newer observation.
    public var unknownSince: Int64?
    /// Whether it was found by a key that a route's path gave it, and its members need not show.
    public var isBound = false
    /// As its model has it, if that was asked for: related objects by their bare identities, and what key paths through
    /// them lead to.
    public var mapped: MappedBody?
}

/// Which documents to list.
public struct DocumentQuery: Sendable {
    /// An upstream's name; nil: all.
    public var upstream: String?
    /// A principal's label; nil: all.
    public var principal: String?
    /// What path and query begin with; nil: all.
    public var urlPrefix: String?
    /// The exact path and query; nil: all.
    public var url: String?
    /// The page's size.
    public var limit: Int
    /// The `next` of the page before.
    public var after: Int64?

    /// Makes a query.
    public init(
        upstream: String? = nil,
        principal: String? = nil,
        urlPrefix: String? = nil,
        url: String? = nil,
        limit: Int = 100,
        after: Int64? = nil
    ) {
        self.upstream = upstream
        self.principal = principal
        self.urlPrefix = urlPrefix
        self.url = url
        self.limit = limit
        self.after = after
    }
}

/// A document as people are shown it.
public struct DocumentRow: Sendable {
    /// Its id.
    public var id: DocumentID
    /// The upstream's name.
    public var upstream: String
    /// The principal's label.
    public var principal: String
    /// The representation asked for.
    public var context: String
    /// Path and query.
    public var url: String
    /// The status code.
    public var status: Int
    /// The fields, in the caller's own form.
    public var head: [UInt8]
    /// What freshness is reckoned from, in the caller's own form.
    public var policy: [UInt8]
    /// How many objects it shows.
    public var objects: Int
    /// The length of the body received, in bytes.
    public var bytes: Int64
    /// The moment from which on it speaks.
    public var start: Int64
    /// The moment its last byte arrived, minus `Age`.
    public var end: Int64
    /// When it was last used, microseconds of the store's clock (to the second).
    public var used: Int64
}

/// A part of a list.
public struct Page<Row: Sendable>: Sendable {
    /// The rows.
    public var rows: [Row]
    /// What to ask for the rest with; nil at the end.
    public var next: Int64?
}

/// Something that went wrong without failing an answer, counted.
public struct StoredWarning: Sendable, Equatable {
    /// What kind of thing, from a fixed set.
    public var kind: String
    /// What it is about: a model, a route, an upstream.
    public var subject: String
    /// The sentence for people.
    public var message: String
    /// Path and query of the answer in which it was last seen; empty where it is about none.
    public var url: String
    /// The JSON pointer of the place in that answer; empty for the whole.
    public var pointer: String
    /// How often it was seen.
    public var count: Int
    /// When it was first seen, microseconds of the store's clock.
    public var first: Int64
    /// When it was last seen.
    public var last: Int64

    /// Makes a warning, seen once.
    public init(
        kind: String,
        subject: String,
        message: String,
        url: String = "",
        pointer: String = "",
        count: Int = 1,
        first: Int64 = 0,
        last: Int64 = 0
    ) {
        self.url = url
        self.pointer = pointer
        self.kind = kind
        self.subject = subject
        self.message = message
        self.count = count
        self.first = first
        self.last = last
    }
}

/// What operators want to know of a store at run time.
public struct StoreStatistics: Sendable, Equatable {
    /// Bytes of the database file.
    public var fileBytes: Int64 = 0
    /// Bytes of the WAL.
    public var walBytes: Int64 = 0
    /// What waits to be written.
    public var queued = 0
    /// Commits since opening.
    public var commits: Int64 = 0
    /// Batches that failed since opening.
    public var failures: Int64 = 0
    /// How often something in the file was found damaged since opening.
    public var damaged: Int64 = 0
    /// Documents evicted since opening.
    public var evicted: Int64 = 0
    /// What went wrong last; nil once a commit has succeeded again.
    public var trouble: String?

    /// Statistics of a store that has just been opened.
    public init() {}
}
