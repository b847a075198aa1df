/// What became of a document whose objects may be known newer than it shows.
public enum Composition: Sendable, Equatable {
    /// The document shows the newest already: the body as received holds.
    case unchanged
    /// The body with newer declared members, and the objects that it now shows where it had pinned others, or none.
    case composed(body: [UInt8], added: Set<ObjectName>)
    /// Not every byte of the result is known (law 6).
    case unknown(reason: String)
}

/// Puts documents together with the newest values: shape from the pinned version, values from the object.
public struct Composer: Sendable {
    private let models: Models
    private let lag: Int64
    /// What does not move between some routes.
    public var separations: Separations
    /// How many bytes may be looked at or written for each byte of the document, and how many for any document: enough
    /// for every object at its newest several times over, and for lists that grow; not for what multiplies.
    private static let effort = (perByte: 16, atLeast: 1 << 20)
    /// How far a document may outgrow what was received.
    private static let growth = (factor: 4, atLeast: 1 << 20)

    /// A composer for the models of one upstream; `lag` in microseconds as given to `ObjectState.merge`.
    public init(models: Models, lag: Int64, separations: Separations = Separations()) {
        self.models = models
        self.lag = lag
        self.separations = separations
    }

    /// Composes one document from its skeleton and the payloads of its pins in pre-order.
    ///
    /// `state` is asked at most once for each object; nil: nothing is known of it.
    ///
    /// - Parameters:
    ///   - keyed: where in the skeleton objects begin whose members are the document's objects.
    ///   - observation: the document's own: what was written or deleted after it makes the document stale, and what its route
    ///     and another disagree on does not move between them. Without it the document is taken to be newer than all that.
    ///   - mayHaveChanged: whether a pin may show something else than the newest of its object, given its index and the
    ///     object; where not, the pin is taken as it is, and the object is not asked for.
    public func compose(
        skeleton: [UInt8],
        pins: [[UInt8]],
        keyed: [Int] = [],
        observation: Observation? = nil,
        mayHaveChanged: (_ pin: Int, _ name: () -> ObjectName) -> Bool = { _, _ in true },
        state: (ObjectName) throws -> ObjectState?
    ) rethrows -> Composition {
        guard var tree = PinTree(skeleton: skeleton, pins: pins), tree.look(where: mayHaveChanged) else {
            return .unknown(reason: "the stored document is damaged: its pins are not those of its skeleton")
        }
        var known: [ObjectName: KnownObject] = [:]
        var wanted = Set(tree.looked.lazy.compactMap(\.self))
        let received = pins.reduce(skeleton.count) { $0 + $1.count }
        var effort = max(received * Self.effort.perByte, Self.effort.atLeast)
        while true {
            for name in wanted {
                known[name] = KnownObject(
                    try state(name),
                    name,
                    models: models,
                    lag: lag,
                    apartFrom: separations.strangers(to: observation?.route ?? 0, model: name.model)
                )
            }
            var attempt = CompositionAttempt(
                tree: tree,
                keyed: keyed,
                models: models,
                known: known,
                observation: observation,
                lag: lag,
                effort: effort
            )
            attempt.run()
            effort = attempt.effort
            // An object that a reference newly points to is met only while composing; each round goes one deeper.
            guard attempt.missing.isEmpty || attempt.reason != nil else {
                wanted = attempt.missing
                continue
            }
            if let reason = attempt.reason { return .unknown(reason: reason) }
            guard attempt.isChanged else { return .unchanged }
            guard attempt.output.count <= max(received * Self.growth.factor, Self.growth.atLeast) else {
                return .unknown(reason: "the document would grow out of all proportion")
            }
            return .composed(body: attempt.output, added: attempt.added)
        }
    }
}

/// What is known of one object while a document is composed.
struct KnownObject {
    /// Nil: nothing is known, or its model is no longer declared.
    let resolved: ResolvedObject?
    /// The payload that alone is the newest, if one is: a pin that equals it needs no look.
    let only: [UInt8]?
    /// That a write may have changed it, or that it is gone.
    let mark: ObjectMark?
    /// That it says of itself that it is deleted.
    let deletion: Deletion?

    init(
        _ state: ObjectState?,
        _ name: ObjectName,
        models: Models,
        lag: Int64,
        apartFrom strangers: [MemberPath: Set<Int64>]
    ) {
        mark = state?.mark
        guard var state, let model = models.index(of: name.model) else {
            (resolved, only, deletion) = (nil, nil, nil)
            return
        }
        state.contributions = state.counting(lag: lag)
        guard !state.contributions.isEmpty else {
            (resolved, only, deletion) = (nil, nil, nil)
            return
        }
        resolved = state.resolved(model: model, models: models, lag: lag, apartFrom: strangers)
        only = state.contributions.count == 1 ? state.contributions[0].payload : nil
        deletion = state.deletion(model: model, models: models, lag: lag)
    }

    /// Whether documents that were observed early enough show it no more as they did.
    var isGone: Bool { deletion != nil || mark?.isTombstone == true }
}
