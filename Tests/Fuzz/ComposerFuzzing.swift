@testable import Mapping

/// Several responses that show the same objects: what is composed is JSON, whatever the order of arrival, and damage is
/// reported.
///
/// An input consists of a byte that chooses the models, then of responses, separated by zeros, each with a byte for its rule.
enum ComposerFuzzing: FuzzTarget {
    static let seeds: [[UInt8]] = (0..<60 as Range<UInt64>).map { seed in
        var generator = BodyGenerator(seed: seed, isHostile: seed % 2 == 0)
        let bodies = (0..<3).map { _ in [4] + Array(generator.body(isList: true).utf8) }
        return [UInt8(seed)] + Array(bodies.joined(separator: [0]))
    }

    static func run(_ input: ArraySlice<UInt8>) {
        guard let choice = input.first else { return }
        let models = FuzzModels.all[Int(choice) % FuzzModels.all.count]
        let sections = input.dropFirst().split(separator: 0, maxSplits: 7).map { Array($0) }
        composeDamaged(sections, models)
        let forward = shown(Array(sections.enumerated()), models)
        let isAlike = Set(sections.map { $0[0] }).count == 1
        guard isAlike, FuzzModels.rule(Int(sections[0][0])) == BodyRule(model: "Issue", arity: .many) else { return }
        let backward = shown(sections.enumerated().reversed(), models)
        require(forward == backward, "forward: \(forward); backward: \(backward)")
    }

    /// The documents after all responses; each is received at the time that its offset says.
    private static func shown(_ responses: [(offset: Int, element: [UInt8])], _ models: Models) -> [String: String] {
        var shelf = Shelf(models)
        for (time, response) in responses {
            let body = String(decoding: response.dropFirst(), as: UTF8.self)
            let rule = FuzzModels.rule(Int(response[0]))
            shelf.take("d\(time)", body, rule, at: Int64(time + 1), in: FuzzModels.context)
        }
        for document in shelf.documents.keys {
            guard case .composed(let body) = shelf.compose(document) else { continue }
            let end = body.bytes.withUnsafeBufferPointer { JSONScanner($0, allowsReferences: false).scanText() }
            require(end >= 0, "composed: \(text(body.bytes))")
        }
        for (name, state) in shelf.states {
            let known = state.plainJSON(model: name.model, models: models)
            require(known.flatMap { JSONSlice($0) } != nil, "what is known of \(name) is not JSON")
        }
        return Dictionary(uniqueKeysWithValues: shelf.documents.keys.map { ($0, shelf.shown($0)) })
    }

    /// Composes texts that no decomposer has made, in which references may stand anywhere.
    private static func composeDamaged(_ sections: [[UInt8]], _ models: Models) {
        guard let skeleton = sections.first else { return }
        var doubts: Set<Int64> = []
        _ = Composer(models: models, lag: 0).compose(
            skeleton: Array(skeleton.dropFirst()),
            pins: sections.dropFirst().map { Array($0.dropFirst()) },
            keyed: [Int(skeleton[0])],
            observation: Observation(sequence: 1, start: 1, end: 2, kind: .detail),
            isPartialWanted: true,
            doubts: &doubts
        ) { _ in nil }
    }
}
