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
        let counting = counting(lag: lag)
        let isOutdated = isOutdated(lag: lag)
        let known = isOutdated ? contributions : counting
        let others = isOutdated ? others : contributions.filter { !counting.contains($0) } + others
        let account = ProvenanceAccount(
            known: ContributionTable(known, model: index, models: models, lag: lag),
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
        members = account.withQuarantined(members, known)
        if isOutdated {
            for position in members.indices {
                members[position].moves = false
                if [.known, .gathered].contains(members[position].standing) { members[position].standing = .outdated }
            }
        }
        members.sort { (account.names.position($0), $0.pointer) < (account.names.position($1), $1.pointer) }
        var reader = UndeclaredMembers(models: models)
        for contribution in known + others { reader.read(contribution, model: index) }
        let declared = Set(members.map(\.pointer))
        return Provenance(members: members + reader.members.filter { !declared.contains($0.pointer) })
    }

    /// The first of the answers that say of the object that it is deleted; nil where it does not.
    public func deletion(model: String, models: Models, lag: Int64) -> Observation? {
        guard isDeleted(model: model, models: models, lag: lag) else { return nil }
        let telling = contributions.map(\.observation)
        let saying = contributions.filter { models.saysDeleted($0.payload, of: model) }.map(\.observation)
        let order = ObservationOrder(lag: lag)
        return (saying.isEmpty ? telling : saying).min { order.effectiveTime($0) < order.effectiveTime($1) }
    }

    /// Whether nothing that is known of the object is newer than its mark.
    public func isOutdated(lag: Int64) -> Bool { mark != nil && counting(lag: lag).isEmpty }
}
