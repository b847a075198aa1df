public import Mapping

/// How the store names an upstream: by its name in the configuration and its URL.
///
/// Data of another origin, or of another base path, is never taken for this upstream's, and is found again when the
/// configuration goes back. Wherever the store takes or returns an upstream, it means this text; only listings, filters and
/// the journal have names for people, see `Store.objects`.
public enum UpstreamKey {
    /// The text for an upstream.
    ///
    /// - Parameters:
    ///   - name: as in the configuration; without a space.
    ///   - url: its origin and base path in one spelling.
    public static func make(name: String, url: String) -> String { "\(name) \(url)" }

    /// The name alone.
    static func name(of key: String) -> String { String(key.prefix { $0 != " " }) }
}

/// What a document answers: which request, of whom, in which representation.
public struct DocumentKey: Hashable, Sendable {
    /// The upstream, as `UpstreamKey` names it.
    public var upstream: String
    /// Whose data it is.
    public var principal: PrincipalID
    /// The representation asked for, as one text.
    public var context: String
    /// Path and query as sent upstream.
    public var url: String

    /// Makes a key of its four parts.
    public init(upstream: String, principal: PrincipalID, context: String, url: String) {
        self.upstream = upstream
        self.principal = principal
        self.context = context
        self.url = url
    }
}

/// A complete answer, to be stored.
public struct ReceivedDocument: Sendable {
    /// The request it answers.
    public var key: DocumentKey
    /// Opaque bytes that name the `Vary` selection; equal bytes replace.
    public var variant: [UInt8]
    /// What the answer varies by besides the context of its key, as lines of text: its objects are not those of others.
    public var selectedBy: String
    /// The status code.
    public var status: Int
    /// The fields to be replayed, in the caller's own form.
    public var head: [UInt8]
    /// What freshness is reckoned from, in the caller's own form.
    public var policy: [UInt8]
    /// The decoded body, whole.
    public var body: [UInt8]
    /// The moment from which on the answer speaks: its request sent, minus `Age`; microseconds of the store's clock.
    public var start: Int64
    /// The moment its last byte arrived.
    public var end: Int64
    /// When a write to its upstream was answered first while it was on its way; nil: none was.
    ///
    /// An answer to the same question that was whole after that is the later one.
    public var overtakenAt: Int64?
    /// The moment its request was sent: what began before a clean or an invalidation stores nothing of it.
    public var sent: Int64
    /// What kind of look at the objects it is.
    public var kind: Observation.Kind
    /// What the body holds; nil: it is kept as it is.
    public var rule: BodyRule?
    /// What surrounds the body, for identities and keys that are not in it.
    public var surroundings: MappingContext

    /// Makes a document; without `sent`, the request was sent at `start`.
    public init(
        key: DocumentKey,
        variant: [UInt8] = [],
        selectedBy: String = "",
        status: Int = 200,
        head: [UInt8] = [],
        policy: [UInt8] = [],
        body: [UInt8],
        start: Int64,
        end: Int64,
        sent: Int64? = nil,
        kind: Observation.Kind = .detail,
        rule: BodyRule? = nil,
        surroundings: MappingContext = .none
    ) {
        self.key = key
        self.variant = variant
        self.selectedBy = selectedBy
        self.status = status
        self.head = head
        self.policy = policy
        self.body = body
        self.start = start
        self.end = end
        self.sent = sent ?? start
        self.kind = kind
        self.rule = rule
        self.surroundings = surroundings
    }
}

/// An answer that tells about objects and is no document: a write's.
public struct ReceivedObservation: Sendable {
    /// The upstream's name.
    public var upstream: String
    /// Whose data it is.
    public var principal: PrincipalID
    /// The representation asked for.
    public var context: String
    /// The decoded body, whole.
    public var body: [UInt8]
    /// When the request was sent; microseconds of the store's clock.
    public var start: Int64
    /// When the answer was complete.
    public var end: Int64
    /// What kind of look at the objects it is.
    public var kind: Observation.Kind
    /// What the body holds.
    public var rule: BodyRule
    /// The method of the request.
    public var method: String
    /// Path and query that were asked for; for warnings, and to know the answer again.
    public var url: String
    /// What surrounds the body, for identities and keys that are not in it.
    public var surroundings: MappingContext

    /// Makes an observation; a write's unless said otherwise.
    public init(
        upstream: String,
        principal: PrincipalID,
        context: String,
        body: [UInt8],
        start: Int64,
        end: Int64,
        kind: Observation.Kind = .write,
        rule: BodyRule,
        method: String = "POST",
        url: String = "",
        surroundings: MappingContext = .none
    ) {
        self.method = method
        self.url = url
        self.surroundings = surroundings
        self.upstream = upstream
        self.principal = principal
        self.context = context
        self.body = body
        self.start = start
        self.end = end
        self.kind = kind
        self.rule = rule
    }
}

/// What became of an answer that was handed to the store.
public struct Receipt: Sendable {
    /// The document, nil where none was stored: cleaned or invalidated meanwhile, older than the one in place, or no document at all.
    public var document: DocumentID?
    /// The objects it shows.
    public var objects: [ObjectID]
    /// True when the store knows something newer than this answer shows.
    public var isDirty: Bool
    /// The commit sequence at which this holds.
    public var sequence: Int64
    /// True when the answer shows a secret: nothing of it is stored but its objects without the secret, and it may be kept
    /// in memory only.
    public var isSecret = false
    /// What the mapping had to say.
    public var warnings: [MappingWarning]
}

/// A document as the store gives it back.
public struct StoredDocument: Sendable {
    /// How the body came about.
    public enum Form: Sendable, Equatable {
        /// The bytes that were received; nothing newer is known.
        case asReceived
        /// Newer values were put in.
        case composed
        /// Something newer is known but cannot be shown in this shape; the bytes that were received.
        case outdated(reason: String)
    }

    /// For members in doubt that it shows, from when on each doubt is to be settled by asking; µs of the store's clock.
    public var doubts: [Int64] = []
    /// Its id.
    public var id: DocumentID
    /// The request it answers.
    public var key: DocumentKey
    /// Names the `Vary` selection.
    public var variant: [UInt8]
    /// The status code.
    public var status: Int
    /// The fields, in the caller's own form.
    public var head: [UInt8]
    /// What freshness is reckoned from, in the caller's own form.
    public var policy: [UInt8]
    /// The body, composed where it has to be.
    public var body: [UInt8]
    /// The body as the models' versions of today read it, for the mapped view; nil where that is the body itself.
    public var migrated: [UInt8]?
    /// How the body came about.
    public var form: Form
    /// The objects whose changes would change it.
    public var objects: [ObjectID]
    /// The moment from which on the answer speaks.
    public var start: Int64
    /// The moment its last byte arrived, minus `Age`: it does not speak of what happened since.
    public var end: Int64
    /// The commit sequence at which this holds; compare with `Store.mayHaveChanged`.
    public var sequence: Int64
}

/// What a 304 did to the document it renews.
public enum RefreshOutcome: Sendable, Equatable {
    /// It counts; the document's observation time is the 304's.
    case renewed
    /// The document shows something that is now known newer; the 304 says nothing.
    case dirty
    /// The document has been replaced or removed meanwhile.
    case gone
}

/// A path whose documents a write has made worthless, with every query.
public struct InvalidationTarget: Hashable, Sendable {
    /// The upstream's name.
    public var upstream: String
    /// The path as sent upstream; a query is not looked at.
    public var path: String

    /// Makes a target.
    public init(upstream: String, path: String) {
        self.upstream = upstream
        self.path = path
    }
}

/// Who is told of commits.
///
/// Called on the writer's thread after the commit and before its callers go
/// on; must be quick, and must not wait for the store.
public protocol ChangeListener: Sendable {
    /// These objects have newer values.
    func objectsChanged(_ objects: [ObjectID])
    /// Documents under these keys were removed or replaced.
    func documentsRemoved(_ keys: [Digest128])
    /// Principals of whom nothing is kept were forgotten: an id that was given before may be nobody's.
    func principalsForgotten()
    /// The file was damaged: nothing that was stored is there any more, and its objects' numbers are nobody's.
    func storeEmptied()
}

extension ChangeListener {
    /// Most know no principals.
    public func principalsForgotten() {}

    /// Those who hold nothing that was stored need not know.
    public func storeEmptied() {}
}
