/// What one response shows of one object, at one place or several.
struct Sighting {
    let observation: Observation
    /// The observation of each member, except those on which the places disagree (law 6).
    private(set) var members: [MemberPath: SettledMember<ObservedMember>.Observed] = [:]
    /// The members on which the places disagree.
    private(set) var contradicted: Set<MemberPath> = []
    /// By contribution, the members of its version.
    let versions: [[MemberPath: ObservedMember]]

    var sequence: Int64 { observation.sequence }

    init?(_ contributions: [Contribution], model: Int, models: Models, lag: Lag) {
        guard let observation = contributions.first?.observation else { return nil }
        self.observation = observation
        versions = contributions.map { contribution in
            JSONSlice(contribution.payload).map { ObservedMembers($0, model: model, models: models).sound } ?? [:]
        }
        for (contribution, version) in zip(contributions, versions) {
            let stamp = version.stamp(of: model, models)
            let lo = contribution.lo(lag: lag)
            for (path, value) in version {
                if let known = members[path] {
                    if !known.value.agrees(with: value) { contradicted.insert(path) }
                    // A place of its own has more weight than an embedded one.
                    guard known.lo < lo else { continue }
                }
                members[path] = .init(
                    value: value,
                    lo: lo,
                    hi: observation.end,
                    stamp: stamp,
                    kind: contribution.kind
                )
            }
        }
        for path in contradicted {
            members[path] = nil
            for inner in members.keys where inner.isWithin(path) { members[inner] = nil }
        }
    }

    /// The members, each after the object that contains it.
    var outermostFirst: [(MemberPath, SettledMember<ObservedMember>.Observed)] {
        members.sorted { $0.key.text.utf8.count < $1.key.text.utf8.count }.map { ($0.key, $0.value) }
    }
}

extension ObservedMembers {
    /// The members that occur once; repeated ones are no observations.
    var sound: [MemberPath: ObservedMember] { hasRepeated ? members.filter { !$0.value.isRepeated } : members }
}

extension [MemberPath: ObservedMember] {
    /// The value of the model's `modified` member in a version.
    func stamp(of model: Int, _ models: Models) -> ModificationTime? {
        models.compiled[model].modifiedPaths.lazy.compactMap { self[MemberPath($0)] }.first.flatMap {
            ModificationTime($0.value)
        }
    }
}
