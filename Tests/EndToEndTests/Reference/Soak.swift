import Foundation

/// Histories one after the other, until one fails.
struct Soak: Sendable {
    /// How many steps a history has: enough for answers to age and pile up, few enough to be shrunk.
    var length = 250
    var kinds = StepKind.enabled
    private(set) var figures = ReferenceRun.Figures()
    /// How many steps were done.
    private(set) var steps = 0
    /// For how many seconds a shorter history is looked for.
    var patience = 60.0
    /// Whether anybody still wants to know what fails.
    var isWanted: @Sendable () -> Bool = { true }

    /// Runs the history of one seed.
    ///
    /// - Returns: what it violates, with the shortest history that still does.
    mutating func run(seed: UInt64) -> String? {
        let history = History(seed: seed, length: length, kinds: kinds)
        let found = Self.violation(in: history, &figures)
        steps += found?.1 ?? history.steps.count
        guard let (violation, step) = found, isWanted() else { return nil }
        var short = history
        short.steps.removeLast(history.steps.count - step)
        var shrinker = Shrinker { candidate in
            var ignored = ReferenceRun.Figures()
            return Self.violation(in: candidate, &ignored)?.0
        }
        shrinker.deadline = .now + .seconds(patience)
        let (shortest, reason) = shrinker.shrink(short, violation)
        return """
            What was answered is not allowed. Reproduce it with: make soak SEED=\(seed)
            \(shortest)\(reason)
            As first seen, at step \(step) of the whole history: \(violation)
            """
    }

    /// What a history violates, and after how many of its steps.
    static func violation(in history: History, _ figures: inout ReferenceRun.Figures) -> (Violation, Int)? {
        var done = 0
        do {
            let run = try ReferenceRun(history.setting)
            defer { figures += run.figures }
            do {
                for step in history.steps {
                    done += 1
                    try run.perform(step)
                }
                try run.finishAll()
                try run.checkThatEverythingIsKnown()
                if history.setting.isFollowed { try run.checkThatFollowersSee(history.seed) }
                return nil
            } catch {
                let log = run.larder.log.split(separator: "\n").suffix(5).joined(separator: "\n")
                let violation = error as? Violation ?? Violation("\(error)")
                return (log.isEmpty ? violation : Violation("\(violation)\nLarder's log:\n\(log)"), done)
            }
        } catch {
            return (Violation("\(error)"), done)
        }
    }
}

extension ReferenceRun.Figures: CustomStringConvertible {
    static func += (left: inout Self, right: Self) {
        left.answers += right.answers
        left.hits += right.hits
        left.composed += right.composed
        left.revalidated += right.revalidated
        left.collapsed += right.collapsed
        left.followed += right.followed
        left.doubted += right.doubted
    }

    var description: String {
        "\(answers) answers, \(hits) hits, \(composed) composed, \(revalidated) revalidated, \(collapsed) collapsed, "
            + "\(followed) followed, \(doubted) in doubt"
    }
}
