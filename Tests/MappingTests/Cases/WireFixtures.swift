import Testing

@testable import Mapping

/// Short spellings for what the cases declare.
enum Wire {
    static func property(
        _ name: String,
        _ from: String? = nil,
        _ relation: Relation? = nil,
        checks: [ValueCheck] = [],
        required: Bool = false,
        merge: MergePolicy = .latest
    ) -> PropertyDeclaration {
        var property = PropertyDeclaration(name: name, from: from ?? name, relation: relation)
        (property.isRequired, property.checks, property.merge) = (required, checks, merge)
        return property
    }

    static func json(_ text: String) -> [UInt8] { Array(text.utf8) }

    /// The parts of a body that holds objects; a body that stays whole is an issue.
    static func parts(
        _ body: String,
        _ rule: BodyRule,
        _ models: Models,
        _ context: MappingContext = .none,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> DecomposedBody {
        let bytes = json(body)
        guard case .objects(let parts) = Decomposer(models: models).decompose(bytes, as: rule, in: context) else {
            Issue.record("no objects in \(body)", sourceLocation: sourceLocation)
            throw NoObjects()
        }
        if !parts.showsSecret { #expect(parts.recomposes(to: bytes), sourceLocation: sourceLocation) }
        return parts
    }

    struct NoObjects: Error {}

    /// What a body that stays whole is warned of, after a colon its property.
    static func opaque(_ body: String, _ rule: BodyRule, _ models: Models) -> MappingWarning.Kind?? {
        guard case .opaque(let warning) = Decomposer(models: models).decompose(json(body), as: rule) else {
            return .none
        }
        return .some(warning?.kind)
    }

    /// The names of the objects in a body, in the order of their first bytes.
    static func names(
        _ body: String,
        _ rule: BodyRule,
        _ models: Models,
        _ context: MappingContext = .none
    ) throws -> [String] {
        try parts(body, rule, models, context).occurrences.map(\.name.description)
    }

    /// The error that a declaration deserves.
    static func error(_ declarations: [ModelDeclaration]) -> MappingError? {
        do throws(MappingError) {
            _ = try Models(declarations)
            return nil
        } catch {
            return error
        }
    }
}

extension Shelf {
    /// Takes in a response of any rule, as `receive` does.
    @discardableResult
    mutating func take(
        _ document: String,
        _ body: String,
        _ rule: BodyRule,
        at time: Int64,
        in context: MappingContext = .none,
        kind: Observation.Kind = .detail
    ) -> [MappingWarning] {
        let bytes = Array(body.utf8)
        switch Decomposer(models: models).decompose(bytes, as: rule, in: context) {
        case .opaque(let warning):
            documents[document] = (bytes, [])
            return warning.map { [$0] } ?? []
        case .objects(let parts):
            if !parts.showsSecret {
                precondition(parts.recomposes(to: bytes), "a body is put together again byte for byte")
            }
            documents[document] = (parts.skeleton, parts.occurrences.map(\.payload))
            let observation = Observation(sequence: time, start: time * 10, end: time * 10 + 5, kind: kind)
            var changed: Set<ObjectName> = []
            for (name, shown) in Dictionary(grouping: parts.occurrences, by: \.name) {
                let new = shown.map { occurrence in
                    Contribution(
                        observation: observation,
                        version: time,
                        payload: occurrence.payload,
                        origin: Int64(truncatingIfNeeded: document.hashValue)
                    )
                }
                let merge = states[name, default: ObjectState()].merge(new, model: name.model, models: models, lag: lag)
                if merge.isChanged || merge.hasDoubtChanged || merge.hasDeletionChanged { changed.insert(name) }
            }
            note(changed, by: document, at: observation)
            return parts.warnings
        }
    }

    /// What is known of an object, as people see it.
    func known(_ model: String, _ identity: String) -> String? {
        states[ObjectName(model: model, identity: identity)]?
            .plainJSON(model: model, models: models).map { text($0) }
    }
}
