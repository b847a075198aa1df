public import Mapping

/// A query for the objects with an identity or a key, or for deleted objects; a condition that is nil holds for all.
///
/// It selects by at least one of the three; `ObjectListing` is for all objects of a model.
public struct ObjectQuery: Sendable {
    public var model: String?
    public var identity: String?
    /// The value of one of the object's keys.
    public var key: String?
    /// Its label.
    public var upstream: String?
    public var principal: String?
    public var view: View = .wire
    public var limit: Int
    /// The `next` of the previous page.
    public var after: Int64?
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
        (self.model, self.identity, self.key, self.upstream) = (model, identity, key, upstream)
        (self.principal, self.limit, self.after) = (principal, limit, after)
    }
}

/// An object in a listing; its upstream and its principal by label.
public struct ObjectRow: Sendable {
    public var id: ObjectID
    public var upstreamKey: UpstreamKey
    /// Its label.
    public var upstream = ""
    public var principal: String
    public var context: String
    public var model: String
    public var identity: String
    /// Its newest known members as JSON; nested objects are `"Model:identity"`.
    public var json: [UInt8] = []
    /// The time of its newest observation, in microseconds of the store's clock.
    public var observed: Int64 = 0
    /// Since when its state is unknown, because no observation followed a write; microseconds of the store's clock.
    public var unknownSince: Int64?
    /// Whether it was found by a key from a route's path, which its members need not contain.
    var isBound = false
    /// The mapped view, if requested: related objects by their identities, and the values of key paths through them.
    public var mapped: MappedBody?
}

/// One page of a listing.
public struct Page<Row: Sendable>: Sendable {
    public var rows: [Row] = []
    /// The cursor of the next page; nil at the end.
    public var next: Int64?
}
