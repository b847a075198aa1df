import Mapping

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
    var lag: Int64 = 0
    var states: [ObjectName: ObjectState] = [:]
    var documents: [String: (skeleton: [UInt8], pins: [[UInt8]])] = [:]
    private var clock: Int64 = 0
    private var version: Int64 = 0

    init(_ models: Models) {
        self.models = models
    }

    /// Takes in an answer later than all before; returns the objects that changed.
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

    /// Takes in an answer observed at the given times.
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
        guard case .objects(let parts) = Normaliser(models: models).decompose(body, as: rule) else {
            documents[document] = (body, [])
            return []
        }
        precondition(parts.recomposes(to: body), "a body is put together again byte for byte")
        documents[document] = (parts.skeleton, parts.occurrences.map(\.payload))
        let observation = Observation(sequence: version, start: start, end: end, kind: kind)
        var changed: Set<ObjectName> = []
        for (name, shown) in Dictionary(grouping: parts.occurrences, by: \.name) {
            let new = shown.map { Contribution(observation: observation, version: version, payload: $0.payload) }
            if states[name, default: ObjectState()].merge(new, model: name.model, models: models, lag: lag) {
                changed.insert(name)
            }
        }
        return changed
    }

    func compose(_ document: String) -> Composition {
        guard let (skeleton, pins) = documents[document] else { return .unknown(reason: "no such document") }
        return Composer(models: models, lag: lag).compose(skeleton: skeleton, pins: pins) { states[$0] }
    }

    /// The composed body; "=" when the received one holds, "?" when it is not wholly known.
    func shown(_ document: String) -> String {
        switch compose(document) {
        case .unchanged: "="
        case .composed(let body, _): String(decoding: body, as: UTF8.self)
        case .unknown: "?"
        }
    }
}

/// A small generator with a seed, so that a failure can be repeated.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        // Mixed, so that the next seed is not this one's stream a step later.
        state = Self.mixed(seed &+ 0x632B_E59B_D9B4_E019)
    }

    mutating func next() -> UInt64 {
        // splitmix64
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mixed(state)
    }

    private static func mixed(_ state: UInt64) -> UInt64 {
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// The parts of a body; nil when it stays opaque.
func parts(_ body: String, _ model: String, list: Bool = false, root: String? = nil) throws -> DecomposedBody? {
    let rule = BodyRule(model: model, isList: list, root: root)
    guard case .objects(let parts) = try Normaliser(models: Tracker.models()).decompose(Array(body.utf8), as: rule)
    else { return nil }
    return parts
}

/// The warning for a body that stays opaque; nil if it is taken apart or there is nothing to say.
func opaqueWarning(_ body: String, _ model: String, list: Bool = false, root: String? = nil) throws -> MappingWarning? {
    let rule = BodyRule(model: model, isList: list, root: root)
    guard case .opaque(let warning) = try Normaliser(models: Tracker.models()).decompose(Array(body.utf8), as: rule)
    else { return nil }
    return warning
}
