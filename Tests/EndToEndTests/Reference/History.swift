import TestSupport

/// A random history: how Larder is set up, and what happens.
struct History: Sendable {
    let seed: UInt64
    let setting: Setting
    var steps: [Step]

    /// The history that a seed stands for.
    ///
    /// - Parameter kinds: what may happen in it.
    init(seed: UInt64, length: Int, kinds: Set<StepKind> = StepKind.enabled) {
        var author = HistoryAuthor(seed: seed, kinds: kinds)
        self.seed = seed
        setting = author.setting()
        steps = author.steps(length)
    }
}

extension History: CustomStringConvertible {
    var description: String {
        "seed \(seed), \(setting)\n" + steps.map { "  \($0)\n" }.joined()
    }
}
