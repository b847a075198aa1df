/// The newest value of each declared member of one object, decided over its contributions.
struct ResolvedObject {
    /// What is known of one member.
    enum Newest {
        case value(ObservedMember)
        case disputed

        func agrees(with other: Newest) -> Bool {
            switch (self, other) {
            case (.value(let mine), .value(let theirs)): mine.agrees(with: theirs)
            case (.disputed, .disputed): true
            default: false
            }
        }
    }

    private(set) var members: [MemberPath: Newest] = [:]
    let model: Int
    /// Members that versions of one answer contradict each other on, and nothing newer is known of: what is known is older
    /// than those versions, so that each keeps its literal.
    private var kept: [[UInt8]: Set<MemberPath>] = [:]

    /// A single literal: what it shows is the newest.
    init(_ value: JSONSlice, model: Int, models: Models) {
        self.model = model
        for (path, member) in ObservedMembers(value, model: model, models: models).members where !member.isRepeated {
            members[path] = .value(member)
        }
    }

    fileprivate init(model: Int) {
        self.model = model
    }

    subscript(path: MemberPath) -> Newest? { members[path] }

    /// Whether some member that may move differs.
    func differs(from other: ResolvedObject) -> Bool {
        members.contains { $0.value.isShared && !(other.members[$0.key]?.agrees(with: $0.value) ?? false) }
            || other.members.contains { $0.value.isShared && members[$0.key] == nil }
    }

    /// Whether a version keeps its own literal of a member, whatever else is known.
    func isKept(_ path: MemberPath, in payload: [UInt8]) -> Bool {
        !kept.isEmpty && kept[payload]?.contains(path) ?? false
    }

    fileprivate mutating func keep(_ paths: Set<MemberPath>, in payload: [UInt8]) {
        if !paths.isEmpty { kept[payload, default: []].formUnion(paths) }
    }

    /// Puts a value in that is known otherwise than from a contribution.
    mutating func put(_ value: [UInt8], at path: MemberPath) {
        guard let slice = JSONSlice(value) else { return }
        members[path] = .value(ObservedMember(value: slice, isShared: false))
    }

    fileprivate mutating func set(_ newest: Newest?, at path: MemberPath) {
        members[path] = newest
    }
}

extension ResolvedObject.Newest {
    var isShared: Bool {
        if case .value(let member) = self { return member.isShared }
        return true
    }
}

/// The contributions of one object, read and compared with each other.
struct ContributionTable {
    /// One contribution and what it observes.
    struct Row {
        var contribution: Contribution
        var members: [MemberPath: ObservedMember]
        var side: ObservationOrder.Side
        /// The members on which another version of the same answer disagrees with it.
        var contradicted: Set<MemberPath> = []
        /// The objects within it that a newer contribution shows as something else: what they held is no longer known.
        var replaced: Set<MemberPath> = []

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
        setAsideContradictions()
        setAsideReplaced()
    }

    /// How many versions of one answer are looked at closely, and how many that tell something are kept of more.
    private static let manyVersions = (compared: 16, kept: 64)

    /// Versions of one answer that disagree on a member do not observe it (law 6): its order of arrival says nothing.
    ///
    /// Of very many, those go that say nothing that the others do not.
    private mutating func setAsideContradictions() {
        let sequence = { (row: Row) in row.side.observation.sequence }
        let hasTwins = rows.indices.contains { index in
            rows[..<index].contains { sequence($0) == sequence(rows[index]) }
        }
        guard hasTwins else { return }
        var idle: Set<Int> = []
        for (_, twins) in Dictionary(grouping: rows.indices, by: { sequence(rows[$0]) }) where twins.count > 1 {
            var shown: [MemberPath: [ObservedMember]] = [:]
            var contradicted: Set<MemberPath> = []
            var telling = 0
            for index in twins {
                var isTelling = false
                for (path, member) in rows[index].members where !contradicted.contains(path) {
                    let known = shown[path] ?? []
                    if known.contains(where: { !$0.agrees(with: member) }) {
                        contradicted.insert(path)
                        isTelling = true
                    } else if known.count < 4, !known.contains(where: { $0.value.bytes == member.value.bytes }) {
                        shown[path, default: []].append(member)
                        isTelling = true
                    }
                }
                if isTelling { telling += 1 }
                if twins.count > Self.manyVersions.compared, !isTelling || telling > Self.manyVersions.kept {
                    idle.insert(index)
                }
            }
            if !contradicted.isEmpty { for index in twins { rows[index].setAside(contradicted) } }
        }
        if !idle.isEmpty { rows = rows.indices.filter { !idle.contains($0) }.map { rows[$0] } }
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
                if isReplaced { rows[older].replaced.insert(path) }
            }
        }
        for index in rows.indices {
            for path in rows[index].replaced { rows[index].forget(within: path) }
        }
    }

    /// The newest value of every member.
    var resolved: ResolvedObject {
        var resolved = ResolvedObject(model: model)
        for row in rows {
            for path in row.members.keys where resolved[path] == nil { resolved.set(newest(of: path), at: path) }
        }
        for row in rows where row.isContradicted {
            let kept = row.contradicted.filter { path in
                !rows.contains { $0.members[path] != nil && order.overrides($0.side, row.side) }
            }
            resolved.keep(kept, in: row.contribution.payload)
        }
        return resolved
    }

    /// The value that all agree on whom nobody overrides; disputed if they do not.
    private func newest(of path: MemberPath) -> ResolvedObject.Newest? {
        let candidates = rows.filter { $0.members[path] != nil }
        let undefeated = candidates.filter { row in
            !candidates.contains { order.overrides($0.side, row.side) }
        }
        let latest = undefeated.max {
            (order.effectiveTime($0.side.observation), $0.side.observation.sequence)
                < (order.effectiveTime($1.side.observation), $1.side.observation.sequence)
        }
        // Dates and clocks that contradict each other in a circle leave nobody undefeated.
        guard let member = latest?.members[path] else { return .disputed }
        let isAgreed = undefeated.allSatisfy { $0.members[path].map(member.agrees) ?? true }
        return isAgreed ? .value(member) : .disputed
    }

    /// How long a read may be on its way, in microseconds: until then a write is kept although newer reads say all that it
    /// says, because only the write shows that a read begun before it is older than those.
    static let longestFlight: Int64 = 600_000_000

    /// Drops every row that no longer decides anything, oldest first, and puts the newest in front.
    mutating func prune(to maximum: Int) {
        rows.sort {
            (order.effectiveTime($0.side.observation), $0.side.observation.sequence)
                > (order.effectiveTime($1.side.observation), $1.side.observation.sequence)
        }
        var index = rows.count - 1
        while index >= 0 {
            let group = contradicting(index)
            if group.count < rows.count, group.allSatisfy({ isSuperseded($0, besides: group) }) {
                for superseded in group.reversed() { rows.remove(at: superseded) }
                index = rows.count - 1
            } else {
                index -= 1
            }
        }
        if rows.count > maximum { rows.removeLast(rows.count - maximum) }
    }

    /// The row and those of the same answer that contradict it: one of them left alone would seem to observe what all of
    /// them together do not.
    private func contradicting(_ index: Int) -> [Int] {
        guard rows[index].isContradicted else { return [index] }
        let sequence = rows[index].side.observation.sequence
        return rows.indices.filter { rows[$0].isContradicted && rows[$0].side.observation.sequence == sequence }
    }

    /// Whether every member is known newer from others, who also override all that this one overrides.
    ///
    /// The latter does not follow: a read begun before a write was answered is older than the write, and overlaps with
    /// reads that are newer than the write.
    private func isSuperseded(_ index: Int, besides group: [Int]) -> Bool {
        let row = rows[index]
        let others = rows.indices.filter { !group.contains($0) }
        let newer = others.filter { order.overrides(rows[$0].side, row.side) }
        let older = others.filter { order.overrides(row.side, rows[$0].side) }
        guard !newer.isEmpty, !isAwaited(row, newer) else { return false }
        guard row.contradicted.allSatisfy({ path in newer.contains { rows[$0].members[path] != nil } }) else {
            return false
        }
        // Without it, what it replaced in older ones would be known again.
        let isNeeded = older.contains { old in
            rows[old].replaced.contains { path in
                replaces(index, path)
                    && !others.contains { replaces($0, path) && order.overrides(rows[$0].side, rows[old].side) }
            }
        }
        guard !isNeeded else { return false }
        return row.members.keys.allSatisfy { path in
            newer.contains { rows[$0].members[path] != nil }
                && older.allSatisfy { old in
                    rows[old].members[path] == nil
                        || others.contains {
                            rows[$0].members[path] != nil && order.overrides(rows[$0].side, rows[old].side)
                        }
                }
        }
    }

    private func replaces(_ index: Int, _ path: MemberPath) -> Bool {
        rows[index].members[path].map { !$0.isContainer } ?? false
    }

    /// Whether a read that began before this write may still arrive, and no later write would tell that it is old.
    private func isAwaited(_ row: Row, _ newer: [Int]) -> Bool {
        guard row.side.observation.kind == .write else { return false }
        return newer.allSatisfy { index in
            let observation = rows[index].side.observation
            let repeats = observation.kind == .write && row.members.keys.allSatisfy { rows[index].members[$0] != nil }
            return !repeats && observation.start - row.side.observation.end < Self.longestFlight
        }
    }

    /// Puts a contribution that alone says all there is in front, if there is one.
    mutating func preferComplete(_ resolved: ResolvedObject) {
        guard let index = rows.firstIndex(where: { $0.saysAll(of: resolved) }), index > 0 else { return }
        rows.insert(rows.remove(at: index), at: 0)
    }
}

extension ContributionTable.Row {
    /// Takes out the members that other versions of the same answer contradict, and what is in them.
    fileprivate mutating func setAside(_ paths: Set<MemberPath>) {
        for path in paths where members[path] != nil {
            contradicted.insert(path)
            members[path] = nil
            forget(within: path)
        }
    }

    fileprivate mutating func forget(within path: MemberPath) {
        for inner in members.keys where inner.isWithin(path) { members[inner] = nil }
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
