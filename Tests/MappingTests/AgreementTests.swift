import TestSupport
import Testing

@testable import Mapping

/// What one surface shows of an object, the others show too.
struct AgreementTests {
    /// The values of an object's own plain properties in mapped JSON, by name.
    private static func values(_ json: [UInt8]?, of model: CompiledModel, _ models: Models) throws -> [String: String] {
        let index = try JSONIndex(try #require(json))
        var values: [String: String] = [:]
        for (property, member) in model.members.compactMap({ member in
            model.property(named: member.declaration.name).map { (model.properties[$0], member) }
        }) where property.relation == nil && member.declaration.parts.isEmpty {
            // What a key path reads of a related object belongs to that one.
            let paths = member.spellings.compactMap { KeyPathSyntax.steps(of: $0) }
            guard !property.isFromContext, !paths.contains(where: { leadsThroughRelation($0, model, models) }) else {
                continue
            }
            let value = index.member(property.name.utf8, of: 0)
            values[property.name] = value.map { text(Array(index.bytes($0))) } ?? "absent"
        }
        return values
    }

    private static func leadsThroughRelation(_ path: [PathStep], _ model: CompiledModel, _ models: Models) -> Bool {
        var node = model.root
        for step in path {
            if models.tree.nodes[node].relation >= 0 { return true }
            guard case .name(let name) = step, let child = models.tree.child(of: node, named: name) else { return true }
            node = child
        }
        return models.tree.nodes[node].relation >= 0
    }

    @Test(arguments: 0..<3 as Range<UInt64>)
    func `a response, the listing of an object and its bare identity show the same values`(seed: UInt64) throws {
        var generator = ModelGenerator(seed: seed &+ 110)
        var bodies = BodyGenerator(seed: seed &+ 3500)
        var compared = 0
        for _ in 0..<12 {
            let generated = try generator.models().declarations
            let holder = ModelDeclaration("Holder", identity: ["id"], Property("it", one: "Issue"))
            let models = try Models(generated + [holder])
            let mapper = DocumentMapper(models: models)
            let rule = BodyRule(model: "Issue", arity: .one)
            for _ in 0..<15 {
                let body = bodies.body(isList: false)
                guard case .objects(let parts) = Decomposer(models: models).decompose(Array(body.utf8), as: rule),
                    let name = parts.occurrences.first?.name, name.model == "Issue",
                    JSONSlice(parts.skeleton)?.isReference == true,
                    Set(parts.occurrences.map(\.name)).count == parts.occurrences.count
                else { continue }
                var shelf = Shelf(models)
                shelf.take("a", body, rule, at: 1)
                let state = try #require(shelf.states[name])
                let object = try #require(state.payload.flatMap { JSONSlice($0) })
                let index = try #require(models.index(of: "Issue"))
                let model = models.compiled[models.concrete(of: index, for: object)]
                let view = mapper.map(Array(body.utf8), as: rule)
                // Of a member that occurs twice the view shows the last, and nothing is known.
                guard view.isMapped, !view.warnings.contains(where: { $0.kind == .keyCollision }) else { continue }
                let shown = try Self.values(view.body, of: model, models)
                let payload = state.newestPayload(model: name.model, models: models) ?? []
                let listed = mapper.mapObject(payload, model: name.model) { other in
                    shelf.states[other]?.newestPayload(model: other.model, models: models)
                }
                let own = { (name: String) in model.members.first { $0.declaration.name == name }?.declaration }
                let listing = try Self.values(listed.body, of: model, models)
                for (property, value) in shown where own(property)?.merge != .sum && own(property)?.merge != .union {
                    #expect(listing[property] == value, "seed \(seed), \(property): \(body) \(generated)")
                }
                guard let known = state.sharedJSON(model: name.model, models: models, lag: 0, identity: { _ in nil }),
                    let identity = model.identityLiteral(in: known)
                else { continue }
                let bare = mapper.map(
                    Array(#"{"id":1,"it":"#.utf8) + identity + Array("}".utf8),
                    as: BodyRule(model: "Holder", arity: .one),
                    known: [BoundObject(name): known]
                )
                let inserted = try JSONIndex(bare.body)
                let it = try #require(inserted.member("it".utf8, of: 0))
                let expanded = try Self.values(Array(inserted.bytes(it)), of: model, models)
                for (property, value) in shown {
                    let declaration = own(property)
                    guard declaration?.merge == .latest || declaration?.merge == .replace,
                        !model.members.contains(where: { $0.declaration.from == "undeclared" })
                    else { continue }
                    compared += 1
                    #expect(expanded[property] == value, "seed \(seed), \(property): \(body) \(generated)")
                }
            }
        }
        #expect(compared > 10)
    }
}
