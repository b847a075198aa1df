import TestSupport
import Testing

@testable import Mapping

/// What holds of any body under any models.
@Suite struct GeneratedModelTests {
    private let context = MappingContext(
        url: "/x",
        captures: ["owner": "o"],
        bound: ["id": "5", "login": "l"],
        fields: ["etag": "\"e\""]
    )

    private func rule(_ generator: inout BodyGenerator) -> BodyRule {
        let arity: Arity = generator.pick([.one, .many, .keyed])
        let roots = ["parent", "head", "labels[]", "user", "files", "matrix[][]"]
        var rule = BodyRule(model: "Issue", arity: arity, root: generator.chance(30) ? generator.pick(roots) : nil)
        if rule.root != nil, generator.chance(50) {
            rule.also = [
                BodyRule(model: "User", arity: .one, root: generator.pick(["user", "parent.user", "head.user"]))
            ]
        }
        return rule
    }

    @Test(arguments: 0..<12 as Range<UInt64>)
    func `compose(normalise(body)) is the body`(seed: UInt64) throws {
        var models = ModelGenerator(seed: seed, isSecretive: true)
        var generator = BodyGenerator(seed: seed &+ 1000, isHostile: true)
        var objects = 0
        for _ in 0..<12 {
            let models = try models.models()
            for _ in 0..<15 {
                let rule = rule(&generator)
                let body = generator.body(isList: generator.chance(50))
                guard
                    case .objects(let parts) = Decomposer(models: models)
                        .decompose(Array(body.utf8), as: rule, in: context)
                else { continue }
                objects += parts.occurrences.count
                // What shows a secret is not taken apart to be put together again.
                if parts.showsSecret { continue }
                #expect(parts.recomposes(to: Array(body.utf8)), "seed \(seed): \(body)")
                var shelf = Shelf(models)
                shelf.take("a", body, rule, at: 1, in: context)
                #expect(shelf.compose("a") == .unchanged, "seed \(seed): \(body) \(models.declarations)")
                shelf.take("a", body, rule, at: 2, in: context)
                #expect(shelf.compose("a") == .unchanged, "seed \(seed): \(body) \(models.declarations)")
                for (name, state) in shelf.states {
                    let known = state.plainJSON(model: name.model, models: models)
                    #expect(known.flatMap { JSONSlice($0) } != nil, "seed \(seed): \(name)")
                }
            }
        }
        #expect(objects > 0)
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `responses that do not overlap leave the same state in any order of arrival`(seed: UInt64) throws {
        var models = ModelGenerator(seed: seed &+ 50)
        var generator = BodyGenerator(seed: seed &+ 2000, isHostile: true)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<12 {
            let models = try models.models()
            let rule = BodyRule(model: "Issue", arity: .many)
            let bodies = (1...4).map { (Int64($0), generator.body(isList: true)) }
            var shown: [[String: String]] = []
            var known: [[ObjectName: String]] = []
            for _ in 0..<4 {
                var shelf = Shelf(models)
                for (time, body) in bodies.shuffled(using: &random) {
                    shelf.take("d\(time)", body, rule, at: time, in: context)
                }
                shown.append(Dictionary(uniqueKeysWithValues: shelf.documents.keys.map { ($0, shelf.shown($0)) }))
                known.append(
                    Dictionary(
                        uniqueKeysWithValues: shelf.states.map {
                            ($0.key, Self.known($0.value, $0.key, models))
                        }
                    )
                )
            }
            #expect(Set(shown).count == 1, "seed \(seed): \(bodies) \(models.declarations)")
            #expect(Set(known).count == 1, "seed \(seed): \(known) \(bodies) \(models.declarations)")
        }
    }

    /// What is known of an object besides what documents show: what policies gathered, and whether it is deleted.
    private static func known(_ state: ObjectState, _ name: ObjectName, _ models: Models) -> String {
        "\(text(state.gathered.bytes)) \(state.isDeleted(model: name.model, models: models))"
    }

    @Test(arguments: 0..<6 as Range<UInt64>)
    func `a migrated object is JSON, and one of the newest version stays unchanged`(seed: UInt64) throws {
        var models = ModelGenerator(seed: seed &+ 70)
        var generator = BodyGenerator(seed: seed &+ 2500, isHostile: true)
        for _ in 0..<12 {
            let models = try models.models()
            for model in models.declarations {
                let body = Array(generator.body(isList: false).utf8)
                let migrated = models.migrate(body, of: model.name, from: 0)
                #expect(!JSONBody.isMalformed(migrated), "seed \(seed): \(text(body)) \(model)")
                #expect(models.migrate(body, of: model.name, from: model.version) == body, "seed \(seed)")
                if model.version == 0 { #expect(migrated == body, "seed \(seed)") }
            }
        }
    }

    @Test func `every composed body is JSON, and damaged input never crashes`() throws {
        var composed = 0
        for seed in 0..<24 as Range<UInt64> {
            var models = ModelGenerator(seed: seed &+ 90)
            var generator = BodyGenerator(seed: seed &+ 3000, isHostile: true)
            var random = SeededGenerator(seed: seed)
            composed += try self.composed(by: models.models(), &generator, &random, seed: seed)
        }
        #expect(composed > 0)
    }

    /// Composes documents of generated bodies, and takes damaged ones apart; returns how many were composed.
    private func composed(
        by models: Models,
        _ generator: inout BodyGenerator,
        _ random: inout SeededGenerator,
        seed: UInt64
    ) throws -> Int {
        var shelf = Shelf(models)
        for time in 1...5 as ClosedRange<Int64> {
            let (body, rule) = (generator.body(isList: true), rule(&generator))
            shelf.take("d\(time)", body, rule, at: time, in: context)
            // The same objects with other values, which the response before must show.
            shelf.take("later\(time)", Self.changed(body, &random), rule, at: time + 5, in: context)
        }
        var composed = 0
        for document in shelf.documents.keys {
            guard case .composed(let body) = shelf.compose(document) else { continue }
            composed += 1
            let end = body.bytes.withUnsafeBufferPointer { JSONScanner($0, allowsReferences: false).scanText() }
            #expect(end >= 0, "seed \(seed): \(text(body.bytes))")
        }
        var damaged = Array(generator.body(isList: true).utf8)
        for _ in 0..<3 where !damaged.isEmpty {
            damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        if case .objects(let parts) = Decomposer(models: models).decompose(damaged, as: rule(&generator), in: context) {
            #expect(parts.recomposes(to: damaged))
        }
        return composed
    }

    /// The body with other letters in some of its texts, among them names and identities.
    private static func changed(_ body: String, _ random: inout SeededGenerator) -> String {
        var bytes = Array(body.utf8)
        var (isInText, isEscaped) = (false, false)
        for place in bytes.indices {
            switch bytes[place] {
            case _ where isEscaped: isEscaped = false
            case UInt8(ascii: "\\"): isEscaped = true
            case UInt8(ascii: "\""): isInText.toggle()
            // The digits of an escape are others.
            case UInt8(ascii: "g")...UInt8(ascii: "y") where isInText && Int.random(in: 0..<30, using: &random) == 0:
                bytes[place] = UInt8(ascii: "z")
            default: break
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
