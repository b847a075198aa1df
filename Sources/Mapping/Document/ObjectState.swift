/// What is known of one object: the contributions that together hold each declared member at its newest.
public struct ObjectState: Sendable, Equatable {
    /// How many contributions are kept at most.
    public static let maximumContributions = 16

    /// Newest first; those whose every declared member is known newer are dropped.
    ///
    /// One that alone says all there is stands in front of newer ones that say less.
    public var contributions: [Contribution]
    /// What is known of members with a policy of their own.
    public var accumulation: Accumulation
    /// What is known besides: that a write may have changed the object, or that it is gone.
    public var mark: ObjectMark?

    /// The state as it was stored.
    public init(
        contributions: [Contribution] = [],
        accumulation: Accumulation = Accumulation(),
        mark: ObjectMark? = nil
    ) {
        self.contributions = contributions
        self.accumulation = accumulation
        self.mark = mark
    }

    /// Takes in what one answer shows of the object, once or several times; all have one observation sequence.
    ///
    /// - Parameters:
    ///   - new: the versions that the answer shows.
    ///   - model: the object's model; if it is not declared, only the newest version is kept.
    ///   - models: the models of the upstream.
    ///   - lag: microseconds for which a list does not override a detail or a write.
    /// - Returns: whether the newest value of some declared member changed, by JSON's equality; a member known for the
    ///   first time counts.
    public mutating func merge(_ new: [Contribution], model: String, models: Models, lag: Int64) -> Bool {
        var changes: [MemberChange] = []
        return merge(new, model: model, models: models, lag: lag, changes: &changes)
    }

    /// The same, telling which members known before have other values now.
    ///
    /// Those that are known for the first time are not among them, nor those that are in dispute.
    public mutating func merge(
        _ new: [Contribution],
        model: String,
        models: Models,
        lag: Int64,
        changes: inout [MemberChange]
    ) -> Bool {
        guard let index = models.index(of: model) else {
            contributions = new.last.map { [$0] } ?? contributions
            return !new.isEmpty
        }
        if !models.plain[index] { accumulate(new, model: index, models: models) }
        if contributions.isEmpty, new.count == 1 {
            contributions = new
            return true
        }
        if confirms(new) { return false }
        // Each is read once, for both.
        func read(_ contribution: Contribution) -> ContributionTable.Row? {
            ContributionTable.Row(contribution, model: index, models: models)
        }
        let rows = contributions.compactMap(read)
        let known = ContributionTable(rows, model: index, lag: lag)
        var table = ContributionTable(rows + new.compactMap(read), model: index, lag: lag)
        let (before, after) = (known.resolved, table.resolved)
        let isChanged = after.differs(from: before)
        if isChanged { changes = table.changes(since: known, before, after) }
        table.prune(to: Self.maximumContributions)
        table.preferComplete(after)
        contributions = table.rows.map(\.contribution)
        return isChanged
    }

    private mutating func accumulate(_ new: [Contribution], model: Int, models: Models) {
        for contribution in new {
            guard let value = JSONSlice(contribution.payload) else { continue }
            accumulation.take(ObservedMembers(value, model: model, models: models), from: contribution)
        }
    }

    /// Forgets all that members with a policy of their own came to, but for what the contributions show.
    public mutating func gatherAnew(model: String, models: Models) {
        accumulation = Accumulation()
        guard let index = models.index(of: model), !models.plain[index] else { return }
        // Which answers these were nobody knows any more; each counts for itself.
        let known = contributions.map { contribution in
            var contribution = contribution
            contribution.origin = contribution.observation.sequence
            return contribution
        }
        accumulate(known, model: index, models: models)
    }

    /// Takes in one contribution.
    ///
    /// What one answer shows several times is better given at once: what it disagrees on then leaves the older value.
    public mutating func merge(_ new: Contribution, model: String, models: Models, lag: Int64) -> Bool {
        merge([new], model: model, models: models, lag: lag)
    }

    /// The most frequent case, done without reading JSON: one version seen again by a later read of the same kind.
    private mutating func confirms(_ new: [Contribution]) -> Bool {
        guard contributions.count == 1, new.count == 1, contributions[0].payload == new[0].payload else { return false }
        let (old, new) = (contributions[0].observation, new[0])
        guard new.observation.kind == old.kind, new.observation.start >= old.start, new.observation.end >= old.end,
            new.observation.sequence != old.sequence
        else { return false }
        contributions[0].observation = new.observation
        contributions[0].version = new.version
        return true
    }

    /// Whether one observation of a version makes another one of the very same version needless.
    ///
    /// Both say the same of everything, so that only what they decide about others counts.
    public static func isNeedless(_ observation: Observation, beside other: Observation, lag: Int64) -> Bool {
        if other.kind == observation.kind, other.start >= observation.start, other.end >= observation.end {
            return true
        }
        // A write is not: only it tells that a read begun before it is older.
        return observation.kind != .write && ObservationOrder(lag: lag).isLater(other, observation)
    }

    /// The object with every declared member at its newest, in payload form; nil when the first contribution alone says
    /// it all.
    ///
    /// Undeclared members, and those in dispute, are as the first contribution shows them. Members with a policy of their
    /// own are as it wants them; what fails its checks is left out unless a sound value is known.
    public func mergedPayload(model: String, models: Models, lag: Int64) -> [UInt8]? {
        guard let index = models.index(of: model), contributions.count > 1 || !models.plain[index],
            let first = contributions.first, let base = JSONSlice(first.payload)
        else { return nil }
        let table = ContributionTable(contributions, model: index, models: models, lag: lag)
        var resolved = table.resolved
        if models.plain[index] {
            guard let row = table.rows.first, !row.saysAll(of: resolved) else { return nil }
            var writer = MergedWriter(resolved)
            writer.write(base, at: .root)
            return writer.output
        }
        for (path, value) in accumulated(model: index, models: models) { resolved.put(value, at: path) }
        let quarantined = ObservedMembers(base, model: index, models: models).quarantined
        var writer = MergedWriter(resolved, leavingOut: quarantined)
        writer.write(base, at: .root)
        return writer.output == first.payload ? nil : writer.output
    }

    /// The newest known members, references as such; nil when nothing is known.
    public func newestPayload(model: String, models: Models, lag: Int64) -> [UInt8]? {
        mergedPayload(model: model, models: models, lag: lag) ?? contributions.first?.payload
    }

    /// What the members with a policy of their own come to.
    private func accumulated(model: Int, models: Models) -> [MemberPath: [UInt8]] {
        guard !accumulation.isEmpty else { return [:] }
        return accumulation.values { models.merge(of: $0, model: model) }
    }

    /// Whether the object, as it is known, says of itself that it is deleted.
    public func isDeleted(model: String, models: Models, lag: Int64) -> Bool {
        guard let index = models.index(of: model), models.haveDeletions, let first = contributions.first,
            let value = JSONSlice(mergedPayload(model: model, models: models, lag: lag) ?? first.payload)
        else { return false }
        return models.compiled[models.concrete(of: index, for: value)].reading.deletedWhen?.holds(for: value) ?? false
    }

    /// The newest value of a member, given as a property's name or a key path.
    ///
    /// An object within the object is given as the newest contribution shows it, its own members perhaps not at their
    /// newest.
    public func newest(_ member: String, model: String, models: Models, lag: Int64) -> NewestMember {
        guard let index = models.index(of: model) else { return .unknown }
        let declaration = models.declarations[index]
        let from = declaration.properties.first { $0.name == member }?.from ?? member
        guard let components = KeyPathSyntax.steps(of: from)?.names else { return .unknown }
        if let value = accumulated(model: index, models: models)[MemberPath(components)] { return .value(value) }
        let resolved = ContributionTable(contributions, model: index, models: models, lag: lag).resolved
        switch resolved[MemberPath(components)] {
        case .value(let member): return .value(Array(member.value.bytes))
        case .disputed: return .disputed
        case nil: return .unknown
        }
    }

    /// The newest known JSON of the object for people: references shown as bare identities.
    ///
    /// Nil when nothing is known. `identity` gives the JSON that an object referred to is identified by; without it, or
    /// if it knows nothing, what reads like an integer is shown as one.
    public func plainJSON(
        model: String,
        models: Models,
        lag: Int64,
        identity: (ObjectName) -> [UInt8]? = { _ in nil }
    ) -> [UInt8]? {
        guard let first = contributions.first else { return nil }
        let payload = mergedPayload(model: model, models: models, lag: lag) ?? first.payload
        return Reference.plain(payload) { name in
            if let known = identity(name) { return known }
            guard let index = models.index(of: name.model), models.compiled[index].distinguishesTypes else {
                return nil
            }
            var bare: [UInt8] = []
            Reference.appendStrict(name.identity, to: &bare)
            return bare
        }
    }

    /// The members on which versions that one answer shows of an object disagree: the JSON pointer of each within the
    /// object, without the leading slash, and the positions of two versions that differ.
    public static func disagreements(
        among payloads: [[UInt8]],
        model: String,
        models: Models
    ) -> [(member: String, one: Int, other: Int)] {
        guard let index = models.index(of: model) else { return [] }
        var known: [MemberPath: (position: Int, member: ObservedMember)] = [:]
        var found: [MemberPath: (one: Int, other: Int)] = [:]
        for (position, payload) in payloads.enumerated() {
            guard let value = JSONSlice(payload) else { continue }
            for (path, member) in ObservedMembers(value, model: index, models: models).members {
                guard !member.isRepeated, found[path] == nil else { continue }
                guard let first = known[path] else {
                    known[path] = (position, member)
                    continue
                }
                if !first.member.agrees(with: member) { found[path] = (first.position, position) }
            }
        }
        return found.map { ($0.key.text, $0.value.one, $0.value.other) }.sorted { $0.0 < $1.0 }
    }

    /// The object's identity in the spelling of the upstream; nil for identities of several members.
    public func identityJSON(model: String, models: Models) -> [UInt8]? {
        guard let index = models.index(of: model), models.compiled[index].hasOwnIdentity,
            models.compiled[index].identityPaths.count == 1, let payload = contributions.first?.payload,
            let value = JSONSlice(payload)
        else { return nil }
        let members = ObservedMembers(value, model: index, models: models).members
        return models.compiled[index].identityMembers.lazy.compactMap { members[$0] }.first.map {
            Array($0.value.bytes)
        }
    }

    /// The newest of everything, for composing.
    func resolved(
        model: Int,
        models: Models,
        lag: Int64,
        apartFrom strangers: [MemberPath: Set<Int64>] = [:]
    ) -> ResolvedObject {
        ContributionTable(contributions, model: model, models: models, lag: lag).resolved(apartFrom: strangers)
    }
}

/// What is known of one member of an object.
public enum NewestMember: Sendable, Equatable {
    /// Its newest value as raw JSON; objects in it are reference literals.
    case value([UInt8])
    /// No answer showed it.
    case unknown
    /// Answers that overlapped in time disagree: each document keeps its own literal.
    case disputed
}
