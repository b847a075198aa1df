/// What became of a document whose objects may be known newer than it shows.
public enum Composition: Sendable, Equatable {
    /// The document shows the newest already: the body as received holds.
    case unchanged
    /// The body with newer declared members, and every object it now shows.
    case composed(body: [UInt8], objects: Set<ObjectName>)
    /// Not every byte of the result is known (law 6).
    case unknown(reason: String)
}

/// Puts documents together with the newest values: shape from the pinned version, values from the object.
public struct Composer: Sendable {
    let models: Models
    let lag: Int64

    /// A composer for the models of one upstream; `lag` in microseconds as given to `ObjectState.merge`.
    public init(models: Models, lag: Int64) {
        self.models = models
        self.lag = lag
    }

    /// Composes one document from its skeleton and the payloads of its pins in pre-order.
    ///
    /// `state` is asked at most once for each object; nil: nothing is known of it.
    public func compose(
        skeleton: [UInt8],
        pins: [[UInt8]],
        state: (ObjectName) throws -> ObjectState?
    ) rethrows -> Composition { .unchanged }
}
