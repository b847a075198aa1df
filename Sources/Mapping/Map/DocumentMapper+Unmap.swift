extension DocumentMapper {
    /// A mapped body as the upstream's JSON.
    ///
    /// Null is written only where the mapped body has it, synthetic values only where they were changed or are named in
    /// `members`, objects in the place of their bare identities as these; what is no property is left out, with a warning.
    ///
    /// - Parameters:
    ///   - body: the mapped view of a body, as `map` makes it of the same rule.
    ///   - rule: what the route says of the body.
    ///   - members: the properties of the content's objects that are written; nil: all.
    ///   - synthetic: the pointers that `map` returned; nil: whatever equals its default counts as synthetic, with a
    ///     warning.
    public func unmap(
        _ body: [UInt8],
        as rule: BodyRule,
        members: [String]? = nil,
        synthetic: [String]? = nil
    ) throws(UnmapError) -> UnmappedBody {
        let shape: BodyShape
        do throws(MappingWarning) {
            shape = try BodyShape(rule, plan)
        } catch {
            throw UnmapError(reason: error.message, model: error.model)
        }
        var run = UnmapRun(plan, mapped: try Self.index(body), synthetic: synthetic)
        try run.body(shape, mask: MemberMask(members))
        run.writeSurroundings()
        return UnmappedBody(body: run.builder.json(), warnings: run.warnings)
    }

    private static func index(_ text: [UInt8]) throws(UnmapError) -> JSONIndex {
        do throws(JSONIndex.Failure) {
            return try JSONIndex(text)
        } catch {
            throw UnmapError(reason: error == .tooDeep ? "the JSON is nested too deep" : "the text is not JSON")
        }
    }
}

/// What a mapped body was written back as.
public struct UnmappedBody: Sendable, Equatable {
    /// The upstream's JSON.
    public var body: [UInt8]
    /// What has no way back; their pointers lead into the mapped body.
    public var warnings: [MappingWarning]
}

/// Why a mapped body cannot be written back.
public struct UnmapError: Error, Sendable, Equatable {
    /// What was expected; never quotes the value.
    public var reason: String
    /// Where in the mapped body.
    public var pointer: String?
    /// The property whose value has no way back.
    public var property: String?
    /// The model concerned.
    public var model: String?
    /// The mapped value that has no way back, as JSON; no part of the description.
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
    mutating func body(_ shape: BodyShape, mask: MemberMask) throws(UnmapError) {
        let body = Value(document: 0, node: 0)
        isEnveloped = shape.envelope != nil && !shape.main.path.steps.isEmpty
        guard !shape.isBare, kind(body) == .object else {
            return try content(body, shape.main, mask: mask)
        }
        let names = shape.others.map(\.name)
        if shape.main.path.steps.isEmpty {
            guard shape.main.shape == .one else { return try content(body, shape.main, mask: mask) }
            let enveloped = shape.envelope.map { plan.models[$0].propertyNames } ?? []
            try object(body, as: shape.main.plan, into: WireBuilder.root, mask: mask, besides: names + enveloped)
            if let envelope = shape.envelope {
                // What the main content has of that name was written with it.
                let others = memberNames(of: body).filter { !enveloped.contains($0) }
                let own = plan.models[choose(shape.main.plan, for: body)].propertyNames
                try object(body, as: envelope, into: WireBuilder.root, mask: .excluding(own + names), besides: others)
            }
        } else {
            builder.openObject(WireBuilder.root)
            try main(of: body, shape, mask: mask)
            if let envelope = shape.envelope {
                let names = names + [shape.main.name]
                try object(body, as: envelope, into: WireBuilder.root, mask: .excluding(names), besides: names)
            }
        }
        isEnveloped = shape.envelope != nil || shape.main.path.steps.isEmpty
        for other in shape.others {
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

    private mutating func main(of body: Value, _ shape: BodyShape, mask: MemberMask) throws(UnmapError) {
        if let value = member(shape.main.name, of: body) { try content(value, shape.main, mask: mask) }
    }

    private mutating func content(_ value: Value, _ content: BodyShape.Content, mask: MemberMask) throws(UnmapError) {
        var node = WireBuilder.root
        for name in content.path.leadingNames {
            guard let member = builder.member(name, of: node) else {
                return warnOfNoPlace(value, plan.models[content.plan].name)
            }
            node = member
        }
        switch (content.shape, kind(value)) {
        case (.one, .object):
            try object(value, as: content.plan, into: node, mask: mask)
        case (.many, .array):
            try list(value, as: content.plan, into: node, mask: mask)
        case (.many, .object):
            guard let element = builder.elements(1, of: node)?.first else {
                return warnOfNoPlace(value, plan.models[content.plan].name)
            }
            try object(value, as: content.plan, into: element, mask: mask, standing: Standing(position: 0))
        case (.keyed, .object):
            try keyed(value, as: content.plan, into: node, mask: mask)
        default:
            set(node, value, plan.models[content.plan].name)
        }
    }
}
