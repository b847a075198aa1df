/// What one response shows of one object, in one place or in several.
struct Sighting {
    let observation: Observation
    /// What it observes of each member; those on which its places disagree are not among them (law 6).
    private(set) var members: [MemberPath: SettledMember<ObservedMember>.Observed] = [:]
    /// Members on which its places disagree.
    private(set) var contradicted: Set<MemberPath> = []
    /// By contribution, what its version shows.
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
                    // A place of its own counts for more than one where it is embedded.
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

    /// The members, each after the object that it stands in.
    var outermostFirst: [(MemberPath, SettledMember<ObservedMember>.Observed)] {
        members.sorted { $0.key.text.utf8.count < $1.key.text.utf8.count }.map { ($0.key, $0.value) }
    }
}

extension ObservedMembers {
    /// The members that occur once: the others are no observations.
    var sound: [MemberPath: ObservedMember] { hasRepeated ? members.filter { !$0.value.isRepeated } : members }
}

extension [MemberPath: ObservedMember] {
    /// What a version says of when it was modified.
    func stamp(of model: Int, _ models: Models) -> ModificationTime? {
        models.compiled[model].modifiedPaths.lazy.compactMap { self[MemberPath($0)] }.first.flatMap {
            ModificationTime($0.value)
        }
    }
}
