extension ObjectState {
    /// Where each member that is known of the object comes from.
    ///
    /// For people who ask, not for the path of a request.
    ///
    /// - Parameter others: what documents show of the object besides, the newest first: members that belong to their
    ///   responses may be seen nowhere else.
    public func provenance(model: String, models: Models, lag: Lag, others: [Contribution] = []) -> Provenance {
        var reader = UndeclaredMembers(models: models)
        guard let index = models.index(of: model) else {
            for contribution in (base.map { [$0] } ?? []) + others { reader.read(contribution, model: nil) }
            return Provenance(members: reader.members)
        }
        let names = PropertyNames(model: index, models: models)
        var members = settledMembers(model: index, models: models, lag: lag) + gathered(model: index, models: models)
        for contribution in (base.map { [$0] } ?? []) + others {
            quarantine(&members, contribution, model: index, models: models)
        }
        for position in members.indices {
            members[position].properties = names[members[position].pointer]
            guard isOutdated(lag: lag) else { continue }
            members[position].moves = false
            if members[position].standing != .quarantined { members[position].standing = .outdated }
        }
        members.sort { (names.position($0), $0.pointer) < (names.position($1), $1.pointer) }
        for contribution in (base.map { [$0] } ?? []) + others { reader.read(contribution, model: index) }
        let declared = Set(members.map(\.pointer))
        return Provenance(members: members + reader.members.filter { !declared.contains($0.pointer) })
    }

    private func settledMembers(model: Int, models: Models, lag: Lag) -> [Provenance.Member] {
        known(model: model, models: models, lag: lag).members.compactMap { path, known in
            let settled = known.settled
            // What is embedded is listed member by member.
            guard !settled.value.isContainer else { return nil }
            var member = Provenance.Member(pointer: "/" + path.text, standing: .known)
            member.policy = models.merge(of: path, model: model) ?? .latest
            member.moves = settled.value.isShared
            let value = Self.plain(settled.value.value)
            member.value = value
            member.shown = Provenance.Sighting(value: value, source: known.source, time: settled.clock.hi)
            member.replaced = known.former.map {
                Knowledge.Former(value: Reference.plain($0.value), rule: $0.rule)
            }
            if let doubt = settled.doubt {
                member.standing = .doubt
                member.challenger = Provenance.Sighting(
                    value: Self.plain(doubt.challenger.value),
                    source: known.challenger?.source ?? known.source,
                    time: doubt.hi
                )
            }
            return member
        }
    }

    private func gathered(model: Int, models: Models) -> [Provenance.Member] {
        accumulation.items.compactMap { path, items in
            guard let policy = models.merge(of: path, model: model), policy != .latest, policy != .replace else {
                return nil
            }
            var member = Provenance.Member(pointer: "/" + path.text, standing: .gathered)
            member.policy = policy
            member.value = accumulation.values { $0 == path ? policy : nil }[path].map { Reference.plain($0) }
            member.items = items.map { Provenance.Item(value: Self.plain($0.value), time: $0.time) }
            return member
        }
    }

    /// Adds the values that fail their checks.
    private func quarantine(
        _ members: inout [Provenance.Member],
        _ contribution: Contribution,
        model: Int,
        models: Models
    ) {
        guard !models.plain[model], let object = JSONSlice(contribution.payload) else { return }
        for path in ObservedMembers(object, model: model, models: models).quarantined {
            guard let names = path.names, let value = object.value(at: names[...]) else { continue }
            let sighting = Provenance.Sighting(
                value: Self.plain(value),
                source: contribution.observation.sequence,
                time: contribution.observation.end
            )
            if let known = members.firstIndex(where: { $0.pointer == "/" + path.text }) {
                members[known].quarantined.append(sighting)
            } else {
                var member = Provenance.Member(pointer: "/" + path.text, standing: .quarantined)
                member.policy = models.merge(of: path, model: model) ?? .latest
                member.quarantined = [sighting]
                members.append(member)
            }
        }
    }

    private static func plain(_ value: JSONSlice) -> [UInt8] { Reference.plain(Array(value.bytes)) }
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
