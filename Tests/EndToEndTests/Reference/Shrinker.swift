/// Makes a failing history short: steps are left out as long as it still fails (delta debugging).
struct Shrinker {
    /// How often a shorter history is tried at most.
    var patience = 300
    /// When the search ends, however short the history is by then.
    var deadline = ContinuousClock.now + .seconds(60)
    let fails: (History) -> Violation?

    private var mayTry: Bool { patience > 0 && ContinuousClock.now < deadline }

    /// The shortest failing history that was found, and what fails in it.
    mutating func shrink(_ history: History, _ violation: Violation) -> (History, Violation) {
        var (best, reason) = (history, violation)
        var size = best.steps.count / 2
        while size > 0, mayTry {
            var isShorter = false
            var start = 0
            while start < best.steps.count, mayTry {
                var candidate = best
                candidate.steps.removeSubrange(start..<min(start + size, best.steps.count))
                patience -= 1
                if let violation = fails(candidate) {
                    (best, reason, isShorter) = (candidate, violation, true)
                } else {
                    start += size
                }
            }
            if !isShorter || size > 1 { size /= 2 }
        }
        return (best, reason)
    }
}
