import Foundation

/// Histories one after the other, until one fails.
struct Soak {
    /// How many steps a history has: enough for answers to age and pile up, few enough to be shrunk.
    var length = 250
    var kinds = StepKind.enabled
    var figures = ReferenceRun.Figures()
    /// For how many seconds a shorter history is looked for.
    var patience = 60.0

    /// Runs the history of one seed.
    ///
    /// - Returns: what it violates, with the shortest history that still does.
    mutating func run(seed: UInt64) -> String? {
        let history = History(seed: seed, length: length, kinds: kinds)
        guard let (violation, step) = Self.violation(in: history, &figures) else { return nil }
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
            As first seen, in the whole history: \(violation)
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

extension ReferenceRun.Figures {
    static func += (left: inout Self, right: Self) {
        left.answers += right.answers
        left.hits += right.hits
        left.composed += right.composed
        left.revalidated += right.revalidated
        left.collapsed += right.collapsed
    }
}
