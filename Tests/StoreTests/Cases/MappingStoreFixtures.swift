import Mapping
import TestSupport

@testable import Store

/// What the cases of the store have in common: stores with models of their own, most of them with one of a thing.
protocol MappingStoreFixtures {}

extension MappingStoreFixtures {
    var thing: BodyRule { BodyRule(model: "Thing", arity: .one) }
    var things: BodyRule { BodyRule(model: "Thing", arity: .many) }

    func thingModel(_ change: (inout ModelDeclaration) -> Void = { _ in }) -> ModelDeclaration {
        var model = ModelDeclaration(name: "Thing", identity: ["id"], properties: [property("name"), property("age")])
        change(&model)
        return model
    }

    func property(
        _ name: String,
        _ relation: Relation? = nil,
        checks: [ValueCheck] = [],
        merge: MergePolicy = .latest
    ) -> PropertyDeclaration {
        var property = PropertyDeclaration(name: name, from: name, relation: relation)
        (property.checks, property.merge) = (checks, merge)
        return property
    }

    func bench(
        _ declarations: [ModelDeclaration],
        folder: TemporaryFolder = TemporaryFolder(),
        time: ManualTime = ManualTime()
    ) throws -> Bench {
        let models: [UpstreamKey: Models] = ["github": try Models(declarations)]
        return try Bench(folder: folder, time: time) { $0.models = models }
    }
}

extension Bench {
    func json(_ model: String, _ identity: String? = nil, key: String? = nil) async throws -> [String] {
        var rows: [ObjectRow] = []
        if identity != nil || key != nil {
            rows = try await store.objects(ObjectQuery(model: model, identity: identity, key: key)).rows
        } else if let listing = ObjectListing(model: model, order: .stored) {
            rows = try await store.list(listing, patience: .seconds(60)).rows
        }
        return rows.map { String(decoding: $0.json, as: UTF8.self) }
    }

    @discardableResult
    func receive(
        _ url: String,
        _ body: String,
        _ rule: BodyRule,
        in mappingContext: MappingContext
    ) async throws -> Receipt {
        var document = response(url, body, rule)
        document.mappingContext = mappingContext
        return try await store.receive(document)
    }
}
