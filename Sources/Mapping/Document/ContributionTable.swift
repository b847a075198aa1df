/// The contributions of one object, read and compared with each other.
struct ContributionTable {
    /// One contribution and what it observes.
    struct Row {
        var contribution: Contribution
        var members: [MemberPath: ObservedMember]
        var side: ObservationOrder.Side
        /// The members on which another version of the same answer disagrees with it.
        var contradicted: Set<MemberPath> = []

        var isContradicted: Bool { !contradicted.isEmpty }
    }

    private(set) var rows: [Row]
    private let model: Int
    private let order: ObservationOrder

    init(_ contributions: [Contribution], model: Int, models: Models, lag: Int64) {
        self.init(contributions.compactMap { Row($0, model: model, models: models) }, model: model, lag: lag)
    }

    /// A table of contributions that were read before.
    init(_ rows: [Row], model: Int, lag: Int64) {
        self.model = model
        self.rows = rows
        order = ObservationOrder(lag: lag)
        thinOut()
        setAsideContradictions()
        setAsideReplaced()
    }

    /// From how many versions on they are looked at more closely, and how many of one answer are kept then.
    private static let manyVersions = (looked: 32, kept: 64)

    /// Of very many versions that one answer shows, drops those that say nothing that the others do not.
    private mutating func thinOut() {
        guard rows.count > Self.manyVersions.looked else { return }
        var shown: [Int64: [MemberPath: [ObservedMember]]] = [:]
        var kept: [Int64: Int] = [:]
        rows = rows.filter { row in
            let sequence = row.side.observation.sequence
            var isTelling = false
            for (path, member) in row.members {
                let known = shown[sequence]?[path] ?? []
                // Two that differ say already that the answer contradicts itself.
                guard let first = known.first, known.allSatisfy(first.agrees) else {
                    if known.isEmpty {
                        shown[sequence, default: [:]][path] = [member]
                        isTelling = true
                    }
                    continue
                }
                let isContradiction = !first.agrees(with: member)
                if isContradiction
                    || known.count < 4 && !known.contains(where: { $0.value.bytes == member.value.bytes })
                {
                    shown[sequence]?[path]?.append(member)
                    isTelling = true
                }
            }
            if isTelling { kept[sequence, default: 0] += 1 }
            return isTelling && kept[sequence, default: 0] <= Self.manyVersions.kept
        }
    }

    /// Versions of one answer that disagree on a member do not observe it (law 6): its order of arrival says nothing.
    private mutating func setAsideContradictions() {
        guard rows.count > 1 else { return }
        var contradicted: [Int64: Set<MemberPath>] = [:]
        for rows in Dictionary(grouping: rows, by: \.side.observation.sequence).values where rows.count > 1 {
            var first: [MemberPath: ObservedMember] = [:]
            for row in rows {
                for (path, member) in row.members {
                    guard let known = first[path] else {
                        first[path] = member
                        continue
                    }
                    guard !known.agrees(with: member) else { continue }
                    contradicted[row.side.observation.sequence, default: []].insert(path)
                }
            }
        }
        guard !contradicted.isEmpty else { return }
        for index in rows.indices {
            for path in contradicted[rows[index].side.observation.sequence] ?? [] {
                guard rows[index].members[path] != nil else { continue }
                rows[index].contradicted.insert(path)
                rows[index].members[path] = nil
                for inner in rows[index].members.keys where inner.isWithin(path) { rows[index].members[inner] = nil }
            }
        }
    }

    /// What stood in an object is no longer known once something else was seen in that object's place: another object that
    /// comes there later is another one.
    private mutating func setAsideReplaced() {
        guard rows.count > 1 else { return }
        for older in rows.indices {
            for (path, member) in rows[older].members where member.isContainer {
                let isReplaced = rows.indices.contains { newer in
                    replaces(newer, path) && order.overrides(rows[newer].side, rows[older].side)
                }
                guard isReplaced else { continue }
                for inner in rows[older].members.keys where inner.isWithin(path) { rows[older].members[inner] = nil }
            }
        }
    }

    /// Whether a row shows something else than an object with members of its own at a place.
    private func replaces(_ index: Int, _ path: MemberPath) -> Bool {
        rows[index].members[path].map { !$0.isContainer } ?? false
    }

    // MARK: The newest

    /// The newest value of every member.
    var resolved: ResolvedObject { resolved(apartFrom: [:]) }

    /// The newest value of every member, as it is shown by answers of a route that shares some members with other routes
    /// no more: each of these is in dispute where it comes from one of those routes alone.
    func resolved(apartFrom strangers: [MemberPath: Set<Int64>]) -> ResolvedObject {
        if rows.count == 1, strangers.isEmpty { return ResolvedObject(rows[0].members, model: model) }
        var resolved = ResolvedObject(model: model)
        // Most members are shown by the same rows.
        var known: [(showing: [Int], standing: [Int])] = []
        forEachMember { path, showing in
            let index = known.firstIndex { $0.showing == showing } ?? known.count
            if index == known.count { known.append((showing, order.standing(showing, of: rows.map(\.side)))) }
            resolved.set(newest(of: path, among: known[index].standing, apartFrom: strangers), at: path)
        }
        for row in rows where row.isContradicted {
            resolved.keep(
                row.contradicted.filter { !isKnownNewer($0, than: row) },
                in: row.contribution.payload,
                of: row.side.observation.sequence
            )
        }
        return resolved
    }

    /// Tells each member once, with the rows that show it.
    private func forEachMember(_ body: (_ path: MemberPath, _ showing: [Int]) -> Void) {
        var showing: [Int] = []
        for first in rows.indices {
            for path in rows[first].members.keys where !rows[..<first].contains(where: { $0.members[path] != nil }) {
                showing.removeAll(keepingCapacity: true)
                showing.append(first)
                for index in rows.indices[(first + 1)...] where rows[index].members[path] != nil {
                    showing.append(index)
                }
                body(path, showing)
            }
        }
    }

    /// Whether an answer that is newer than a row shows a member.
    private func isKnownNewer(_ path: MemberPath, than row: Row) -> Bool {
        rows.contains { $0.members[path] != nil && order.overrides($0.side, row.side) }
    }

    /// The value that all agree on whom nobody knows better than; disputed if they do not.
    private func newest(
        of path: MemberPath,
        among standing: [Int],
        apartFrom strangers: [MemberPath: Set<Int64>]
    ) -> ResolvedObject.Newest? {
        guard let member = latest(of: standing).flatMap({ rows[$0].members[path] }) else { return nil }
        guard standing.count == 1 || standing.allSatisfy({ rows[$0].members[path].map(member.agrees) ?? true }) else {
            return .disputed
        }
        let isStrange = strangers.contains { strange, routes in
            (path == strange || path.isWithin(strange))
                && standing.allSatisfy { routes.contains(rows[$0].side.observation.route) }
        }
        return isStrange ? .disputed : .value(member)
    }

    /// The latest of the rows that show a member and that no other one of these knows better than.
    private func latest(showing path: MemberPath) -> Row? {
        let showing = rows.indices.filter { rows[$0].members[path] != nil }
        return latest(of: order.standing(showing, of: rows.map(\.side))).map { rows[$0] }
    }

    private func latest(of candidates: [Int]) -> Int? {
        candidates.max { age(of: rows[$0]) < age(of: rows[$1]) }
    }

    /// What rows are sorted by: the greater the later.
    private func age(of row: Row) -> (Int64, Int64) {
        (order.effectiveTime(row.side.observation), row.side.observation.sequence)
    }

    /// Which members have another value here than in an earlier table, and by which answers.
    func changes(since earlier: ContributionTable, _ before: ResolvedObject, _ after: ResolvedObject) -> [MemberChange]
    {
        after.members.compactMap { path, newest in
            guard case .value(let member) = newest, case .value(let old)? = before[path], member.isShared,
                !member.agrees(with: old), let from = earlier.latest(showing: path), let to = latest(showing: path)
            else { return nil }
            return MemberChange(
                member: path.text,
                old: MemberChange.Shown(old, by: from.side),
                new: MemberChange.Shown(member, by: to.side),
                // Where one of them does not say, nobody knows.
                isModified: from.side.modified != nil && to.side.modified != nil
                    && from.side.modified != to.side.modified
            )
        }
    }

    // MARK: Pruning

    /// Drops every row that decides nothing and will not, and puts the newest in front; past `maximum` the oldest go.
    mutating func prune(to maximum: Int) {
        rows = rows.sorted { age(of: $0) > age(of: $1) }
        dropRepeated()
        guard rows.count > 1 else { return }
        var needed = neededRows()
        for (index, row) in rows.enumerated() where !row.contradicted.allSatisfy({ isKnownNewer($0, than: row) }) {
            needed.insert(index)
        }
        // One of several that contradict each other, left alone, would seem to observe what all of them together do not.
        let sequences = Set(needed.filter { rows[$0].isContradicted }.map { rows[$0].side.observation.sequence })
        rows = rows.enumerated().filter { index, row in
            needed.contains(index) || row.isContradicted && sequences.contains(row.side.observation.sequence)
        }.map(\.element)
        if rows.count > maximum { rows.removeLast(rows.count - maximum) }
    }

    /// Drops what a later answer of the same kind repeats: it says as much, and decides as much.
    private mutating func dropRepeated() {
        var index = rows.count - 1
        while index >= 0, rows.count > 1 {
            if rows.indices.contains(where: { $0 != index && repeats($0, index) }) { rows.remove(at: index) }
            index -= 1
        }
    }

    private func repeats(_ position: Int, _ index: Int) -> Bool {
        let (later, row) = (rows[position], rows[index])
        let (mine, theirs) = (later.side.observation, row.side.observation)
        guard mine.kind == theirs.kind, mine.start >= theirs.start, mine.end >= theirs.end,
            later.side.modified == row.side.modified, !later.isContradicted, !row.isContradicted,
            // Of two that are alike in all one is kept.
            (mine.start, mine.end, mine.sequence, index) > (theirs.start, theirs.end, theirs.sequence, position)
        else { return false }
        return row.members.allSatisfy { path, member in later.members[path].map(member.agrees) ?? false }
    }

    /// The rows that are needed for one member or another, or because they are all that shows the object at all.
    private func neededRows() -> Set<Int> {
        let sides = rows.map(\.side)
        // Most members are shown by the same rows.
        var decided = [Array(rows.indices)]
        var needed = order.needed(decided[0], of: sides)
        func decide(among candidates: [Int]) {
            guard !decided.contains(candidates) else { return }
            decided.append(candidates)
            needed.formUnion(order.needed(candidates, of: sides))
        }
        forEachMember { path, showing in
            decide(among: showing)
            // Without what once stood in the place of an object, what it replaced would be known again.
            if showing.contains(where: { rows[$0].members[path]?.isContainer == true }) {
                decide(among: showing.filter { replaces($0, path) })
            }
        }
        return needed
    }

    /// Puts a contribution that alone says all there is in front, if there is one.
    mutating func preferComplete(_ resolved: ResolvedObject) {
        guard let index = rows.firstIndex(where: { $0.saysAll(of: resolved) }), index > 0 else { return }
        rows.insert(rows.remove(at: index), at: 0)
    }
}

extension ContributionTable.Row {
    /// Reads what a contribution observes; nil where there is nothing to read.
    init?(_ contribution: Contribution, model: Int, models: Models) {
        guard let value = JSONSlice(contribution.payload) else { return nil }
        let observed = ObservedMembers(value, model: model, models: models)
        let members = observed.hasRepeated ? observed.members.filter { !$0.value.isRepeated } : observed.members
        let modified = models.compiled[model].modifiedPaths.lazy.compactMap { members[MemberPath($0)] }.first
        self.contribution = contribution
        self.members = members
        side = ObservationOrder.Side(
            observation: contribution.observation,
            modified: modified.flatMap { ModificationTime($0.value) }
        )
    }

    /// Whether this shows every member at its newest.
    func saysAll(of resolved: ResolvedObject) -> Bool {
        resolved.members.allSatisfy { path, newest in
            guard let mine = members[path] else { return false }
            guard case .value(let member) = newest else { return true }
            return mine.agrees(with: member)
        }
    }
}
