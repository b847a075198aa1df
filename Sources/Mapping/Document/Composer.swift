/// The result of composing a document.
public enum Composition: Sendable, Equatable {
    /// The document already shows the newest values, so the body as received is right.
    case unchanged
    case composed(ComposedBody)
    /// Not every byte of the result is known (law 6).
    ///
    /// `partial` has newer values all the same: objects of which not all is known are as received. Nil if no other has
    /// a newer value, or if it was not wanted.
    case unknown(reason: String, partial: ComposedBody? = nil)
}

/// A body that shows newer values than the one received.
public struct ComposedBody: Sendable, Equatable {
    public var bytes: [UInt8]
    /// The objects that now appear where the document pinned others, or none.
    public var added: Set<ObjectName>
    /// The observations whose values it shows in place of those received.
    var sources: Set<Int64>
}

/// Composes documents: the shape comes from the pinned versions, the values from the objects' newest state.
public struct Composer: Sendable {
    private let models: Models
    private let lag: Lag
    /// The limit on bytes read or written: it suffices for every object's newest values several times over and for
    /// lists that grow, but not for objects that multiply.
    private static let effort = (perByte: 16, atLeast: 1 << 20)
    /// How far a composed document may outgrow the received one.
    private static let growth = (factor: 4, atLeast: 1 << 20)

    /// Creates a composer for the models of one upstream; `lag` is the same as for `ObjectState.merge`.
    public init(models: Models, lag: Lag) { (self.models, self.lag) = (models, lag) }

    /// Composes one document from its skeleton and the payloads of its pins in pre-order.
    ///
    /// `state` is called at most once per object. It returns nil if nothing is known of the object.
    ///
    /// - Parameters:
    ///   - keyed: the offsets in the skeleton of objects whose members are the document's objects.
    ///   - url: its path and query. An object whose member no longer has the value of the parameter with that name may
    ///     no longer belong to the list, so not all is known.
    ///   - observation: the document's own; a write or deletion after it makes the document outdated. Without it, the
    ///     document counts as newer than all of them.
    ///   - mayHaveChanged: whether a pin may show other values than the newest of its object. If not, it is copied and
    ///     `state` is not called for it.
    ///   - isPartialWanted: whether to compose what is known if not all is.
    ///   - mayShow: whether the values of an observation may be put in; called for those of objects in `state`.
    ///   - doubts: receives, for each doubtful member shown, the time from which it is to be settled by fetching.
    public func compose(
        skeleton: [UInt8],
        pins: [[UInt8]],
        keyed: [Int] = [],
        url: String = "",
        observation: Observation? = nil,
        mayHaveChanged: (_ pin: Int) -> Bool = { _ in true },
        isPartialWanted: Bool = false,
        mayShow: (_ source: Int64) -> Bool = { _ in true },
        doubts: inout Set<Int64>,
        state: (ObjectName) throws -> ObjectState?
    ) rethrows -> Composition {
        guard let tree = PinTree(skeleton: skeleton, pins: pins, readingNames: mayHaveChanged) else {
            return .unknown(reason: "the stored document is damaged")
        }
        let received = pins.reduce(skeleton.count) { $0 + $1.count }
        var start = CompositionAttempt(
            tree: tree,
            models: models,
            observation: observation,
            lag: lag,
            keyed: keyed,
            filters: QueryParameters(ofURL: url),
            isPartialWanted: isPartialWanted,
            effort: max(received * Self.effort.perByte, Self.effort.atLeast)
        )
        var wanted = Set(tree.looked.lazy.compactMap(\.self))
        while true {
            for name in wanted {
                let object = KnownObject(name, try state(name) ?? ObjectState(), models: models, lag: lag)
                for source in object.state.sources where !mayShow(source) { start.hidden.insert(source) }
                if observation != nil, object.isGone { start.mayRemove = true }
                start.known[name] = object
            }
            var attempt = start
            attempt.run()
            start.effort = attempt.effort
            // References to new objects are found only while composing; each round goes one level deeper.
            guard attempt.missing.isEmpty || attempt.reason != nil else {
                wanted = attempt.missing
                continue
            }
            doubts.formUnion(attempt.doubts)
            if let reason = attempt.reason { return .unknown(reason: reason) }
            guard attempt.isChanged else { return attempt.shortfall.map { .unknown(reason: $0) } ?? .unchanged }
            // Earlier versions of Larder have stored objects of bodies in other encodings.
            guard attempt.output.isUTF8 else { return .unknown(reason: "the updated document would not be UTF-8") }
            let fits = attempt.output.count <= max(received * Self.growth.factor, Self.growth.atLeast)
            let body = ComposedBody(bytes: attempt.output, added: attempt.added, sources: attempt.sources)
            if let shortfall = attempt.shortfall { return .unknown(reason: shortfall, partial: fits ? body : nil) }
            return fits ? .composed(body) : .unknown(reason: "the updated document would be too large")
        }
    }

    /// Whether a document shows an outdated value or a member in doubt; the parameters are those of `compose`.
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

/// What is known of one object.
struct KnownObject {
    let name: ObjectName
    let state: ObjectState
    /// The settled members; nil if nothing is known or the model is no longer declared.
    let resolved: ResolvedObject?
    /// Whether some value is newer than its mark, if it has one.
    let isCurrent: Bool
    /// By doubtful member, the time from which it is to be settled by fetching.
    let doubts: [MemberPath: Int64]
    /// When the object first showed itself to be deleted.
    let deletion: Int64?

    init(_ name: ObjectName, _ state: ObjectState, models: Models, lag: Lag) {
        (self.name, self.state) = (name, state)
        let isOutdated = state.isOutdated(lag: lag)
        let isDeleted = isOutdated && state.mark?.isTombstone == true
        guard let model = models.index(of: name.model), let payload = state.payload, let value = JSONSlice(payload),
            // Documents that keep showing a deleted object show its last known values; there is nothing to fetch.
            !isDeleted || models.onDelete(payload, model: model) == .keep
        else {
            (resolved, isCurrent, doubts, deletion) = (nil, false, [:], nil)
            return
        }
        resolved = ResolvedObject(value, model: model, models: models)
        isCurrent = isDeleted || !isOutdated
        // Another response may have shown a deleted object otherwise; there is nobody to ask any more.
        let doubts = state.knowledge.doubts.map { (MemberPath(pointer: $0.member), isDeleted ? .max : $0.asksFrom) }
        self.doubts = Dictionary(doubts, uniquingKeysWith: { first, _ in first })
        deletion = isOutdated ? nil : state.deletedSince
    }

    /// Whether the object is deleted, which affects documents observed before that.
    var isGone: Bool { deletion != nil || state.mark?.isTombstone == true }
}

/// The pin of each reference in a skeleton and its payloads.
struct PinTree {
    typealias Place = (range: Range<Int>, pin: Int)

    /// The index of the skeleton among the texts; pin `i` is text `i`.
    static let skeleton = -1

    let skeleton: [UInt8]
    let pins: [[UInt8]]
    private let places: [[Place]]
    /// By pin, the text that refers to it, and the literal there.
    private let references: [(text: Int, literal: Range<Int>)]
    /// By pin, the object it shows if newer values may be known: reading all names would be most of the work.
    private(set) var looked: [ObjectName?]

    /// Nil if the pins do not match the skeleton, or a name that is to be read is damaged.
    init?(skeleton: [UInt8], pins: [[UInt8]], readingNames mayHaveChanged: (_ pin: Int) -> Bool = { _ in false }) {
        (self.skeleton, self.pins) = (skeleton, pins)
        var places: [[Place]] = Array(repeating: [], count: pins.count + 1)
        var references: [(text: Int, literal: Range<Int>)] = []
        let isWhole = Self.walk(skeleton: skeleton, pins: pins) { text, _, reference in
            guard let reference else { return }
            places[text + 1].append((reference, references.count))
            references.append((text, reference))
        }
        guard isWhole else { return nil }
        (self.places, self.references) = (places, references)
        looked = Array(repeating: nil, count: pins.count)
        for pin in pins.indices where mayHaveChanged(pin) {
            guard let name = name(of: pin) else { return nil }
            looked[pin] = name
        }
    }

    /// Visits the texts as they are nested, each up to its next reference or its end; false if the pins do not match.
    static func walk(
        skeleton: [UInt8],
        pins: [[UInt8]],
        _ visit: (_ text: Int, _ stretch: UnsafeBufferPointer<UInt8>, _ reference: Range<Int>?) -> Void
    ) -> Bool {
        // The texts being read, innermost last, and the position in each.
        var open = [(text: Self.skeleton, position: 0)]
        var next = 0
        while let (text, position) = open.last {
            let source = text < 0 ? skeleton : pins[text]
            let reference = source.withUnsafeBufferPointer { source in
                let reference = Reference.next(in: source, from: position)
                let stretch = source[position..<(reference?.lowerBound ?? source.count)]
                visit(text, UnsafeBufferPointer(rebasing: stretch), reference)
                return reference
            }
            guard let reference else {
                open.removeLast()
                continue
            }
            guard next < pins.count else { return false }
            open[open.count - 1].position = reference.upperBound
            open.append((next, 0))
            next += 1
        }
        return next == pins.count
    }

    /// The object that a pin shows; nil if its literal is damaged.
    func name(of pin: Int) -> ObjectName? {
        text(references[pin].text).withUnsafeBufferPointer { Reference.name(at: references[pin].literal, in: $0) }
    }

    /// The JSON pointer (RFC 6901) of a pin within the body.
    func pointer(to pin: Int) -> String {
        guard pin != Self.skeleton else { return "" }
        let (parent, literal) = references[pin]
        return pointer(to: parent) + ((try? JSONIndex(text(parent)))?.pointer(toOffset: literal.lowerBound) ?? "")
    }

    /// Whether a pin's object is within another one.
    func isInner(_ pin: Int) -> Bool { references[pin].text != Self.skeleton }

    /// Whether a pin's object is within another one, or one of several.
    func isEmbedded(_ pin: Int) -> Bool { isInner(pin) || places[Self.skeleton + 1].count > 1 }

    func text(_ index: Int) -> [UInt8] { index < 0 ? skeleton : pins[index] }

    /// The references directly in a stretch of a text, in order.
    func places(in text: Int, _ range: Range<Int>) -> ArraySlice<Place> {
        let all = places[text + 1]
        let rest = all[all.boundary(where: { $0.range.lowerBound >= range.lowerBound })...]
        return rest[..<(rest.firstIndex { $0.range.lowerBound >= range.upperBound } ?? rest.endIndex)]
    }
}
