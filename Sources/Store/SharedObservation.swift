/// What a response has shown of objects, so that the stores of other machines can merge it.
///
/// It contains names alone, no row ids of a store.
public struct SharedObservation: Sendable, Equatable, Codable {
    /// One object as the response showed it.
    public struct Object: Sendable, Equatable, Codable {
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
    /// The context of the objects.
    public var context: String
    /// Path and query of the response, as in its cache key.
    public var url: String
    /// Whether it is a list, a search, or the like, which may lag.
    public var isList: Bool
    /// As in `ReceivedDocument`.
    public var dividedBy: Int64?
    public var objects: [Object]

    /// Describes what a response has shown.
    public init(
        principal: [UInt8],
        context: String,
        url: String,
        isList: Bool,
        dividedBy: Int64? = nil,
        objects: [Object]
    ) {
        (self.principal, self.context, self.url) = (principal, context, url)
        (self.isList, self.dividedBy, self.objects) = (isList, dividedBy, objects)
    }
}
