public import Mapping

/// A tracker's models, as a configuration would declare them.
enum Tracker {
    static func models() throws -> Models {
        try Models([
            ModelDeclaration(
                name: "User",
                identity: ["id"],
                keys: ["login"],
                properties: [property("login"), property("avatarURL", "avatar_url"), property("name")]
            ),
            ModelDeclaration(name: "Label", identity: ["id"], sharesAll: true, local: ["rank"]),
            ModelDeclaration(name: "Signature", properties: [property("name"), property("user", one: "User")]),
            ModelDeclaration(
                name: "Issue",
                identity: ["id"],
                keys: ["number"],
                properties: [
                    property("title"),
                    property("state"),
                    property("reporterLogin", "user.login"),
                    property("user", one: "User"),
                    property("labels", many: "Label"),
                    property("parent", one: "Issue"),
                    property("signature", one: "Signature"),
                    property("signatures", many: "Signature"),
                    property("branch", "head.ref"),
                    property("headUser", "head.user", one: "User"),
                ],
                local: ["score"]
            ),
            ModelDeclaration(
                name: "Dated",
                identity: ["id"],
                properties: [property("value")],
                modified: "updated_at"
            ),
        ])
    }

    static func property(_ name: String, _ from: String? = nil) -> PropertyDeclaration {
        PropertyDeclaration(name: name, from: from ?? name)
    }

    static func property(_ name: String, _ from: String? = nil, one model: String) -> PropertyDeclaration {
        PropertyDeclaration(name: name, from: from ?? name, relation: .one(model))
    }

    static func property(_ name: String, _ from: String? = nil, many model: String) -> PropertyDeclaration {
        PropertyDeclaration(name: name, from: from ?? name, relation: .many(model))
    }
}

/// Everything one daemon would keep of the tracker: documents by name, states by object.
struct Shelf {
    let models: Models
    var lag: Lag = 0
    var states: [ObjectName: ObjectState] = [:]
    var documents: [String: (skeleton: [UInt8], pins: [[UInt8]])] = [:]
    private var clock: Int64 = 0
    private var version: Int64 = 0
    /// When each object changed last, and when each document was last seen to show the newest; counted in responses.
    private var changes: (count: Int, of: [ObjectName: Int]) = (0, [:])
    private var verified: [String: Int] = [:]
    private(set) var observations: [String: Observation] = [:]

    init(_ models: Models) {
        self.models = models
    }

    /// Takes in a response later than all before; returns the objects that changed.
    @discardableResult
    mutating func receive(
        _ document: String,
        _ body: String,
        _ model: String,
        list: Bool = false,
        kind: Observation.Kind = .detail
    ) -> Set<ObjectName> {
        clock += 10
        return receive(document, body, model, list: list, kind: kind, start: clock, end: clock + 5)
    }

    /// Takes in a response observed at the given times.
    @discardableResult
    mutating func receive(
        _ document: String,
        _ body: String,
        _ model: String,
        list: Bool = false,
        kind: Observation.Kind = .detail,
        start: Int64,
        end: Int64
    ) -> Set<ObjectName> {
        version += 1
        let body = Array(body.utf8)
        let rule = BodyRule(model: model, isList: list)
        guard case .objects(let parts) = Decomposer(models: models).decompose(body, as: rule) else {
            documents[document] = (body, [])
            return []
        }
        precondition(parts.recomposes(to: body), "a body is put together again byte for byte")
        documents[document] = (parts.skeleton, parts.occurrences.map(\.payload))
        let observation = Observation(sequence: version, start: start, end: end, kind: kind)
        var changed: Set<ObjectName> = []
        for (name, shown) in Dictionary(grouping: parts.occurrences, by: \.name) {
            let new = shown.enumerated().map { index, occurrence in
                Contribution(
                    observation: observation,
                    version: version * 1000 + Int64(index),
                    payload: occurrence.payload
                )
            }
            let merge = states[name, default: ObjectState()].merge(new, model: name.model, models: models, lag: lag)
            if merge.isChanged || merge.hasDoubtChanged || merge.hasDeletionChanged { changed.insert(name) }
        }
        note(changed, by: document, at: observation)
        return changed
    }

    /// Notes which objects a response changed, and whether it shows the newest.
    mutating func note(_ changed: Set<ObjectName>, by document: String, at observation: Observation) {
        observations[document] = observation
        changes.count += 1
        for name in changed { changes.of[name] = changes.count }
        verified[document] = compose(document) == .unchanged ? changes.count : nil
    }

    /// The objects that pins show, in pre-order.
    private static func names(in text: [UInt8], _ pins: ArraySlice<[UInt8]>) -> [ObjectName] {
        Reference.names(in: text).reduce(into: []) { names, name in
            let rest = pins.dropFirst(names.count)
            names.append(name)
            if let payload = rest.first { names += Self.names(in: payload, rest.dropFirst()) }
        }
    }

    /// With all that is known; where the document has shown the newest before, what has not changed since is not needed.
    func compose(_ document: String) -> Composition {
        guard let (skeleton, pins) = documents[document] else { return .unknown(reason: "no such document") }
        let composer = Composer(models: models, lag: lag)
        let observation = observations[document]
        let whole = composer.compose(skeleton: skeleton, pins: pins, observation: observation) { states[$0] }
        if let verified = verified[document] {
            let names = Self.names(in: skeleton, pins[...])
            let quick = composer.compose(
                skeleton: skeleton,
                pins: pins,
                observation: observation,
                mayHaveChanged: { pin in changes.of[names[pin], default: 0] > verified },
                state: { states[$0] }
            )
            switch (quick, whole) {
            // Which of several reasons is met first is all the same.
            case (.unknown, .unknown): break
            default: precondition(quick == whole, "\(quick) is not \(whole)")
            }
        }
        return whole
    }

    /// The composed body; "=" when the received one holds, "?" when it is not wholly known.
    func shown(_ document: String) -> String {
        switch compose(document) {
        case .unchanged: "="
        case .composed(let body): String(decoding: body.bytes, as: UTF8.self)
        case .unknown: "?"
        }
    }
}

/// Lists alone lag by as many microseconds.
extension Lag: ExpressibleByIntegerLiteral {
    /// Lists alone lag.
    public init(integerLiteral value: Int64) { self.init(lists: value) }
}

extension ObjectState {
    /// The newest members where they are not what the base version shows.
    func mergedPayload(model: String, models: Models) -> [UInt8]? {
        newestPayload(model: model, models: models).flatMap { $0 == base?.payload ? nil : $0 }
    }

    /// Takes one version, the only one that its response shows; whether something is known otherwise than before.
    mutating func merge(_ new: Contribution, model: String, models: Models, lag: Lag) -> Bool {
        merge([new], model: model, models: models, lag: lag).isChanged
    }
}

extension Composer {
    /// The same without regard to doubts.
    func compose(
        skeleton: [UInt8],
        pins: [[UInt8]],
        keyed: [Int] = [],
        url: String = "",
        observation: Observation? = nil,
        mayHaveChanged: (_ pin: Int) -> Bool = { _ in true },
        state: (ObjectName) throws -> ObjectState?
    ) rethrows -> Composition {
        var doubts: Set<Int64> = []
        return try compose(
            skeleton: skeleton,
            pins: pins,
            keyed: keyed,
            url: url,
            observation: observation,
            mayHaveChanged: mayHaveChanged,
            doubts: &doubts,
            state: state
        )
    }
}

func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// The parts of a body; nil when it stays opaque.
func parts(_ body: String, _ model: String, list: Bool = false, root: String? = nil) throws -> DecomposedBody? {
    let rule = BodyRule(model: model, isList: list, root: root)
    guard case .objects(let parts) = try Decomposer(models: Tracker.models()).decompose(Array(body.utf8), as: rule)
    else { return nil }
    return parts
}

/// The warning for a body that stays opaque; nil if it is taken apart or there is nothing to say.
func opaqueWarning(_ body: String, _ model: String, list: Bool = false, root: String? = nil) throws -> MappingWarning? {
    let rule = BodyRule(model: model, isList: list, root: root)
    guard case .opaque(let warning) = try Decomposer(models: Tracker.models()).decompose(Array(body.utf8), as: rule)
    else { return nil }
    return warning
}
