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
    private let lag: Lag
    /// How many bytes may be looked at or written for each byte of the document, and how many for any document: enough
    /// for every object at its newest several times over, and for lists that grow; not for what multiplies.
    private static let effort = (perByte: 16, atLeast: 1 << 20)
    /// How far a document may outgrow what was received.
    private static let growth = (factor: 4, atLeast: 1 << 20)

    /// A composer for the models of one upstream; `lag` as given to `ObjectState.merge`.
    public init(models: Models, lag: Lag) {
        self.models = models
        self.lag = lag
    }

    /// Composes one document from its skeleton and the payloads of its pins in pre-order.
    ///
    /// `state` is asked at most once for each object; nil: nothing is known of it.
    ///
    /// - Parameters:
    ///   - keyed: where in the skeleton objects begin whose members are the document's objects.
    ///   - observation: the document's own: what was written or deleted after it makes the document stale. Without it the
    ///     document is taken to be newer than all that.
    ///   - mayHaveChanged: whether a pin may show something else than the newest of its object, given its index; where not,
    ///     the pin is taken as it is, and the object is not asked for.
    ///   - doubts: gets, for each member in doubt that the document shows, from when on that is to be settled by asking.
    public func compose(
        skeleton: [UInt8],
        pins: [[UInt8]],
        keyed: [Int] = [],
        observation: Observation? = nil,
        mayHaveChanged: (_ pin: Int) -> Bool = { _ in true },
        doubts: inout Set<Int64>,
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
                known[name] = KnownObject(try state(name), name, models: models, lag: lag)
            }
            var attempt = CompositionAttempt(
                tree: tree,
                models: models,
                known: known,
                observation: observation,
                lag: lag,
                mayRemove: observation != nil && known.values.contains(where: \.isGone),
                keyed: keyed,
                effort: effort
            )
            attempt.run()
            effort = attempt.effort
            // An object that a reference newly points to is met only while composing; each round goes one deeper.
            guard attempt.missing.isEmpty || attempt.reason != nil else {
                wanted = attempt.missing
                continue
            }
            doubts.formUnion(attempt.doubts)
            if let reason = attempt.reason { return .unknown(reason: reason) }
            guard attempt.isChanged else { return .unchanged }
            guard attempt.output.count <= max(received * Self.growth.factor, Self.growth.atLeast) else {
                return .unknown(reason: "the document would grow out of all proportion")
            }
            return .composed(body: attempt.output, added: attempt.added)
        }
    }

    /// Whether a document shows an older value than is known, or a member in doubt; the parameters are those of `compose`.
    public func isDirty(
        skeleton: [UInt8],
        pins: [[UInt8]],
        keyed: [Int],
        observation: Observation,
        mayHaveChanged: (_ pin: Int) -> Bool = { _ in true },
        state: (ObjectName) throws -> ObjectState?
    ) rethrows -> Bool {
        var doubts: Set<Int64> = []
        let composition = try compose(
            skeleton: skeleton,
            pins: pins,
            keyed: keyed,
            observation: observation,
            mayHaveChanged: mayHaveChanged,
            doubts: &doubts,
            state: state
        )
        return composition != .unchanged || !doubts.isEmpty
    }
}

/// What is known of one object while a document is composed.
struct KnownObject {
    private let state: ObjectState?
    /// Nil: nothing is known, or its model is no longer declared.
    let resolved: ResolvedObject?
    /// By member in doubt, from when on that is to be settled by asking.
    let doubts: [MemberPath: Int64]
    /// Since when it says of itself that it is deleted.
    let deletion: Int64?

    init(_ state: ObjectState?, _ name: ObjectName, models: Models, lag: Lag) {
        self.state = state
        guard let state, let model = models.index(of: name.model), let payload = state.payload,
            let value = JSONSlice(payload)
        else {
            (resolved, doubts, deletion) = (nil, [:], nil)
            return
        }
        guard !state.isOutdated(lag: lag) else {
            // Documents that go on showing what is deleted show it as it was last known, and nobody can be asked any more.
            let isKept = state.mark?.isTombstone == true && models.onDelete(payload, model: model) == .keep
            resolved = isKept ? ResolvedObject(value, model: model, models: models) : nil
            (doubts, deletion) = ([:], nil)
            return
        }
        resolved = ResolvedObject(value, model: model, models: models)
        doubts = Dictionary(
            state.knowledge.doubts.map { (MemberPath(pointer: $0.member), $0.asksFrom) },
            uniquingKeysWith: { first, _ in first }
        )
        deletion = state.deletedSince
    }

    /// That a write may have changed it, or that it is gone.
    var mark: ObjectMark? { state?.mark }

    /// The settled values: a pin that equals them needs no look.
    var payload: [UInt8]? { state?.payload }

    var isInDoubt: Bool { !doubts.isEmpty }

    /// Whether documents that were observed early enough show it no more as they did.
    var isGone: Bool { deletion != nil || mark?.isTombstone == true }

    /// When a member was last settled.
    func lo(of path: MemberPath, lag: Lag) -> Int64 { state?.lo(of: path, lag: lag) ?? .min }
}
