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
