/// Makes a failing history short: steps are left out as long as it still fails (delta debugging).
struct Shrinker {
    /// How often a shorter history is tried at most.
    var patience = 400
    let fails: (History) -> Violation?

    /// The shortest failing history that was found, and what fails in it.
    mutating func shrink(_ history: History, _ violation: Violation) -> (History, Violation) {
        var (best, reason) = (history, violation)
        var size = best.steps.count / 2
        while size > 0, patience > 0 {
            var isShorter = false
            var start = 0
            while start < best.steps.count, patience > 0 {
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
