/// Where the values of an object come from.
extension ObjectState {
    /// The source of each known member of the object.
    ///
    /// For display, not for the path of a request.
    ///
    /// - Parameter others: what other documents show of the object, newest first. Members that belong to their
    ///   responses may occur only there.
    public func provenance(model: String, models: Models, lag: Lag, others: [Contribution] = []) -> Provenance {
        let shown = (base.map { [$0] } ?? []) + others
        guard let index = models.index(of: model) else {
            return Provenance(members: Self.ownMembers(in: shown, nil))
        }
        let names = PropertyNames(model: index, models: models)
        let reader = reader(of: index, models)
        var members = settledMembers(reader, lag: lag) + gatheredMembers(reader)
        if !models.plain[index] { for contribution in shown { Self.quarantine(&members, contribution, reader) } }
        for position in members.indices {
            members[position].properties = names[members[position].pointer]
            guard isOutdated(lag: lag) else { continue }
            members[position].moves = false
            if members[position].standing != .quarantined { members[position].standing = .outdated }
        }
        members.sort { (names.position($0), $0.pointer) < (names.position($1), $1.pointer) }
        let declared = Set(members.map(\.pointer))
        let own = Self.ownMembers(in: shown, reader)
        return Provenance(members: members + own.filter { !declared.contains($0.pointer) })
    }

    /// The members that belong to their responses, each from the first version that has it.
    private static func ownMembers(in shown: [Contribution], _ reader: ObjectReader?) -> [Provenance.Member] {
        var seen: Set<MemberPath> = []
        return shown.flatMap { contribution -> [Provenance.Member] in
            guard let object = JSONSlice(contribution.payload) else { return [] }
            let observed = reader?.observed(object, withRest: true).rest
            let own = observed ?? object.members.map { ($0.name, $0.value, .undeclared) }
            return own.filter { seen.insert($0.path).inserted }.map { path, value, standing in
                let value = plain(value)
                var member = Provenance.Member(pointer: "/" + path.text, standing: standing, value: value)
                member.shown = Provenance.Sighting(value: value, contribution.observation)
                return member
            }
        }
    }

    private func settledMembers(_ reader: ObjectReader, lag: Lag) -> [Provenance.Member] {
        KnownMembers(self, reader, lag: lag).members.compactMap { path, known in
            let settled = known.settled
            // The members of an embedded object are listed one by one.
            guard !settled.value.isContainer else { return nil }
            var member = Provenance.Member(pointer: "/" + path.text, standing: .known)
            member.policy = reader.policy(of: path) ?? .latest
            member.moves = settled.value.isShared
            let value = Self.plain(settled.value.value)
            member.value = value
            member.shown = Provenance.Sighting(
                value: value,
                source: settled.source,
                time: max(settled.clock.lo, settled.clock.hi)
            )
            member.replaced = known.former.map { Knowledge.Former(value: Reference.plain($0.value), rule: $0.rule) }
            if let doubt = settled.doubt {
                member.standing = .doubt
                member.challenger = doubt.challenger.map { challenger in
                    Provenance.Sighting(
                        value: Self.plain(challenger.value.value),
                        source: challenger.source,
                        time: challenger.hi
                    )
                }
            }
            return member
        }
    }

    private func gatheredMembers(_ reader: ObjectReader) -> [Provenance.Member] {
        gathered.items.compactMap { path, items in
            guard let policy = reader.policy(of: path), policy != .latest, policy != .replace else {
                return nil
            }
            var member = Provenance.Member(pointer: "/" + path.text, standing: .gathered)
            member.policy = policy
            member.value = gathered.values { $0 == path ? policy : nil }[path].map { Reference.plain($0) }
            member.items = items.map { Provenance.Item(value: Self.plain($0.value), time: $0.time) }
            return member
        }
    }

    /// Adds the values that fail their checks.
    private static func quarantine(
        _ members: inout [Provenance.Member],
        _ contribution: Contribution,
        _ reader: ObjectReader
    ) {
        guard let object = JSONSlice(contribution.payload) else { return }
        for path in reader.observed(object).quarantined {
            guard let names = path.names, let value = object.value(at: names[...]) else { continue }
            let sighting = Provenance.Sighting(value: plain(value), contribution.observation)
            if let known = members.firstIndex(where: { $0.pointer == "/" + path.text }) {
                members[known].quarantined.append(sighting)
            } else {
                var member = Provenance.Member(pointer: "/" + path.text, standing: .quarantined)
                member.policy = reader.policy(of: path) ?? .latest
                member.quarantined = [sighting]
                members.append(member)
            }
        }
    }

    private static func plain(_ value: JSONSlice) -> [UInt8] { Reference.plain(Array(value.bytes)) }
}

extension Provenance.Sighting {
    fileprivate init(value: [UInt8], _ observation: Observation) {
        self.init(value: value, source: observation.sequence, time: observation.end)
    }
}
