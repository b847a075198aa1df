/// Puts what is known of an object and what decided it side by side.
struct ProvenanceAccount {
    let known: ContributionTable
    let others: ContributionTable
    let order: ObservationOrder
    let names: PropertyNames
    let models: Models
    let model: Int

    /// One row's value of a member.
    private struct Showing {
        var row: ContributionTable.Row
        var member: ObservedMember
    }

    var members: [Provenance.Member] {
        let resolved = known.resolved
        var paths = Set(known.rows.flatMap(\.members.keys))
        for row in known.rows { paths.formUnion(row.contradicted) }
        return paths.compactMap { path in
            let shown = showings(of: path, in: known)
            switch resolved[path] {
            case .value(let newest):
                // What is embedded is told member by member.
                return newest.isContainer ? nil : self.known(newest, at: path, shown)
            case .disputed:
                return disputed(at: path, shown)
            case nil:
                return contradicted(at: path)
            }
        }
    }

    private func showings(of path: MemberPath, in table: ContributionTable) -> [Showing] {
        table.rows.compactMap { row in row.members[path].map { Showing(row: row, member: $0) } }
            .sorted { isEarlier($1.row, $0.row) }
    }

    private func isEarlier(_ left: ContributionTable.Row, _ right: ContributionTable.Row) -> Bool {
        let (mine, theirs) = (left.side.observation, right.side.observation)
        return (order.effectiveTime(mine), mine.sequence) < (order.effectiveTime(theirs), theirs.sequence)
    }

    private func known(_ newest: ObservedMember, at path: MemberPath, _ shown: [Showing]) -> Provenance.Member {
        let agreeing = shown.filter { $0.member.agrees(with: newest) }
        var older = shown.filter { !$0.member.agrees(with: newest) }
        for other in showings(of: path, in: others) where !other.member.agrees(with: newest) { older.append(other) }
        var member = empty(path, .known, moves: newest.isShared)
        member.value = plain(newest.value)
        member.sightings = agreeing.map(sighting)
        member.overruled = older.map { old in overruled(old, by: agreeing) }
        return member
    }

    private func disputed(at path: MemberPath, _ shown: [Showing]) -> Provenance.Member {
        let undefeated = shown.filter { one in
            !shown.contains { order.overrides($0.row.side, one.row.side) }
        }
        let candidates = undefeated.isEmpty ? shown : undefeated
        let sequences = Set(candidates.map { [$0.row.side.observation.sequence, $0.row.contribution.version] })
        let older = shown.filter {
            !sequences.contains([$0.row.side.observation.sequence, $0.row.contribution.version])
        }
        var member = empty(path, .disputed, moves: shown.first?.member.isShared ?? true)
        member.sightings = candidates.map(sighting)
        member.overruled = older.map { old in overruled(old, by: candidates) }
        return member
    }

    /// What versions of one answer disagree on.
    private func contradicted(at path: MemberPath) -> Provenance.Member? {
        var member = empty(path, .contradicted, moves: true)
        for row in known.rows where row.contradicted.contains(path) {
            guard let value = JSONSlice(row.contribution.payload),
                let shown = ObservedMembers(value, model: model, models: models).members[path]
            else { continue }
            member.sightings.append(
                Provenance.Sighting(value: plain(shown.value), observation: row.side.observation)
            )
        }
        return member.sightings.isEmpty ? nil : member
    }

    func gathered(
        _ path: MemberPath,
        _ items: [Accumulation.Item],
        _ policy: MergePolicy,
        as value: [UInt8]?
    ) -> Provenance.Member {
        var member = empty(path, .gathered, moves: false)
        member.policy = policy
        member.value = value.map { Reference.plain($0) }
        member.items = items.map { Provenance.Item(value: plain($0.value), time: $0.time) }
        return member
    }

    /// The members together with the values of them that fail their checks.
    func withQuarantined(_ members: [Provenance.Member], _ contributions: [Contribution]) -> [Provenance.Member] {
        guard !models.plain[model] else { return members }
        var members = members
        for contribution in contributions {
            guard let object = JSONSlice(contribution.payload) else { continue }
            for path in ObservedMembers(object, model: model, models: models).quarantined {
                guard let names = path.names, let value = object.value(at: names[...]) else { continue }
                let sighting = Provenance.Sighting(value: plain(value), observation: contribution.observation)
                if let known = members.firstIndex(where: { $0.pointer == "/" + path.text }) {
                    members[known].quarantined.append(sighting)
                } else {
                    var member = empty(path, .quarantined, moves: false)
                    member.quarantined = [sighting]
                    members.append(member)
                }
            }
        }
        return members
    }

    private func overruled(_ old: Showing, by newer: [Showing]) -> Provenance.Overruled {
        let rule = newer.lazy.compactMap { order.rule($0.row.side, over: old.row.side) }.first
        return Provenance.Overruled(sighting: sighting(old), rule: rule)
    }

    private func sighting(_ showing: Showing) -> Provenance.Sighting {
        Provenance.Sighting(value: plain(showing.member.value), observation: showing.row.side.observation)
    }

    private func plain(_ value: JSONSlice) -> [UInt8] { Reference.plain(Array(value.bytes)) }

    private func empty(_ path: MemberPath, _ standing: Provenance.Standing, moves: Bool) -> Provenance.Member {
        let pointer = "/" + path.text
        return Provenance.Member(
            pointer: pointer,
            properties: names[pointer],
            standing: standing,
            policy: models.merge(of: path, model: model) ?? .latest,
            moves: moves,
            value: nil,
            sightings: [],
            overruled: [],
            quarantined: [],
            items: []
        )
    }
}

extension MemberPath {
    /// The unescaped names; nil where one is not Unicode.
    fileprivate var names: [String]? {
        var names: [String] = []
        for part in text.split(separator: "/", omittingEmptySubsequences: false) {
            guard let name = MemberPath(pointer: String(part)).name else { return nil }
            names.append(name)
        }
        return names
    }
}
