extension ObjectState {
    /// Where each member that is known of the object comes from.
    ///
    /// For people who ask, not for the way of a request: every contribution is read several times.
    ///
    /// - Parameter others: what documents show of the object although it no longer tells what is known, the newest first:
    ///   members that belong to their answers may be seen nowhere else; of the rest it is only compared.
    public func provenance(
        model: String,
        models: Models,
        lag: Int64,
        others: [Contribution] = []
    ) -> Provenance {
        guard let index = models.index(of: model) else {
            var reader = UndeclaredMembers(models: models)
            for contribution in contributions + others { reader.read(contribution, model: nil) }
            return Provenance(members: reader.members)
        }
        let account = ProvenanceAccount(
            known: ContributionTable(contributions, model: index, models: models, lag: lag),
            others: ContributionTable(others, model: index, models: models, lag: lag),
            order: ObservationOrder(lag: lag),
            names: PropertyNames(model: index, models: models),
            models: models,
            model: index
        )
        var members = account.members
        for (path, items) in accumulation.items {
            guard let policy = models.merge(of: path, model: index), policy != .latest, policy != .replace else {
                continue
            }
            let value = accumulation.values { $0 == path ? policy : nil }[path]
            members.append(account.gathered(path, items, policy, as: value))
        }
        members = account.withQuarantined(members, contributions)
        members.sort { (account.names.position($0), $0.pointer) < (account.names.position($1), $1.pointer) }
        var reader = UndeclaredMembers(models: models)
        for contribution in contributions + others { reader.read(contribution, model: index) }
        let declared = Set(members.map(\.pointer))
        return Provenance(members: members + reader.members.filter { !declared.contains($0.pointer) })
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

/// Which properties of a model are read from which place.
private struct PropertyNames {
    private var byPointer: [String: [String]] = [:]
    private var order: [String: Int] = [:]

    init(model: Int, models: Models) {
        // Of a cluster, whatever its base and its concrete models declare.
        var indexes = [model]
        var position = 0
        while position < indexes.count {
            let declaration = models.declarations[indexes[position]]
            for name in declaration.choices.map(\.model) + (declaration.base.map { [$0] } ?? []) {
                if let other = models.index(of: name), !indexes.contains(other) { indexes.append(other) }
            }
            position += 1
        }
        for declaration in indexes.map({ models.declarations[$0] }) {
            for property in declaration.properties {
                for source in Self.sources(of: property, naming: declaration.naming) {
                    guard let steps = KeyPathSyntax.steps(of: source) else { continue }
                    // A member of an array's elements is known as part of the array.
                    let names = steps.prefix { $0 != .elements }.compactMap { [$0].names?.first }
                    let pointer = "/" + MemberPath(names).text
                    order[pointer] = min(order[pointer] ?? .max, order.count)
                    if byPointer[pointer]?.contains(property.name) != true {
                        byPointer[pointer, default: []].append(property.name)
                    }
                }
            }
        }
    }

    private static func sources(of property: PropertyDeclaration, naming: Naming) -> [String] {
        if !property.parts.isEmpty { return property.parts.map(\.from) }
        return property.from.isEmpty ? MemberNaming(naming).members(for: property.name) : [property.from]
    }

    subscript(pointer: String) -> [String] { byPointer[pointer] ?? [] }

    func position(_ member: Provenance.Member) -> Int { order[member.pointer] ?? .max }
}

/// Puts what is known of an object and what decided it side by side.
private struct ProvenanceAccount {
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

/// Collects the members that belong to their answers, each as the newest contribution that has it shows it.
private struct UndeclaredMembers {
    let models: Models
    private(set) var members: [Provenance.Member] = []
    private var seen: Set<MemberPath> = []

    init(models: Models) { self.models = models }

    mutating func read(_ contribution: Contribution, model: Int?) {
        guard let object = JSONSlice(contribution.payload) else { return }
        guard let model else {
            for member in object.members { add(member.value, .undeclared, at: member.name, contribution) }
            return
        }
        let compiled = models.compiled[models.concrete(of: model, for: object)]
        read(object, node: compiled.root, shared: compiled.sharesAll, at: .root, contribution)
    }

    /// As `ObservedMembers` reads, but for what that passes over.
    private mutating func read(
        _ object: JSONSlice,
        node: Int,
        shared: Bool,
        at prefix: MemberPath,
        _ contribution: Contribution
    ) {
        for member in object.members {
            let path = prefix.appending(member.name)
            guard let name = member.name.name, let child = models.tree.child(of: node, named: name) else {
                if !shared { add(member.value, .undeclared, at: path, contribution) }
                continue
            }
            let found = models.tree.nodes[child]
            if found.isLocal {
                add(member.value, .local, at: path, contribution)
            } else if found.hasChildren, !found.isProperty, found.relation < 0, member.value.kind == .object {
                read(member.value, node: child, shared: shared, at: path, contribution)
            } else if !found.isProperty, !shared, found.captures == 0, !found.isAsked, found.relation < 0 {
                add(member.value, .undeclared, at: path, contribution)
            }
        }
    }

    private mutating func add(
        _ value: JSONSlice,
        _ standing: Provenance.Standing,
        at path: MemberPath,
        _ contribution: Contribution
    ) {
        guard seen.insert(path).inserted else { return }
        let value = Reference.plain(Array(value.bytes))
        members.append(
            Provenance.Member(
                pointer: "/" + path.text,
                properties: [],
                standing: standing,
                policy: .latest,
                moves: false,
                value: value,
                sightings: [Provenance.Sighting(value: value, observation: contribution.observation)],
                overruled: [],
                quarantined: [],
                items: []
            )
        )
    }
}
