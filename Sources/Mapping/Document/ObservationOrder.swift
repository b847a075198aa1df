/// Which of several contributions know best (law 3).
///
/// In three steps, each of which only ever takes away, so that what is known does not depend on the order of arrival:
///
/// 1. What says of itself that it was modified before another one counts for nothing, whenever it was asked for.
/// 2. A write is as new as its answer: of several the last counts. A read that was sent before that is older than it, a list
///    also if it was sent less than `lag` after it.
/// 3. A read that was sent when another one had been answered is newer than that; of a list and the detail that it was sent
///    less than `lag` after, the detail is. Reads that overlapped have no order.
struct ObservationOrder {
    /// Microseconds for which a list does not override a detail or a write.
    let lag: Int64

    /// What a contribution is compared by.
    struct Side {
        var observation: Observation
        var modified: ModificationTime?

        var isWrite: Bool { observation.kind == .write }
    }

    // MARK: Two

    /// Whether `left` is newer than `right`.
    ///
    /// Neither need be: reads that overlapped have no order, nor have writes that were answered in one instant.
    func overrides(_ left: Side, _ right: Side) -> Bool {
        if isOutdated(right, by: left) { return true }
        return !isOutdated(left, by: right) && isLater(left.observation, right.observation)
    }

    /// Whether one was modified before the other.
    private func isOutdated(_ side: Side, by other: Side) -> Bool {
        guard let mine = side.modified, let theirs = other.modified else { return false }
        return theirs.isLater(than: mine) == true
    }

    /// Whether `left` is newer than `right` by the clock.
    func isLater(_ left: Observation, _ right: Observation) -> Bool {
        switch (left.kind == .write, right.kind == .write) {
        case (true, true): return left.end > right.end
        case (true, false): return !isAfter(right, write: left.end)
        case (false, true): return isAfter(left, write: right.end)
        case (false, false):
            if lags(left, behind: right) { return false }
            if lags(right, behind: left) { return true }
            // Two reads of one and the same instant have no order either.
            return left.start >= right.end && !(right.start >= left.end)
        }
    }

    /// Whether a read tells of what a write has made: sent no sooner than the write was answered, it came after it.
    private func isAfter(_ read: Observation, write end: Int64) -> Bool {
        read.start >= end && (read.kind != .list || read.start - end >= lag)
    }

    /// Whether `list` began late enough to be newer by the clock, but not late enough for a list.
    private func lags(_ list: Observation, behind other: Observation) -> Bool {
        list.kind == .list && other.kind != .list && list.start >= other.end && list.start - other.end < lag
    }

    /// A read is as old as its request, a write as new as its answer.
    func effectiveTime(_ observation: Observation) -> Int64 { observation.effectiveTime }

    // MARK: Several

    /// Those of `candidates`, which are indices of `sides`, that nobody knows better than; one at least if there are any.
    func standing(_ candidates: [Int], of sides: [Side]) -> [Int] {
        guard candidates.count > 1 else { return candidates }
        let current = candidates.filter { side in
            !candidates.contains { isOutdated(sides[side], by: sides[$0]) }
        }
        let lastWrite = current.lazy.filter { sides[$0].isWrite }.map { sides[$0].observation.end }.max()
        let reads = current.filter { index in
            guard !sides[index].isWrite else { return false }
            return lastWrite.map { isAfter(sides[index].observation, write: $0) } ?? true
        }
        guard !reads.isEmpty else {
            return current.filter { sides[$0].isWrite && sides[$0].observation.end == lastWrite }
        }
        return reads.filter { read in
            !reads.contains { isLater(sides[$0].observation, sides[read].observation) }
        }
    }

    // MARK: What may still be needed

    /// How long a read may be on its way, in microseconds: what may decide about a read that has not arrived is kept for
    /// that long.
    static let longestFlight: Int64 = 600_000_000

    /// Those of `candidates` that decide about what is known, or may decide about what is still to arrive.
    ///
    /// A read that another read is newer than is never needed again: whatever is older than the one is older than the
    /// other, but for lists and details: a list that overlapped with the newer of two details is in dispute with it then,
    /// instead of lagging behind the older one. Three things are not so: a read sent before a write was answered is older than
    /// the write, and overlaps with reads that are newer than the write; how far `modified` has come is known from what says
    /// so, though answers that do not say are newer by the clock; and those return when what was newer by the clock turns out
    /// to be modified before.
    func needed(_ candidates: [Int], of sides: [Side]) -> Set<Int> {
        let standing = standing(candidates, of: sides)
        guard standing.count < candidates.count else { return Set(standing) }
        var needed = Set(standing)
        for kind in ModificationTime.Kind.orNone {
            let own = candidates.filter { sides[$0].modified?.kind == kind }
            guard !own.isEmpty else { continue }
            let last = self.standing(own, of: sides)
            let writes = self.standing(own.filter { sides[$0].isWrite }, of: sides)
                .filter { write in !last.contains { isOutdated(sides[write], by: sides[$0]) } }
            needed.formUnion(writes.filter { isAwaited(sides[$0], behind: standing, of: sides) })
            needed.formUnion(kind == nil ? last.filter { isAwaited(sides[$0], behind: standing, of: sides) } : last)
        }
        return needed
    }

    /// Whether a read may still arrive that this one is needed for: one that does not end before all that stands began.
    private func isAwaited(_ side: Side, behind standing: [Int], of sides: [Side]) -> Bool {
        !standing.contains { index in
            let newer = sides[index].observation
            return newer.kind != .write && newer.start - side.observation.end >= Self.longestFlight + 2 * lag
        }
    }
}

extension Observation {
    /// Since when an answer speaks: a read is as old as its request, a write as new as its answer.
    public var effectiveTime: Int64 { kind == .write ? end : start }

    /// Whether this answer is newer than another one by the clock; of reads that overlapped neither is.
    ///
    /// - Parameter lag: microseconds for which a list does not override a detail or a write.
    public func isLater(than other: Observation, lag: Int64) -> Bool {
        ObservationOrder(lag: lag).isLater(self, other)
    }
}
