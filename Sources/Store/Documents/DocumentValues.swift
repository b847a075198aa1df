public import Mapping

/// A complete response, to be stored.
public struct ReceivedDocument: Sendable {
    var key: CacheKey
    /// Opaque bytes that identify the `Vary` selection; a document with equal bytes is replaced.
    var variant: [UInt8]
    /// A second variant of which a document is replaced, because requests that select this one selected it too; nil for none.
    public var variantForAllFields: [UInt8]?
    /// What the response varies by besides its key's context, in lines of text; objects of other selections are
    /// separate.
    var selectedBy: String
    /// Digest of the request's fields, if it only serves requests that agree in them, as do its values; else nil.
    public var dividedBy: Int64?
    var status: Int
    /// The fields to be replayed, in the caller's own form.
    var head: [UInt8]
    /// The input for computing freshness, in the caller's own form.
    var policy: [UInt8]
    var body: [UInt8]
    /// When its request was sent, minus `Age`, in µs of the store's clock; it may show any state since then.
    var start: Int64
    var end: Int64
    /// When the first response to a write to its upstream arrived while this one was under way, if any; a response
    /// under the same key that was complete after that counts as the later one.
    public var upstreamWrittenAt: Int64?
    /// When its request was sent; it is not stored if a clean or an invalidation came later.
    var sent: Int64
    var kind: Observation.Kind
    /// The models that the body contains; nil to store it as it is.
    var rule: BodyRule?
    /// The surroundings of the body, for identities and keys that are not in it.
    var mappingContext: MappingContext
    /// Whether another machine has received it; `sent` and `end` are then when that was, on this store's clock.
    public var isShared = false
    /// That machine's fetch; nil if it is not known.
    public var fetch: SharedFetch?
    public var namesObjects = false
    /// Whether its fields hold a secret, so that only its objects are stored.
    public var isInMemoryOnly = false
    /// Finds out, off the caller's thread, in which form its entity tag covers a body; nil to leave that unknown.
    public var findCoverage: (@Sendable (_ body: [UInt8]) -> TagCoverage?)?
    /// A document of another principal that probably has the same bytes, which are then stored once; nil for none.
    public var resembled: DocumentID?

    /// Creates a document; without `sent`, the request was sent at `start`.
    public init(
        key: CacheKey,
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
        mappingContext: MappingContext = .none
    ) {
        (self.key, self.variant, self.selectedBy) = (key, variant, selectedBy)
        (self.status, self.head, self.policy) = (status, head, policy)
        (self.body, self.start, self.end) = (body, start, end)
        self.sent = sent ?? start
        (self.kind, self.rule, self.mappingContext) = (kind, rule, mappingContext)
    }

    var subject: MappedSubject? {
        rule.map { MappedSubject(body: body, rule: $0, mappingContext: mappingContext, url: key.url) }
    }
}

/// The response of a write; it is not stored as a document.
public struct ReceivedObservation: Sendable {
    public var body: [UInt8]
    var start: Int64
    var rule: BodyRule
    /// The path and query of the request, for warnings and to recognise the response.
    var url: String
    var mappingContext: MappingContext

    /// Describes a response.
    public init(body: [UInt8], start: Int64, rule: BodyRule, url: String = "", mappingContext: MappingContext = .none) {
        (self.body, self.start, self.rule) = (body, start, rule)
        (self.url, self.mappingContext) = (url, mappingContext)
    }

    var subject: MappedSubject { MappedSubject(body: body, rule: rule, mappingContext: mappingContext, url: url) }
}

/// The result of storing a response.
public struct Receipt: Sendable {
    /// The document; nil if none was stored: it was cleaned or invalidated meanwhile, or a later one is stored.
    public var document: DocumentID?
    public var objects: [ObjectID] = []
    /// Whether these were merged; not if a write or a clean had made the response outdated.
    public var isObserved = false
    /// Their names, if they were asked for.
    public var names: [ObjectName] = []
    /// Whether the store knows newer values than this response shows.
    public var isDirty = false
    public var sequence: CommitNumber
    /// Whether the response holds a secret; only its objects without the secret are stored, and it may be kept only in memory.
    public var isInMemoryOnly = false
    var warnings: [MappingWarning]
}

/// A document as read from the store.
public struct StoredDocument: Sendable {
    /// The origin of a body.
    public enum Form: Sendable, Equatable, CustomStringConvertible {
        /// As received; nothing newer is known.
        case asReceived
        case composed
        /// Newer values are known, but not all of them: objects with unknown values are as received.
        case outdated(reason: String)

        public var description: String {
            switch self {
            case .asReceived: "received"
            case .composed: "composed"
            case .outdated: "outdated"
            }
        }
    }

    /// For each member in doubt that it shows, when to resolve the doubt by a fetch; microseconds of the store's clock.
    public var doubts: [Int64] = []
    public var id: DocumentID
    public var key: CacheKey
    public var variant: [UInt8] = []
    public var status = 200
    public var head: [UInt8] = []
    public var policy: [UInt8] = []
    public var body: [UInt8] = []
    /// The body migrated to the current model versions, for the mapped view; nil if that is the body itself.
    public var migrated: [UInt8]?
    public var form = Form.asReceived
    /// Whether it shows values from responses for requests that agree in their fields with the one it was read for, although it
    /// serves others too.
    public var isForRequestOnly = false
    /// Whether the body differs from the one received: it is composed or, if outdated, composed as far as values are known.
    public var isBodyComposed = false
    /// The objects that it shows; a change of one of them may change it.
    public var objects: [ObjectID] = []
    var observation: Observation
    /// When its request was sent, minus `Age`.
    public var start: Int64 { observation.start }
    /// The commit sequence at which this holds; compare with `ObjectStore.mayHaveChanged`.
    public var sequence = CommitNumber.zero
}

/// The effect of a 304 on the document that it validates.
public enum FresheningOutcome: Sendable, Equatable {
    /// The document is fresh again, with the 304's observation time.
    case freshened
    /// The document shows outdated values, which the 304 does not confirm.
    case dirty
    /// The document was replaced or removed meanwhile.
    case gone
}

/// Receives notifications of commits.
///
/// It is called on the writer's thread; except for `objectsWillChange`, after the commit and before its callers continue. It must
/// be quick, and must not wait for the store.
public protocol ChangeListener: Sendable {
    /// The next commit, which no reader can see yet, changes these objects; if it fails, they have not changed.
    func objectsWillChange(_ objects: [ObjectID])
    func objectsChanged(_ objects: [ObjectID])
    var awaitsObjects: Bool { get }
    /// Something was written of the objects with these names, in whatever scope; they may not have been known before.
    func objectsWritten(_ objects: Set<ObjectName>)
    /// Documents under these keys were removed or replaced.
    func documentsRemoved(_ keys: [Digest128])
    /// Principals without data were forgotten; an id looked up before may be unused now.
    func principalsForgotten()
    /// The file was damaged and emptied: all documents and objects are gone.
    func storeEmptied()
}

/// Each listener implements what concerns it.
extension ChangeListener {
    /// Does nothing.
    public func objectsWillChange(_ objects: [ObjectID]) {}
    /// Does nothing.
    public func objectsChanged(_ objects: [ObjectID]) {}
    /// Does nothing.
    public func documentsRemoved(_ keys: [Digest128]) {}
    public var awaitsObjects: Bool { false }
    /// Does nothing.
    public func objectsWritten(_ objects: Set<ObjectName>) {}
    /// Does nothing.
    public func principalsForgotten() {}
    /// Does nothing.
    public func storeEmptied() {}
}
