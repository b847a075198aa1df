/// What one answer showed of one member: what it means and how it was spelled.
struct Shown: Hashable, Sendable {
    let datum: Datum
    let spelling: String
}

/// When an answer was observed, in microseconds of the history's own clock, which counts events.
struct Moment: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case detail, list, write
    }

    /// When its request was sent, minus its `Age`.
    var start: Int
    /// When it was complete.
    var end: Int
    let kind: Kind

    /// Law 3: a read is as old as the moment its request was sent, a write's answer as new as its completion.
    var time: Int { kind == .write ? end : start }
}

/// What the laws say of a member.
enum Known: Hashable {
    /// This is its newest value, spelled in one of these ways.
    case value(Datum, Set<String>)
    /// Reads that overlapped in time disagree: each document keeps its own literal (law 3).
    case disputed
    case nothing
}

/// What is known of an object apart from answers that show it (law 10).
enum Mark: Hashable, Sendable {
    /// A write was over then, and nobody was told what it did to the object.
    case unobserved(Int)
    /// It was known to be deleted then.
    case tombstone(Int)

    var time: Int {
        switch self {
        case .unobserved(let time), .tombstone(let time): time
        }
    }

    var isTombstone: Bool { if case .tombstone = self { true } else { false } }

    /// Whether an answer is newer; a list that lags behind a deletion is not.
    func isOverridden(by moment: Moment, lag: Int) -> Bool {
        guard moment.time > time else { return false }
        return !(isTombstone && moment.kind == .list && moment.start - time < lag)
    }
}

/// Everything that was told of the objects of one scope.
struct Knowledge: Equatable {
    struct Observation: Equatable {
        let answer: Int
        var moment: Moment
        let members: [String: Shown]
        /// When it was modified, as it says itself, where its model has `modified`.
        let modified: Datum?
        /// These and what is not declared.
        var all: [String: Shown] = [:]

        // What it shows follows from which answer it is.
        static func == (left: Observation, right: Observation) -> Bool {
            left.answer == right.answer && left.moment == right.moment
        }
    }

    let setting: Setting
    /// For how long lists do not override details and writes, in microseconds.
    let lag: Int
    private(set) var observations: [Ref: [Observation]] = [:]
    private(set) var marks: [Ref: Mark] = [:]
    /// Whose marks are from before the process last ended: they go with the documents that need them.
    private(set) var frail: Set<Ref> = []
    /// Every spelling of each value that was shown.
    ///
    /// A value that is merely spelled differently changes nothing (law 7), so that
    /// the spelling known first may stay.
    private var spellings: [Ref: [String: [Datum: Set<String>]]] = [:]

    init(_ setting: Setting) {
        self.setting = setting
        lag = setting.lag
    }

    /// How many observations there are.
    var count: Int { observations.values.reduce(0) { $0 + $1.count } }

    // MARK: Telling

    /// Takes in an answer, whole (law 8); one that was told before has now been seen at another moment.
    ///
    /// - Parameter oldest: every answer still to come began after this; what can decide nothing any more is dropped.
    mutating func take(_ answer: Int, _ shown: [Ref: [String: Shown]], at moment: Moment, oldest: Int) {
        for (ref, all) in shown {
            let modified = setting.isDated ? all["updated"]?.datum : nil
            let members = all.filter { !setting.undeclared.contains($0.key) }
            for (member, value) in members {
                spellings[ref, default: [:]][member, default: [:]][value.datum, default: []].insert(value.spelling)
            }
            observations[ref, default: []].removeAll { $0.answer == answer }
            if let mark = marks[ref] {
                guard mark.isOverridden(by: moment, lag: lag) else { continue }
                if mark.isTombstone {
                    // Another object of the same name: nothing of the old one is known of it.
                    observations[ref]?.removeAll { !mark.isOverridden(by: $0.moment, lag: lag) }
                    marks[ref] = .unobserved(mark.time)
                }
            }
            observations[ref, default: []].append(
                Observation(answer: answer, moment: moment, members: members, modified: modified, all: all)
            )
            prune(ref, oldest)
        }
    }

    /// Takes in what was not told by showing the object.
    mutating func mark(_ ref: Ref, _ mark: Mark) {
        if let known = marks[ref], known.time >= mark.time { return }
        if mark.isTombstone, (observations[ref] ?? []).contains(where: { mark.isOverridden(by: $0.moment, lag: lag) }) {
            return
        }
        marks[ref] = mark
        frail.remove(ref)
    }

    /// What was marked and never shown is known only as long as the process lives; what no document from before the mark
    /// shows, and of which all that is known is newer, may be.
    mutating func forgetMarks(neededBy documents: [Document]?) {
        marks = marks.filter { ref, mark in
            let known = observations[ref] ?? []
            guard let documents else { return !known.isEmpty }
            // Shown by a list that lags behind the deletion, if by nothing else.
            if known.isEmpty { return documents.contains { $0.received.shown[ref] != nil } }
            return known.contains { !mark.isOverridden(by: $0.moment, lag: lag) }
                || documents.contains {
                    $0.received.shown[ref] != nil && !mark.isOverridden(by: $0.moment, lag: lag)
                }
        }
    }

    /// What it also may be: a mark that all that counts is newer than goes with what does not, unless a document needs it.
    mutating func forgetOverriddenMarks(unlessNeededBy documents: [Document]) {
        for (ref, mark) in marks {
            let newer = (observations[ref] ?? []).filter { mark.isOverridden(by: $0.moment, lag: lag) }
            let isNeeded = documents.contains {
                $0.received.shown[ref] != nil && !mark.isOverridden(by: $0.moment, lag: lag)
            }
            guard !newer.isEmpty, !isNeeded else { continue }
            observations[ref] = newer
            marks[ref] = nil
        }
    }

    /// The process has ended.
    mutating func weakenMarks() { frail = Set(marks.keys) }

    /// Whether something newer is known than a mark from before the process ended.
    var mayForget: Bool {
        frail.contains { ref in
            marks[ref].map { mark in
                (observations[ref] ?? []).contains { mark.isOverridden(by: $0.moment, lag: lag) }
            } ?? false
        }
    }

    /// What it also may be once something newer is known than a mark from before the process ended, and no document from
    /// before that needs it: it is gone, and what comes later is not held against it.
    mutating func forgetFrailMarks(unlessNeededBy documents: [Document]) {
        for ref in frail {
            guard let mark = marks[ref] else { continue }
            let newer = (observations[ref] ?? []).filter { mark.isOverridden(by: $0.moment, lag: lag) }
            guard let first = newer.map(\.answer).min() else { continue }
            let isNeeded = documents.contains {
                $0.received.number < first && $0.received.shown[ref] != nil
                    && !mark.isOverridden(by: $0.moment, lag: lag)
            }
            guard !isNeeded else { continue }
            observations[ref] = newer
            marks[ref] = nil
        }
        frail.formIntersection(marks.keys)
    }

    /// Whether a document of that moment may show an object as if nothing had happened.
    func isCurrent(_ ref: Ref, at moment: Moment) -> Bool {
        marks[ref].map { $0.isOverridden(by: moment, lag: lag) } ?? true
    }

    /// What a document of that moment does with an object that it showed (law 10).
    ///
    /// - Parameter shown: all that it showed of it: what a later answer has shown just so holds.
    func fate(of ref: Ref, at moment: Moment, shown: [String: Shown]) -> Fate {
        guard let mark = marks[ref], !mark.isOverridden(by: moment, lag: lag) else { return .shown }
        guard mark.isTombstone else { return isConfirmed(ref, at: moment, shown: shown) ? .shown : .stale }
        switch ref.kind == .issue ? setting.onDelete : .stale {
        case .keep: return .shown
        case .stale: return .stale
        // An answer that was on its way when the object was deleted may be the newer of the two.
        case .remove: return moment.start <= mark.time && mark.time < moment.end ? .stale : .removed
        }
    }

    /// Whether a write may have changed an object since a document of that moment, and a later answer shows it as that does.
    ///
    /// The document may be served then, and need not be: that it is the same does not say that nothing happened.
    func isConfirmed(_ ref: Ref, at moment: Moment, shown: [String: Shown]) -> Bool {
        guard let mark = marks[ref], !mark.isTombstone, !mark.isOverridden(by: moment, lag: lag) else { return false }
        return (observations[ref] ?? []).contains { $0.all == shown && mark.isOverridden(by: $0.moment, lag: lag) }
    }

    /// Keeps the list short: an observation goes when a later one says as much, and overrides all that this one does.
    private mutating func prune(_ ref: Ref, _ oldest: Int) {
        guard var all = observations[ref], all.count > 6 else { return }
        var index = 0
        while index < all.count {
            let old = all[index]
            let isReplaced =
                old.moment.kind != .write && old.moment.end <= oldest
                && all.contains { new in
                    // What was known before a write decides nothing of what came after it.
                    isCurrent(ref, at: new.moment) && overrides(new, old)
                        && (new.moment.kind != .list || old.moment.kind == .list)
                        && new.moment.end <= oldest && old.members.keys.allSatisfy { new.members[$0] != nil }
                        && (old.modified == nil || new.modified != nil)
                        && all.allSatisfy { !overrides(old, $0) || overrides(new, $0) }
                        // A list that lags behind a detail decides nothing of one that overlapped with it.
                        && all.allSatisfy { !overrides($0, new) || overrides($0, old) }
                }
            if isReplaced { all.remove(at: index) } else { index += 1 }
        }
        observations[ref] = all
    }

    // MARK: Law 3

    /// Whether one observation is newer than another; neither need be.
    func overrides(_ left: Observation, _ right: Observation) -> Bool {
        // Where a model declares `modified`, that member decides before any clock.
        if case .text(let mine)? = left.modified, case .text(let theirs)? = right.modified,
            mine != theirs
        {
            return mine > theirs
        }
        // For `lag` after a write or a detail answer, an answer of a list does not override its members.
        if isLagging(left.moment, behind: right.moment) { return false }
        if isLagging(right.moment, behind: left.moment) { return true }
        // Reads that overlapped have no order.
        if left.moment.kind != .write, right.moment.kind != .write { return left.moment.start >= right.moment.end }
        return left.moment.time > right.moment.time
    }

    private func isLagging(_ list: Moment, behind other: Moment) -> Bool {
        list.kind == .list && other.kind != .list && list.start >= other.end && list.start - other.end < lag
    }

    /// Whether an answer that is newer than one of that moment shows a member.
    ///
    /// - Parameter leniently: whether only what is itself overridden by nobody counts, as for `newest`.
    func isKnown(_ member: String, of ref: Ref, since moment: Moment, leniently: Bool) -> Bool {
        let own = Observation(answer: 0, moment: moment, members: [:], modified: nil)
        let told = (observations[ref] ?? []).filter { $0.members[member] != nil }
        return told.contains { one in
            overrides(one, own) && !(leniently && told.contains { overrides($0, one) })
        }
    }

    /// What is known of a member: what all say whom nobody overrides.
    ///
    /// - Parameter leniently: whether only what is itself overridden by nobody overrides others. A list that overlapped
    ///   with a detail is in dispute with it then (law 3), although it lags behind a detail from before both.
    func newest(_ member: String, of ref: Ref, leniently: Bool = false) -> Known {
        let told = (observations[ref] ?? []).filter { $0.members[member] != nil && isCurrent(ref, at: $0.moment) }
        guard !told.isEmpty else { return .nothing }
        var undefeated = told.filter { one in !told.contains { overrides($0, one) } }
        if leniently { undefeated = told.filter { one in !undefeated.contains { overrides($0, one) } } }
        let values = undefeated.compactMap { $0.members[member] }
        guard let first = values.first, values.allSatisfy({ $0.datum == first.datum }) else { return .disputed }
        return .value(first.datum, spellings[ref]?[member]?[first.datum] ?? [])
    }
}
