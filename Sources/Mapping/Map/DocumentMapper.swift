/// Maps bodies and objects to the form of their models, and back to the upstream's JSON.
///
/// It is pure. Mapping never fails: parts that do not fit give warnings. A rule without an envelope model and further
/// objects is shown as its content alone. Otherwise the mapped view is an object with the envelope's properties and
/// each content. A content has the last name of its `root`, or the whole `root` if two end in the same name.
public struct DocumentMapper: Sendable {
    private let models: Models

    /// Creates a mapper for the models of one upstream.
    public init(models: Models) { self.models = models }

    /// Maps one body.
    ///
    /// - Parameters:
    ///   - body: the upstream's JSON.
    ///   - rule: the route's rule for the body.
    ///   - context: the surroundings of the body.
    ///   - members: the requested properties of the content's objects, such as `user.login` for one of a related
    ///     object. Nil requests all. The identity is always shown.
    ///   - known: the JSON of objects that the body names by their identities or keys. They are inserted in place of
    ///     these and count as synthetic. Bare identities within them stay.
    public func map(
        _ body: [UInt8],
        as rule: BodyRule,
        in context: MappingContext = .none,
        members: [String]? = nil,
        known: [BoundObject: [UInt8]] = [:]
    ) -> MappedBody {
        guard body.isUTF8 else { return MappedBody(unmapped: body, [.notUTF8]) }
        let index: JSONIndex
        do throws(JSONIndex.Failure) {
            index = try JSONIndex(body)
        } catch {
            return MappedBody(unmapped: body, [Self.warning(error, body)].compactMap(\.self))
        }
        let plan: BodyPlan
        do throws(MappingWarning) {
            plan = try BodyPlan(rule, models)
        } catch {
            return MappedBody(unmapped: body, [error])
        }
        var run = MapRun(models, body: index, context: context, known: known)
        guard run.body(plan, mask: MemberMask(members)) else { return MappedBody(unmapped: body, run.warnings) }
        return MappedBody(run)
    }

    /// Maps one object.
    ///
    /// - Parameters:
    ///   - payload: the object's JSON. References in it are shown as bare identities; only key paths follow them.
    ///   - model: the name of its model, or of its cluster's base.
    ///   - identity: its identity, which it does not contain if it is identified by its name (`@key`).
    ///   - members: the requested properties. Nil requests all.
    ///   - resolve: returns the payload of an object by its name.
    public func mapObject(
        _ payload: [UInt8],
        model: String,
        identity: String? = nil,
        members: [String]? = nil,
        resolve: (ObjectName) -> [UInt8]? = { _ in nil }
    ) -> MappedBody {
        let index: JSONIndex
        do throws(JSONIndex.Failure) {
            index = try JSONIndex(payload)
        } catch {
            return MappedBody(unmapped: payload, [Self.warning(error, payload)].compactMap(\.self))
        }
        guard let model = models.index(of: model) else { return MappedBody(unmapped: payload, [.unknownModel(model)]) }
        guard index.kind(0) == .object else {
            let warning = MappingWarning(.notAnObject, pointer: "", model: models.declarations[model].name)
            return MappedBody(unmapped: payload, [warning])
        }
        return withoutActuallyEscaping(resolve) { resolve in
            var run = MapRun(models, body: index, resolve: resolve)
            let key =
                models.compiled[model].isIdentifiedByKey
                ? identity.flatMap { run.make(JSONString.literal($0), of: nil) } : nil
            run.object(MapRun.Value(document: 0, node: 0), as: model, key: key, mask: MemberMask(members))
            return MappedBody(run)
        }
    }

    private static func warning(_ failure: JSONIndex.Failure, _ body: [UInt8]) -> MappingWarning? {
        switch failure {
        case .tooDeep: return MappingWarning(.tooDeep)
        case .malformed:
            // An empty body is normal: 204, HEAD.
            guard body.contains(where: { $0 > 0x20 }) else { return nil }
            let hasMark = body.starts(with: [0xEF, 0xBB, 0xBF])
            return MappingWarning(
                .notJSON,
                hasMark ? "The body is not JSON: it begins with a byte order mark." : "The body is not JSON."
            )
        }
    }
}

/// The mapped view of a body or an object.
public struct MappedBody: Sendable, Equatable {
    /// The mapped JSON, or the original body.
    public var body: [UInt8]
    /// Whether the body is mapped; false if it does not match its rule.
    public var isMapped: Bool
    /// The warnings about parts that did not fit; their pointers refer to the original body.
    public var warnings: [MappingWarning]
    /// Pointers into the mapped JSON, to values that come from the models' defaults and to objects inserted in place of
    /// bare identities.
    public var synthetic: [String]
    /// The objects that the body names by their identities or keys, up to a limit.
    public var named: Set<BoundObject> = []

    init(unmapped body: [UInt8], _ warnings: [MappingWarning]) {
        (self.body, self.warnings, synthetic) = (body, warnings, [])
        isMapped = false
    }

    init(_ run: MapRun) {
        (body, warnings, synthetic) = (run.output, run.warnings, run.synthetic)
        named = run.named
        isMapped = true
    }
}

extension MappingWarning: Error {
    static func unknownModel(_ name: String) -> MappingWarning {
        MappingWarning(.unknownModel, "The route names a model that is not declared.", model: name)
    }

    /// JSON is UTF-8 (RFC 8259 §8.1), whatever charset the response names.
    static var notUTF8: MappingWarning {
        MappingWarning(.notJSON, "The body is not UTF-8, as JSON must be. It is passed on as it is.")
    }
}

extension DocumentMapper {
    /// The requested members that no object of the models shows, such as a misspelled `user.login`.
    public func unknownMembers(among members: [String], of models: [String]) -> [String] {
        let indexes = models.compactMap(self.models.index)
        return members.filter { !isKnown($0.split(separator: ".", omittingEmptySubsequences: false)[...], in: indexes) }
    }

    private func isKnown(_ path: ArraySlice<Substring>, in indexes: [Int]) -> Bool {
        guard let name = path.first else { return true }
        let rest = path.dropFirst()
        // The models and all concrete models of their clusters.
        let family = reachable(from: indexes) { models.compiled[$0].reading.choices.map(\.shown) }
        return family.contains { index in
            let model = models.compiled[index]
            return model.properties.contains { property in
                guard property.completes.isEmpty, property.name.utf8.elementsEqual(name.utf8) else { return false }
                guard !rest.isEmpty else { return true }
                return property.relation.map { isKnown(rest, in: [$0.model]) } ?? false
            }
        }
    }

    /// Writes a mapped body back as the upstream's JSON.
    ///
    /// Null is written only where the mapped body has it. Synthetic values are written only if they were changed or are
    /// named in `members`. Inserted objects become bare identities again. Members that are not properties are left out
    /// with a warning.
    ///
    /// - Parameters:
    ///   - body: the mapped view of a body, as returned by `map` for the same rule.
    ///   - rule: the route's rule for the body.
    ///   - members: the properties of the content's objects to write. Nil writes all.
    ///   - synthetic: the pointers returned by `map`. If nil, every value equal to its default counts as synthetic,
    ///     with a warning.
    public func unmap(_ body: [UInt8], as rule: BodyRule, members: [String]? = nil, synthetic: [String]? = nil)
        throws(UnmapError) -> UnmappedBody
    {
        let plan: BodyPlan
        do throws(MappingWarning) {
            plan = try BodyPlan(rule, models)
        } catch {
            throw UnmapError(reason: error.message, model: error.model)
        }
        var run = UnmapRun(models, mapped: try Self.index(body), synthetic: synthetic)
        try run.body(plan, mask: MemberMask(members))
        run.writeSurroundings()
        return UnmappedBody(body: run.builder.json(), warnings: run.warnings)
    }

    private static func index(_ text: [UInt8]) throws(UnmapError) -> JSONIndex {
        guard text.isUTF8 else { throw UnmapError(reason: "the text is not UTF-8") }
        do throws(JSONIndex.Failure) {
            return try JSONIndex(text)
        } catch {
            throw UnmapError(reason: error == .tooDeep ? "the JSON is nested too deep" : "the text is not JSON")
        }
    }
}

/// The result of writing a mapped body back.
public struct UnmappedBody: Sendable, Equatable {
    /// The upstream's JSON.
    public var body: [UInt8]
    /// The warnings about values without a way back; their pointers refer to the mapped body.
    public var warnings: [MappingWarning]
}

/// Why a mapped body cannot be written back.
public struct UnmapError: Error, Sendable, Equatable {
    /// What was expected; it never quotes the value.
    public var reason: String
    /// The JSON pointer to the value in the mapped body.
    public var pointer: String?
    /// The property whose value has no way back.
    public var property: String?
    /// The model concerned.
    public var model: String?
    /// The mapped value without a way back, as JSON; it is not part of the description.
    public var value: [UInt8]?
}

extension UnmapError: CustomStringConvertible {
    /// The place and what was expected there.
    public var description: String {
        let place = [
            pointer.map { $0.isEmpty ? "the whole" : $0 }, property.map { "property \($0)" },
            model.map { "model \($0)" },
        ]
        return (place.compactMap(\.self) + [reason]).joined(separator: ": ")
    }
}

extension UnmapRun {
    /// Writes back a whole body.
    mutating func body(_ plan: BodyPlan, mask: MemberMask) throws(UnmapError) {
        let body = Value(document: 0, node: 0)
        isEnveloped = plan.envelope != nil && !plan.main.path.isEmpty
        let isAlone = plan.envelope == nil && plan.others.isEmpty
        guard !isAlone, kind(body) == .object else { return try content(body, plan.main, mask: mask) }
        let names = plan.others.map(\.name)
        if plan.main.path.isEmpty {
            guard plan.main.arity == .one else { return try content(body, plan.main, mask: mask) }
            let enveloped = plan.envelope.map { models.compiled[$0].propertyNames } ?? []
            try object(body, as: plan.main.model, into: WireBuilder.root, mask: mask, besides: names + enveloped)
            if let envelope = plan.envelope {
                // A property with the same name was written with the main content.
                let others = memberNames(of: body).filter { !enveloped.contains($0) }
                let own = models.compiled[choose(plan.main.model, for: body)].propertyNames
                try object(body, as: envelope, into: WireBuilder.root, mask: .excluding(own + names), besides: others)
            }
        } else {
            builder.openObject(WireBuilder.root)
            if let value = member(plan.main.name, of: body) { try content(value, plan.main, mask: mask) }
            if let envelope = plan.envelope {
                let names = names + [plan.main.name]
                try object(body, as: envelope, into: WireBuilder.root, mask: .excluding(names), besides: names)
            }
        }
        isEnveloped = plan.envelope != nil || plan.main.path.isEmpty
        for other in plan.others {
            if let value = member(other.name, of: body) { try content(value, other, mask: mask) }
        }
    }

    private func memberNames(of object: Value) -> [String] {
        var names: [String] = []
        documents[object.document].forEachMember(of: object.node) { name, _ in
            documents[object.document].name(name).map { names.append($0) }
        }
        return names
    }

    private mutating func content(_ value: Value, _ content: BodyPlan.Content, mask: MemberMask) throws(UnmapError) {
        var node = WireBuilder.root
        for name in content.path.leadingNames {
            guard let member = builder.member(Array(name.utf8), of: node) else {
                return warnOfNoPlace(value, models.compiled[content.model].name)
            }
            node = member
        }
        let related = CompiledProperty.Related(arity: content.arity, model: content.model)
        switch (content.arity, kind(value)) {
        case (.one, .object):
            try object(value, as: content.model, into: node, mask: mask)
        case (.many, .array):
            try list(value, of: related, into: node, mask: mask)
        case (.many, .object):
            guard let element = builder.elements(1, of: node)?.first else {
                return warnOfNoPlace(value, models.compiled[content.model].name)
            }
            try object(value, as: content.model, into: element, mask: mask, standing: Standing(position: 0))
        case (.keyed, .object):
            try keyed(value, of: related, into: node, mask: mask)
        default:
            set(node, value, models.compiled[content.model].name)
        }
    }
}

/// The requested properties of an object, such as `user.login` for one of a related object.
struct MemberMask: Sendable {
    private var children: [String: MemberMask] = [:]

    /// Requests everything.
    static let all = MemberMask()

    private init() {}

    /// Creates a mask from property paths; nil requests everything.
    init(_ members: [String]?) {
        guard let members else { return }
        isEverything = false
        for member in members { insert(member.split(separator: ".").map(String.init)[...]) }
    }

    private var isEverything = true
    /// The exceptions when everything else is requested.
    var excluded: [String] = []

    /// Requests everything but members with these names.
    static func excluding(_ names: [String]) -> MemberMask {
        var mask = MemberMask.all
        mask.excluded = names
        return mask
    }

    private mutating func insert(_ path: ArraySlice<String>) {
        guard let name = path.first else { return }
        if path.count == 1 {
            children[name] = .all
        } else if children[name]?.isEverything != true {
            var child = children[name] ?? MemberMask([])
            child.insert(path.dropFirst())
            children[name] = child
        }
    }

    /// Whether a property is requested by name, not with everything else.
    func names(_ name: String) -> Bool { !isEverything && children[name] != nil }

    /// The mask for a property's value; nil if the property is not requested.
    func member(_ name: String) -> MemberMask? {
        isEverything ? (excluded.contains(name) ? nil : .all) : children[name]
    }
}
