/// Which of two contributions knows better (law 3).
struct ObservationOrder {
    /// Microseconds for which a list does not override a detail or a write.
    let lag: Int64

    /// One side of a comparison.
    struct Side {
        var observation: Observation
        var modified: ModificationTime?
    }

    /// Whether `left` is newer than `right`.
    ///
    /// Neither need be: reads that overlapped have no order.
    func overrides(_ left: Side, _ right: Side) -> Bool {
        if let mine = left.modified, let theirs = right.modified {
            if mine.isLater(than: theirs) == true { return true }
            if theirs.isLater(than: mine) == true { return false }
        }
        if lags(left.observation, behind: right.observation) { return false }
        if lags(right.observation, behind: left.observation) { return true }
        return isAfter(left.observation, right.observation)
    }

    /// Whether `list` began late enough to be newer by the clock, but not late enough for a list.
    private func lags(_ list: Observation, behind other: Observation) -> Bool {
        list.kind == .list && other.kind != .list && list.start >= other.end && list.start - other.end < lag
    }

    private func isAfter(_ left: Observation, _ right: Observation) -> Bool {
        guard left.kind == .write || right.kind == .write else {
            // Two reads of one and the same instant have no order either.
            return left.start >= right.end && !(right.start >= left.end)
        }
        let (mine, theirs) = (effectiveTime(left), effectiveTime(right))
        return mine != theirs ? mine > theirs : left.sequence > right.sequence
    }

    /// A read is as old as its request, a write as new as its answer.
    func effectiveTime(_ observation: Observation) -> Int64 {
        observation.kind == .write ? observation.end : observation.start
    }
}
