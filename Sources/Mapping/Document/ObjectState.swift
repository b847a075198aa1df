/// What is known of one object: each declared member at its settled value, and when that was seen (law 3).
public struct ObjectState: Sendable, Equatable {
    /// The version that gives the settled values their shape, as it was last seen; nil: nothing is known.
    public var base: Contribution?
    /// The settled values in payload form, where they are not what the base version shows.
    ///
    /// Undeclared members are as the base shows them.
    public var merged: [UInt8]?
    /// When the settled values were seen.
    public var knowledge: Knowledge
    /// What is known of members with a policy of their own.
    public var gathered = GatheredValues()
    /// Since when the object has been known to say of itself that it is deleted; nil where it does not.
    public var deletedSince: Int64?
    /// What is known besides: that a write may have changed the object, or that it is gone.
    public var mark: ObjectMark?

    /// The state as it was stored.
    public init(
        base: Contribution? = nil,
        knowledge: Knowledge = .whole(isEmbedded: false),
        mark: ObjectMark? = nil
    ) {
        (self.base, self.knowledge, self.mark) = (base, knowledge, mark)
    }

    /// The settled values; nil when nothing is known.
    public var payload: [UInt8]? { merged ?? base?.payload }

    /// What a merge has done.
    public struct Merge: Sendable, Equatable {
        /// Whether some member became known, or has another value by JSON's equality.
        public var isChanged = false
        /// Members known before that have other values now.
        public var changes: [MemberChange] = []
        /// Whether a doubt was opened or settled.
        public var hasDoubtChanged = false
        /// Whether it says of itself otherwise than before that it is deleted.
        public var hasDeletionChanged = false
        /// A write cannot be ordered against what others have read: nothing older than this time may be served.
        public var unanswered: Int64?
    }

    /// Takes what one response shows of the object, once or several times; all have one observation sequence.
    ///
    /// - Parameters:
    ///   - new: the versions that the response shows.
    ///   - model: the object's model; if it is not declared, only the newest version is kept.
    ///   - asksFrom: from when on documents that show a member are asked for again which this response puts in doubt,
    ///     given its pointer and the challenger; without it, at once.
    public mutating func merge(
        _ new: [Contribution],
        model: String,
        models: Models,
        lag: Lag,
        asksFrom: (_ member: String, _ challenger: [UInt8]) -> Int64 = { _, _ in .min }
    ) -> Merge {
        guard let index = models.index(of: model) else {
            guard let last = new.last else { return Merge() }
            (base, merged, knowledge) = (last, nil, .whole(isEmbedded: last.isEmbedded))
            return Merge(isChanged: true)
        }
        if !models.plain[index] { accumulate(new, model: index, models: models) }
        if base == nil, new.count == 1 {
            (base, merged, knowledge) = (new[0], nil, .whole(isEmbedded: new[0].isEmbedded))
            noteDeletion(by: new[0], model: model, models: models, lag: lag)
            return Merge(isChanged: true, hasDeletionChanged: deletedSince != nil)
        }
        if confirms(new, lag: lag) { return Merge() }
        guard let seen = Sighting(new, model: index, models: models, lag: lag) else { return Merge() }
        var known = known(model: index, models: models, lag: lag)
        known.take(seen, lag: lag, asksFrom: asksFrom)
        settle(known, seen: (new, seen), model: index, models: models, lag: lag)
        let wasDeleted = deletedSince != nil
        noteDeletion(by: new[0], model: model, models: models, lag: lag)
        let effect = known.effect
        return Merge(
            isChanged: effect.isChanged,
            changes: effect.changes,
            hasDoubtChanged: effect.hasDoubtChanged,
            hasDeletionChanged: wasDeleted != (deletedSince != nil),
            unanswered: effect.unanswered
        )
    }

    private mutating func noteDeletion(by seen: Contribution, model: String, models: Models, lag: Lag) {
        guard models.haveDeletions else { return }
        if !isDeleted(model: model, models: models) {
            deletedSince = nil
        } else if deletedSince == nil {
            deletedSince = seen.lo(lag: lag)
        }
    }

    /// The most frequent case, done without reading JSON: one version seen again.
    private mutating func confirms(_ new: [Contribution], lag: Lag) -> Bool {
        guard merged == nil, new.count == 1, let base, case .whole(let wasEmbedded) = knowledge,
            base.payload == new[0].payload
        else { return false }
        let (old, seen) = (base.observation, new[0].observation)
        let isLater = new[0].lo(lag: lag) >= old.lo(isEmbedded: wasEmbedded, lag: lag) && seen.end >= old.end
        guard isLater, seen.sequence != old.sequence else { return false }
        self.base = new[0]
        knowledge = .whole(isEmbedded: new[0].isEmbedded)
        return true
    }

    func known(model: Int, models: Models, lag: Lag) -> KnownMembers {
        guard let base, let payload = payload.flatMap({ JSONSlice($0) }) else { return KnownMembers() }
        return KnownMembers(payload, knowledge, base: base, model: model, models: models, lag: lag)
    }

    /// Writes down what is known now.
    private mutating func settle(
        _ known: KnownMembers,
        seen: (contributions: [Contribution], sighting: Sighting)? = nil,
        model: Int,
        models: Models,
        lag: Lag
    ) {
        // A version that alone says all there is gives the shape.
        if let (contributions, sighting) = seen,
            let complete = sighting.versions.lastIndex(where: { known.isWhole($0) })
        {
            (base, merged) = (contributions[complete], nil)
        } else {
            // Else the newest gives the shape, unless an older one says it all.
            if let last = seen?.contributions.last,
                base.map({ $0.observation.end <= last.observation.end && !known.isWhole($0, model: model, models) })
                    ?? true
            {
                base = last
            }
            merged = known.payload(in: base?.payload ?? [], model: model, models: models)
            if merged == base?.payload { merged = nil }
        }
        guard let base else { return }
        knowledge = known.knowledge(base: base, model: model, models: models, lag: lag)
    }

    /// Forgets what a write or a deletion has outdated, unless all of it is: that is kept for people who ask.
    public mutating func drop(outdatedBy mark: ObjectMark, model: String, models: Models, lag: Lag) {
        guard let index = models.index(of: model), base != nil else { return }
        var known = known(model: index, models: models, lag: lag)
        let count = known.members.count
        known.drop(until: mark.time)
        guard !known.members.isEmpty, known.members.count < count else { return }
        settle(known, model: index, models: models, lag: lag)
    }

    // MARK: Members with a policy of their own

    private mutating func accumulate(_ new: [Contribution], model: Int, models: Models) {
        for contribution in new {
            guard let value = JSONSlice(contribution.payload) else { continue }
            gathered.take(ObservedMembers(value, model: model, models: models), from: contribution)
        }
    }

    /// What the members with a policy of their own come to.
    private func accumulated(model: Int, models: Models) -> [MemberPath: [UInt8]] {
        guard !gathered.isEmpty else { return [:] }
        return gathered.values { models.merge(of: $0, model: model) }
    }

    // MARK: Reading

    /// Whether nothing that is known of the object is newer than its mark.
    public func isOutdated(lag: Lag) -> Bool { mark.map { isOutdated(by: $0, lag: lag) } ?? false }

    /// Whether nothing that is known of the object is newer than a mark.
    public func isOutdated(by mark: ObjectMark, lag: Lag) -> Bool { newest(lag: lag).map { $0 <= mark.time } ?? true }

    /// The latest `lo` of what is known.
    private func newest(lag: Lag) -> Int64? {
        switch knowledge {
        case .whole(let isEmbedded): base?.observation.lo(isEmbedded: isEmbedded, lag: lag)
        case .groups(let groups): groups.map(\.clock.lo).max()
        }
    }

    /// The latest time at which what is known was true.
    public var lastSeen: Int64? {
        switch knowledge {
        case .whole: base?.observation.end
        case .groups(let groups): groups.map(\.clock.hi).max()
        }
    }

    /// The newest known members, references as such; nil when nothing is known.
    ///
    /// Members with a policy of their own are as it wants them; what fails its checks is left out unless a sound value is
    /// known.
    public func newestPayload(model: String, models: Models) -> [UInt8]? {
        guard let index = models.index(of: model), !models.plain[index], let payload,
            let value = JSONSlice(payload)
        else { return payload }
        let observed = ObservedMembers(value, model: index, models: models)
        var resolved = ResolvedObject(observed.sound, model: index)
        for (path, value) in accumulated(model: index, models: models) { resolved.put(value, at: path) }
        var writer = MergedWriter(resolved, leavingOut: observed.quarantined)
        writer.write(value, at: .root)
        return writer.output
    }

    /// Whether the object, as it is known, says of itself that it is deleted.
    public func isDeleted(model: String, models: Models) -> Bool {
        guard models.haveDeletions, let payload = newestPayload(model: model, models: models) else { return false }
        return models.saysDeleted(payload, of: model)
    }

    /// The newest known JSON of the object for people: references shown as bare identities.
    ///
    /// Nil when nothing is known. `identity` gives the JSON that an object referred to is identified by; without it, or
    /// if it knows nothing, what reads like an integer is shown as one.
    public func plainJSON(
        model: String,
        models: Models,
        identity: (ObjectName) -> [UInt8]? = { _ in nil }
    ) -> [UInt8]? {
        guard let payload = newestPayload(model: model, models: models) else { return nil }
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

    /// The members on which versions that one response shows of an object disagree: the JSON pointer of each within the
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
            for (path, member) in ObservedMembers(value, model: index, models: models).sound
            where found[path] == nil {
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
            models.compiled[index].identityPaths.count == 1, let value = payload.flatMap({ JSONSlice($0) })
        else { return nil }
        let members = ObservedMembers(value, model: index, models: models).members
        return models.compiled[index].identityMembers.lazy.compactMap { members[$0] }.first.map {
            Array($0.value.bytes)
        }
    }

    /// When a member was last settled: the clock's `lo`; for composing.
    func lo(of path: MemberPath, lag: Lag) -> Int64 {
        switch knowledge {
        case .whole(let isEmbedded): base?.observation.lo(isEmbedded: isEmbedded, lag: lag) ?? .min
        case .groups(let groups):
            (groups.first { $0.members?.contains(path.text) == true } ?? groups.first { $0.members == nil })?.clock.lo
                ?? .min
        }
    }
}

extension ObjectState {
    /// Where each member that is known of the object comes from.
    ///
    /// For people who ask, not for the path of a request.
    ///
    /// - Parameter others: what documents show of the object besides, the newest first: members that belong to their
    ///   responses may be seen nowhere else.
    public func provenance(model: String, models: Models, lag: Lag, others: [Contribution] = []) -> Provenance {
        let shown = (base.map { [$0] } ?? []) + others
        guard let index = models.index(of: model) else {
            return Provenance(members: Self.ownMembers(in: shown, model: nil, models: models))
        }
        let names = PropertyNames(model: index, models: models)
        var members =
            settledMembers(model: index, models: models, lag: lag) + gatheredMembers(model: index, models: models)
        for contribution in shown { quarantine(&members, contribution, model: index, models: models) }
        for position in members.indices {
            members[position].properties = names[members[position].pointer]
            guard isOutdated(lag: lag) else { continue }
            members[position].moves = false
            if members[position].standing != .quarantined { members[position].standing = .outdated }
        }
        members.sort { (names.position($0), $0.pointer) < (names.position($1), $1.pointer) }
        let declared = Set(members.map(\.pointer))
        let own = Self.ownMembers(in: shown, model: index, models: models)
        return Provenance(members: members + own.filter { !declared.contains($0.pointer) })
    }

    /// The members that belong to their responses, each as the first version that has it shows it.
    private static func ownMembers(in shown: [Contribution], model: Int?, models: Models) -> [Provenance.Member] {
        var seen: Set<MemberPath> = []
        return shown.flatMap { contribution -> [Provenance.Member] in
            guard let object = JSONSlice(contribution.payload) else { return [] }
            let observed = model.flatMap { ObservedMembers(object, model: $0, models: models, withRest: true).rest }
            let own = observed ?? object.members.map { ($0.name, $0.value, .undeclared) }
            return own.filter { seen.insert($0.path).inserted }.map { path, value, standing in
                let value = plain(value)
                var member = Provenance.Member(pointer: "/" + path.text, standing: standing, value: value)
                member.shown = Provenance.Sighting(value: value, contribution.observation)
                return member
            }
        }
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

    private func gatheredMembers(model: Int, models: Models) -> [Provenance.Member] {
        gathered.items.compactMap { path, items in
            guard let policy = models.merge(of: path, model: model), policy != .latest, policy != .replace else {
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
    private func quarantine(
        _ members: inout [Provenance.Member],
        _ contribution: Contribution,
        model: Int,
        models: Models
    ) {
        guard !models.plain[model], let object = JSONSlice(contribution.payload) else { return }
        for path in ObservedMembers(object, model: model, models: models).quarantined {
            guard let names = path.names, let value = object.value(at: names[...]) else { continue }
            let sighting = Provenance.Sighting(value: Self.plain(value), contribution.observation)
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

extension Provenance.Sighting {
    fileprivate init(value: [UInt8], _ observation: Observation) {
        self.init(value: value, source: observation.sequence, time: observation.end)
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

extension ObjectState {
    /// The object as other documents may show it that only name it: the settled value of each member that is shared and has no
    /// policy of its own, references as bare identities.
    ///
    /// Nil where that is not known: nothing was observed since a write or a deletion, a member is in doubt, or the object
    /// says of itself that it is deleted.
    ///
    /// - Parameter identity: the JSON that an object referred to is identified by.
    public func sharedJSON(
        model: String,
        models: Models,
        lag: Lag,
        identity: (ObjectName) -> [UInt8]?
    ) -> [UInt8]? {
        guard let index = models.index(of: model), base != nil, !isOutdated(lag: lag),
            !isDeleted(model: model, models: models)
        else { return nil }
        var members: [MemberPath: [(path: MemberPath, member: ObservedMember)]] = [:]
        for (path, known) in known(model: index, models: models, lag: lag).members {
            guard known.settled.doubt == nil else { return nil }
            members[path.parent, default: []].append((path, known.settled.value))
        }
        var output: [UInt8] = []
        func write(_ parent: MemberPath) {
            output.append(UInt8(ascii: "{"))
            let start = output.count
            for (path, member) in (members[parent] ?? []).sorted(by: { $0.path.text < $1.path.text }) {
                guard let name = path.lastName else { continue }
                if output.count > start { output.append(UInt8(ascii: ",")) }
                JSONString.append(name, to: &output)
                output.append(UInt8(ascii: ":"))
                if member.isContainer { write(path) } else { output.append(contentsOf: member.value.bytes) }
            }
            output.append(UInt8(ascii: "}"))
        }
        write(.root)
        return Reference.plain(output, identity: identity)
    }
}
