import GRDB
public import Mapping

/// A message of an upstream that shows objects as they were at some time: the payload of a webhook.
public struct Delivery: Sendable {
    /// For whom it is an observation.
    public struct Observer: Sendable, Equatable {
        /// The principal's label, as in listings.
        public var principal: String
        /// The representation that the payload has, as in the key of a document.
        var context: String

        /// Names a principal and a representation.
        public init(principal: String, context: String) { (self.principal, self.context) = (principal, context) }
    }

    public var upstream: UpstreamKey
    /// The path that it was sent to, which is shown as the cause of what it drops.
    public var path: String
    /// Recognises it if it is sent again: a digest.
    public var id: [UInt8]
    /// How long it may be sent again, in µs.
    var repeatable: Int64
    public var body: [UInt8]
    /// Where the body shows objects, and of which models.
    public var rule: BodyRule
    /// Nil if it is no observation.
    public var observer: Observer?

    /// Describes a delivery.
    public init(upstream: UpstreamKey, path: String, id: [UInt8], repeatable: Int64, body: [UInt8], rule: BodyRule) {
        (self.upstream, self.path, self.id, self.repeatable) = (upstream, path, id, repeatable)
        (self.body, self.rule) = (body, rule)
    }

    fileprivate var subject: MappedSubject { MappedSubject(body: body, rule: rule, mappingContext: .none, url: path) }
}

/// A delivery whose body was taken apart.
public struct PreparedDelivery: Sendable {
    let delivery: Delivery
    let body: PreparedBody
    /// The objects that it is about, each once, without those within them.
    public let objects: [BoundObject]
    /// Why there are none, as a sentence; nil if the mapping does not say.
    public let complaint: String?

    var subject: MappedSubject { delivery.subject }
}

/// What a delivery did.
public struct DeliveryReceipt: Sendable, Equatable {
    /// Whether it had been taken before; then it did nothing.
    public var isRepeated = false
    public var observed = 0
}

extension ObjectStore {
    /// Takes a delivery's body apart; takes a scan and a copy of it.
    public func prepare(_ delivery: Delivery) -> PreparedDelivery {
        guard let models = core.models[delivery.upstream] else {
            return PreparedDelivery(delivery: delivery, body: PreparedBody(), objects: [], complaint: nil)
        }
        let body = PreparedBody(delivery.subject, models: models, hasher: core.hasher, isExamined: true)
        return PreparedDelivery(
            delivery: delivery,
            body: body,
            objects: body.deliveredNames.map { BoundObject(model: $0.model, identity: $0.identity) },
            complaint: body.warnings.first?.message
        )
    }

    /// Drops what shows the objects of a delivery, for every principal, unless it has been taken before.
    ///
    /// Returns after the commit, when it is on disk. That it was taken is committed with what it drops.
    ///
    /// - Parameter time: when it had arrived. What was requested before may be older.
    public func commit(_ prepared: PreparedDelivery, at time: Int64) async throws(StoreError) -> DeliveryReceipt {
        let upstream = prepared.delivery.upstream
        return try await core.commit(.delivery, .durable) { session in
            let body = session.current(prepared.body, of: prepared.subject, upstream: upstream)
            return try session.apply(prepared.delivery, body, at: time)
        }
    }
}

extension PreparedBody {
    /// The outermost objects, each once, in their order.
    var deliveredNames: [ObjectName] {
        guard let decomposed else { return [] }
        var known: Set<ObjectName> = []
        return Reference.names(in: decomposed.skeleton).filter { known.insert($0).inserted }
    }
}

extension WriterSession {
    /// How many deliveries are remembered; beyond that, those that end soonest are forgotten.
    static let deliveryLimit: Int64 = 65_536

    /// Writes what a delivery says, all in this transaction.
    func apply(_ delivery: Delivery, _ prepared: PreparedBody, at time: Int64) throws -> DeliveryReceipt {
        guard try record(delivery, at: clock.now()) else { return DeliveryReceipt(isRepeated: true) }
        _ = nextSequence()
        let source = MarkSource(method: "POST", path: delivery.path)
        var receipt = DeliveryReceipt()
        // Before the mark: after it, nothing but a later response is certain.
        if let observer = delivery.observer {
            receipt.observed = try observe(delivery, prepared, for: observer, by: source, at: time)
        }
        for name in prepared.deliveredNames {
            let (object, upstream) = (BoundObject(model: name.model, identity: name.identity), delivery.upstream)
            try mark(object, of: upstream, own: nil, for: nil, others: .unobserved(time), of: .nobody, by: source)
        }
        try invalidateUndivided(of: delivery.upstream, at: time)
        return receipt
    }

    /// Records a delivery; returns false if it has come before.
    private func record(_ delivery: Delivery, at now: Int64) throws -> Bool {
        let known = try query("SELECT 1 FROM _deliveries WHERE id = ? AND expires >= ?").integer(delivery.id, now)
        guard known == nil else { return false }
        try query("DELETE FROM _deliveries WHERE expires < ?").run(now)
        deliveryCount? -= Int64(database.changesCount)
        let count = try deliveryCount ?? (query("SELECT count(*) FROM _deliveries").integer() ?? 0)
        try query("INSERT INTO _deliveries VALUES (?, ?)").run(delivery.id, now + delivery.repeatable)
        deliveryCount = count + 1
        guard count > Self.deliveryLimit else { return true }
        // A part at once, because they are counted each time.
        try query("DELETE FROM _deliveries WHERE id IN (SELECT id FROM _deliveries ORDER BY expires LIMIT ?)")
            .run(count - Self.deliveryLimit * 15 / 16)
        deliveryCount = nil
        return true
    }

    /// Merges what a delivery shows of objects that are known to a principal already (rows S2, S3 and C1).
    ///
    /// - Returns: how many of them it shows with the time of their change.
    private func observe(
        _ delivery: Delivery,
        _ prepared: PreparedBody,
        for observer: Delivery.Observer,
        by source: MarkSource,
        at time: Int64
    ) throws -> Int {
        let principals = try query("SELECT id FROM _principals WHERE label = ?")
            .all(observer.principal) { $0.id(0, as: PrincipalID.self) }
        // A label is a part of a digest: of two principals with the same one it is not known whose data it is.
        guard principals.count == 1, let decomposed = prepared.decomposed, let models = models[delivery.upstream],
            let scope = try existingScope(
                NameTable.Scope(upstream: delivery.upstream, principal: principals[0], context: observer.context)
            )
        else { return 0 }
        var rest = Set(prepared.deliveredNames)
        let observation = newObservation(start: time, end: time, kind: .delivery)
        try setSource("POST \(delivery.path)", of: observation.id)
        var count = 0
        for occurrence in decomposed.occurrences where rest.remove(occurrence.name) != nil {
            let (name, payload) = (occurrence.name, occurrence.payload)
            guard models.models.showsModification(payload, of: name.model),
                !models.models.saysDeleted(payload, of: name.model)
            else { continue }
            let collection = try names.collection(scope: scope, model: name.model, in: database)
            let record = try existingRecord(collection: collection, identity: StoredIdentity(name.identity))
            guard let record, record.base != nil else { continue }
            let contribution = Contribution(observation: observation, version: 0, payload: payload)
            _ = try merge([contribution], into: record, models: models, by: source)
            count += 1
        }
        return count
    }
}
