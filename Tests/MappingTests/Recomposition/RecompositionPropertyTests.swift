import TestSupport
import Testing

@testable import Mapping

/// The composer against an account that is slow and obviously right.
@Suite struct RecompositionPropertyTests {
    /// The tracker's models with less declared, or more.
    private func declarations(_ random: inout SeededGenerator) throws -> [ModelDeclaration] {
        try Tracker.models().declarations.map { declaration in
            var declaration = declaration
            declaration.properties.removeAll { _ in Int.random(in: 0..<100, using: &random) < 15 }
            declaration.sharesAll = declaration.sharesAll || Int.random(in: 0..<100, using: &random) < 15
            if Int.random(in: 0..<100, using: &random) < 15 { declaration.local.append("name") }
            declaration.properties.removeAll { declaration.local.contains($0.from) }
            for index in declaration.properties.indices where declaration.properties[index].from == "signature" {
                if Bool.random(using: &random) { declaration.properties[index].relation = .keyed("User") }
            }
            return declaration
        }
    }

    @Test(arguments: 0..<16 as Range<UInt64>)
    func `composing agrees with a naive model, also about what is unknown`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed &+ 700)
        var generator = BodyGenerator(seed: seed &+ 7000)
        var (composed, unknown) = (0, 0)
        for _ in 0..<40 {
            guard let models = try? Models(declarations(&random)) else { continue }
            var shelf = Shelf(models)
            var naive = NaiveRecomposer(models.declarations)
            var bodies: [String: String] = [:]
            for step in 0..<5 {
                let isList = generator.chance(40)
                let body = generator.body(isList: isList)
                guard naive.receive("d\(step)", body, "Issue", isList: isList) else { continue }
                bodies["d\(step)"] = body
                shelf.receive(
                    "d\(step)",
                    body,
                    "Issue",
                    list: isList,
                    start: Int64(step) * 10,
                    end: Int64(step) * 10 + 5
                )
                for (document, body) in bodies.sorted(by: { $0.key < $1.key }) {
                    let expected = naive.shown(document)
                    let shown: String?
                    switch shelf.compose(document) {
                    case .unchanged: shown = body
                    case .composed(let body):
                        shown = text(body.bytes)
                        composed += 1
                    case .unknown:
                        shown = nil
                        unknown += 1
                    }
                    guard shown != expected else { continue }
                    Issue.record(
                        """
                        seed \(seed), \(document) after \(step): \(shown ?? "unknown") instead of \(expected ?? "unknown")
                        \(bodies.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "\n"))
                        \(models.declarations)
                        """
                    )
                    return
                }
            }
        }
        #expect(composed > 10 && unknown > 0)
    }
}
