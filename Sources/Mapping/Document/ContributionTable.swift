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
        self.model = model
        order = ObservationOrder(lag: lag)
        let modifiedPath = models.compiled[model].modifiedPath.map(MemberPath.init)
        rows = contributions.compactMap { contribution in
            guard let value = JSONSlice(contribution.payload) else { return nil }
            let members = ObservedMembers(value, model: model, models: models).members.filter { !$0.value.isRepeated }
            let modified = modifiedPath.flatMap { members[$0] }.flatMap { ModificationTime($0.value) }
            return Row(
                contribution: contribution,
                members: members,
                side: ObservationOrder.Side(observation: contribution.observation, modified: modified)
            )
        }
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
        var resolved = ResolvedObject(model: model)
        for row in rows {
            for path in row.members.keys where resolved[path] == nil {
                resolved.set(newest(of: path, apartFrom: strangers), at: path)
            }
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

    /// Whether an answer that is newer than a row shows a member.
    private func isKnownNewer(_ path: MemberPath, than row: Row) -> Bool {
        rows.contains { $0.members[path] != nil && order.overrides($0.side, row.side) }
    }

    /// The rows that show a member and that no other one of these knows better than.
    private func standing(for path: MemberPath) -> [Row] {
        order.standing(rows.indices.filter { rows[$0].members[path] != nil }, of: rows.map(\.side)).map { rows[$0] }
    }

    /// The value that all agree on whom nobody knows better than; disputed if they do not.
    private func newest(of path: MemberPath, apartFrom strangers: [MemberPath: Set<Int64>]) -> ResolvedObject.Newest? {
        let standing = standing(for: path)
        guard let member = latest(of: standing)?.members[path] else { return nil }
        guard standing.allSatisfy({ $0.members[path].map(member.agrees) ?? true }) else { return .disputed }
        let isStrange = strangers.contains { strange, routes in
            (path == strange || path.isWithin(strange))
                && standing.allSatisfy { routes.contains($0.side.observation.route) }
        }
        return isStrange ? .disputed : .value(member)
    }

    private func latest(of rows: [Row]) -> Row? {
        rows.max {
            (order.effectiveTime($0.side.observation), $0.side.observation.sequence)
                < (order.effectiveTime($1.side.observation), $1.side.observation.sequence)
        }
    }

    /// Which members have another value here than in an earlier table, and by which answers.
    func changes(since earlier: ContributionTable, _ before: ResolvedObject, _ after: ResolvedObject) -> [MemberChange]
    {
        after.members.compactMap { path, newest in
            guard case .value(let member) = newest, case .value(let old)? = before[path], member.isShared,
                !member.agrees(with: old), let from = earlier.latest(of: earlier.standing(for: path)),
                let to = latest(of: standing(for: path))
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
        rows.sort {
            (order.effectiveTime($0.side.observation), $0.side.observation.sequence)
                > (order.effectiveTime($1.side.observation), $1.side.observation.sequence)
        }
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
        var decided: Set<[Int]> = []
        var needed = order.needed(Array(rows.indices), of: sides)
        decided.insert(Array(rows.indices))
        for path in Set(rows.flatMap(\.members.keys)) {
            let candidates = rows.indices.filter { rows[$0].members[path] != nil }
            if decided.insert(candidates).inserted { needed.formUnion(order.needed(candidates, of: sides)) }
        }
        // Without what once stood in the place of an object, what it replaced would be known again.
        for path in Set(rows.flatMap { row in row.members.filter(\.value.isContainer).map(\.key) }) {
            let candidates = rows.indices.filter { replaces($0, path) }
            if decided.insert(candidates).inserted { needed.formUnion(order.needed(candidates, of: sides)) }
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
    /// Whether this shows every member at its newest.
    func saysAll(of resolved: ResolvedObject) -> Bool {
        resolved.members.allSatisfy { path, newest in
            guard let mine = members[path] else { return false }
            guard case .value(let member) = newest else { return true }
            return mine.agrees(with: member)
        }
    }
}
