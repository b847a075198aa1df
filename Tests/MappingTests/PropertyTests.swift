import TestSupport
import Testing

@testable import Mapping

@Suite struct PropertyTests {
    @Test(arguments: 0..<8 as Range<UInt64>)
    func `a decomposed body is put together byte for byte, and every part is JSON`(seed: UInt64) throws {
        let decomposer = Decomposer(models: try Tracker.models())
        var generator = BodyGenerator(seed: seed, isHostile: seed % 2 == 1)
        var decomposed = 0
        for _ in 0..<150 {
            let isList = generator.chance(50)
            let body = Array(generator.body(isList: isList).utf8)
            guard case .objects(let parts) = decomposer.decompose(body, as: BodyRule(model: "Issue", isList: isList))
            else { continue }
            decomposed += 1
            #expect(parts.recomposes(to: body), "seed \(seed): \(text(body))")
            for part in [parts.skeleton] + parts.occurrences.map(\.payload) {
                let isJSON = part.withUnsafeBufferPointer { JSONScanner($0, allowsReferences: true).scanText() >= 0 }
                #expect(isJSON, "seed \(seed): \(text(part))")
            }
            let names = [parts.skeleton] + parts.occurrences.map(\.payload)
            #expect(names.map { Reference.names(in: $0).count }.reduce(0, +) == parts.occurrences.count)
        }
        #expect(decomposed > 0)
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `a body that shares no object is shown as received`(seed: UInt64) throws {
        let models = try Tracker.models()
        var generator = BodyGenerator(seed: seed &+ 100, isHostile: seed % 2 == 1)
        for _ in 0..<60 {
            var shelf = Shelf(models)
            let body = generator.body(isList: true)
            shelf.receive("a", body, "Issue", list: true)
            #expect(shelf.compose("a") == .unchanged, "seed \(seed): \(body)")
            // Again, the same: nothing changes.
            #expect(shelf.receive("a", body, "Issue", list: true).isEmpty, "seed \(seed): \(body)")
            #expect(shelf.compose("a") == .unchanged, "seed \(seed): \(body)")
        }
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `a composed body is JSON with the members of the pinned one, and composing it again changes nothing`(
        seed: UInt64
    ) throws {
        let models = try Tracker.models()
        var generator = BodyGenerator(seed: seed &+ 200, isHostile: seed % 2 == 1)
        var composed = 0
        for _ in 0..<60 {
            var shelf = Shelf(models)
            shelf.receive("a", generator.body(isList: true), "Issue", list: true)
            for document in ["b", "c", "d"] {
                shelf.receive(document, generator.body(isList: true), "Issue", list: true)
            }
            guard case .composed(let body) = shelf.compose("a") else { continue }
            composed += 1
            let scanned = body.bytes.withUnsafeBufferPointer { JSONScanner($0, allowsReferences: false).scanText() }
            #expect(scanned >= 0, "seed \(seed): \(text(body.bytes))")
            let (skeleton, pins) = try #require(shelf.documents["a"])
            let received = try #require(recompose(skeleton: skeleton, payloads: pins))
            #expect(received != body.bytes)
            // What is shown now is what is known: taken apart, it composes to itself.
            guard
                case .objects(let parts) = Decomposer(models: models)
                    .decompose(body.bytes, as: BodyRule(model: "Issue", isList: true))
            else { continue }
            let states = shelf.states
            let again = Composer(models: models, lag: 0).compose(
                skeleton: parts.skeleton,
                pins: parts.occurrences.map(\.payload),
                state: { states[$0] }
            )
            #expect(again == .unchanged, "seed \(seed): \(text(body.bytes))")
        }
        #expect(composed > 0)
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `responses that do not overlap leave the same state in any order of arrival`(seed: UInt64) throws {
        let models = try Tracker.models()
        var generator = BodyGenerator(seed: seed &+ 300, isHostile: seed % 2 == 1)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<20 {
            let bodies = (0..<4).map { (Int64($0), generator.body(isList: true)) }
            var outcomes: [[String: String]] = []
            for _ in 0..<3 {
                var shelf = Shelf(models)
                for (index, body) in bodies.shuffled(using: &random) {
                    shelf.receive("d\(index)", body, "Issue", list: true, start: index * 10, end: index * 10 + 5)
                }
                outcomes.append(Dictionary(uniqueKeysWithValues: shelf.documents.keys.map { ($0, shelf.shown($0)) }))
            }
            #expect(outcomes[0] == outcomes[1], "seed \(seed): \(bodies)")
            #expect(outcomes[0] == outcomes[2], "seed \(seed): \(bodies)")
        }
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `a damaged body never crashes the decomposer, and what it decomposes is put together byte for byte`(
        seed: UInt64
    ) throws {
        let decomposer = Decomposer(models: try Tracker.models())
        var generator = BodyGenerator(seed: seed &+ 400, isHostile: seed % 2 == 1)
        var random = SeededGenerator(seed: seed)
        var decomposed = 0
        for _ in 0..<100 {
            var body = Array(generator.body(isList: true).utf8)
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let index = Int.random(in: 0..<body.count, using: &random)
                // Of bytes beyond ASCII hardly any body is UTF-8, and then it is not decomposed.
                body[index] = UInt8.random(in: generator.chance(90) ? 0x20...0x7E : 0...255, using: &random)
            }
            if generator.chance(30) { body.removeLast(Int.random(in: 0..<body.count, using: &random)) }
            guard case .objects(let parts) = decomposer.decompose(body, as: BodyRule(model: "Issue", isList: true))
            else { continue }
            decomposed += 1
            #expect(parts.recomposes(to: body))
        }
        #expect(decomposed > 0)
    }
}
