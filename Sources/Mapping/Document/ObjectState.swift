/// What is known of one object: the settled value of each declared member, and when it was observed (law 3).
public struct ObjectState: Sendable, Equatable {
    /// The last seen version that gives the settled values their shape; nil if nothing is known.
    public var base: Contribution?
    /// The settled values in payload form, if the base version shows others; undeclared members are as in the base.
    public var merged: [UInt8]?
    public var knowledge: Knowledge
    /// The values of members with the policy `keep`, `union` or `sum`.
    public var gathered = GatheredValues()
    /// Since when the object has shown itself to be deleted; nil if it does not.
    public var deletedSince: Int64?
    /// Set if a write may have changed the object, or if it is deleted.
    public var mark: ObjectMark?

    /// Creates a state from stored parts.
    public init(base: Contribution? = nil, knowledge: Knowledge = .whole(isEmbedded: false), mark: ObjectMark? = nil) {
        (self.base, self.knowledge, self.mark) = (base, knowledge, mark)
    }

    /// The settled values; nil if nothing is known.
    public var payload: [UInt8]? { merged ?? base?.payload }

    /// The effect of a merge.
    public struct Merge: Sendable, Equatable {
        /// Whether a member became known or changed its value, by JSON's equality.
        public var isChanged = false
        public var changes: [MemberChange] = []
        public var hasDoubtChanged = false
        /// Whether the object started or stopped showing itself to be deleted.
        public var hasDeletionChanged = false
        /// Set if a write cannot be ordered against other observations: nothing older than this time may be served.
        public var unordered: Int64?
    }

    /// Merges what one response shows of the object, at one place or several.
    ///
    /// All versions have the same observation sequence.
    ///
    /// - Parameters:
    ///   - new: the versions that the response shows.
    ///   - model: the object's model. If it is not declared, only the newest version is kept.
    ///   - history: what is known of earlier words and writes.
    ///   - asksFrom: called for each member that this response puts in doubt, with its pointer and the challenger.
    ///     Returns the time from which documents that show the member are fetched again. By default they are fetched at
    ///     once.
    public mutating func merge(
        _ new: [Contribution],
        model: String,
        models: Models,
        lag: Lag,
        history: ObjectHistory = ObjectHistory(),
        asksFrom: (_ member: String, _ challenger: [UInt8]) -> Int64 = { _, _ in 0 }
    ) -> Merge {
        guard let index = models.index(of: model) else {
            guard let last = new.last else { return Merge() }
            (base, merged, knowledge) = (last, nil, .whole(isEmbedded: last.isEmbedded))
            return Merge(isChanged: true)
        }
        // A delivery gives an object neither its first values nor its shape, and it is no word about its deletion.
        let isDelivery = new.first?.observation.kind == .delivery
        if isDelivery, base == nil { return Merge() }
        let reader = reader(of: index, models, with: new)
        // Members with a policy of their own.
        if !models.plain[index], !isDelivery {
            for contribution in new {
                guard let value = JSONSlice(contribution.payload) else { continue }
                gathered.merge(reader.observed(value), from: contribution)
            }
        }
        if base == nil, new.count == 1 {
            (base, merged, knowledge) = (new[0], nil, .whole(isEmbedded: new[0].isEmbedded))
            noteDeletion(by: new[0], model: model, models: models, lag: lag)
            return Merge(isChanged: true, hasDeletionChanged: deletedSince != nil)
        }
        if confirms(new, lag: lag) { return Merge() }
        guard let seen = Sighting(new, reader, lag: lag) else { return Merge() }
        var known = KnownMembers(self, reader, lag: lag)
        known.merge(seen, history, asksFrom: asksFrom)
        if seen.isWritten { known.doubtMembersMissing(in: seen) }
        keep(known, seen: isDelivery ? nil : (new, seen))
        let wasDeleted = deletedSince != nil
        if !isDelivery { noteDeletion(by: new[0], model: model, models: models, lag: lag) }
        var effect = known.effect
        effect.hasDeletionChanged = wasDeleted != (deletedSince != nil)
        return effect
    }

    private mutating func noteDeletion(by seen: Contribution, model: String, models: Models, lag: Lag) {
        guard models.haveDeletions else { return }
        if !isDeleted(model: model, models: models) {
            deletedSince = nil
        } else if deletedSince == nil {
            deletedSince = seen.lo(lag: lag)
        }
    }

    /// Handles the most frequent case, the same version seen again, without reading JSON.
    private mutating func confirms(_ new: [Contribution], lag: Lag) -> Bool {
        guard merged == nil, new.count == 1, let base, case .whole(let wasEmbedded) = knowledge,
            base.payload == new[0].payload
        else { return false }
        let (old, seen) = (base.observation, new[0].observation)
        let isLater = new[0].lo(lag: lag) >= old.lo(isEmbedded: wasEmbedded, lag: lag) && seen.end >= old.end
        // What is given confirms a value, but takes no response's place.
        guard isLater, seen.sequence != old.sequence, seen.kind != .seed else { return false }
        self.base = new[0]
        knowledge = .whole(isEmbedded: new[0].isEmbedded)
        return true
    }

    private mutating func keep(
        _ known: KnownMembers,
        seen: (contributions: [Contribution], sighting: Sighting)? = nil
    ) {
        // A version that shows everything by itself gives the shape.
        if let (contributions, sighting) = seen,
            let complete = sighting.versions.lastIndex(where: { known.isWhole($0) })
        {
            (base, merged) = (contributions[complete], nil)
        } else {
            // Otherwise the newest version does, unless an older one is complete.
            if let last = seen?.contributions.last,
                base.map({ $0.observation.end <= last.observation.end && !known.isWhole($0.payload) }) ?? true
            {
                base = last
            }
            merged = known.payload(in: base?.payload ?? [])
            if merged == base?.payload { merged = nil }
        }
        guard let base else { return }
        knowledge = known.knowledge(base: base)
    }

    /// Forgets the members that a write or deletion has outdated; if that is all of them, they are kept for display.
    public mutating func drop(outdatedBy mark: ObjectMark, model: String, models: Models, lag: Lag) {
        guard let index = models.index(of: model), base != nil else { return }
        var known = KnownMembers(self, reader(of: index, models), lag: lag)
        let count = known.members.count
        known.drop(until: mark.time)
        guard !known.members.isEmpty, known.members.count < count else { return }
        keep(known)
    }

    /// Reads versions of the object; those known, and new ones, say of which model of a cluster it is.
    func reader(of model: Int, _ models: Models, with new: [Contribution] = []) -> ObjectReader {
        guard models.choosing[model] else { return ObjectReader(models: models, model: model) }
        let versions = ([payload].compactMap(\.self) + new.map(\.payload)).compactMap { JSONSlice($0) }
        return ObjectReader(models: models, model: model, known: versions)
    }

    // MARK: Reading

    /// Whether nothing known of the object is newer than its mark.
    public func isOutdated(lag: Lag) -> Bool { mark.map { isOutdated(by: $0, lag: lag) } ?? false }

    /// Whether a write may have changed what nothing has shown since: all of the object, or a part of it.
    public var hasUnseenWrite: Bool {
        if case .unobserved = mark { return true }
        return knowledge.doubts.contains { $0.asksFrom == Knowledge.Doubt.always }
    }

    /// Whether nothing known of the object is newer than a mark.
    public func isOutdated(by mark: ObjectMark, lag: Lag) -> Bool { newest(lag: lag).map { $0 <= mark.time } ?? true }

    /// Whether everything known of the object is newer than a mark.
    public func isNewer(than mark: ObjectMark, lag: Lag) -> Bool {
        switch knowledge {
        case .whole: !isOutdated(by: mark, lag: lag)
        case .groups(let groups): groups.allSatisfy { $0.clock.lo > mark.time }
        }
    }

    /// The latest `lo` of any member.
    private func newest(lag: Lag) -> Int64? {
        switch knowledge {
        case .whole(let isEmbedded): base?.observation.lo(isEmbedded: isEmbedded, lag: lag)
        case .groups(let groups): groups.map(\.clock.lo).max()
        }
    }

    /// The latest time at which a known value was true.
    public var lastSeen: Int64? {
        switch knowledge {
        case .whole: base?.observation.end
        case .groups(let groups): groups.map { max($0.clock.lo, $0.clock.hi) }.max()
        }
    }

    /// The newest known members, with references.
    ///
    /// Nil if nothing is known. Members with a policy of their own have their merged values. Values that fail their
    /// checks are left out unless a sound value is known.
    public func newestPayload(model: String, models: Models) -> [UInt8]? {
        // Earlier versions of Larder have stored objects of bodies in other encodings.
        guard let payload, payload.isUTF8 else { return nil }
        guard let index = models.index(of: model), !models.plain[index], let value = JSONSlice(payload) else {
            return payload
        }
        let observed = ObservedMembers(value, model: index, models: models)
        var members = observed.sound
        let merged = gathered.values { models.merge(of: $0, model: index) }
        for (path, value) in merged { members.put(value, at: path) }
        return MergedWriter.json(members, inShapeOf: value, leavingOut: observed.quarantined)
    }

    /// The settled values, with those that put them in doubt in their place; nil if there are none.
    public func challengedPayload(model: String, models: Models) -> [UInt8]? {
        guard let index = models.index(of: model), case .groups(let groups) = knowledge,
            groups.contains(where: { $0.doubt?.value.isEmpty == false }), let value = payload.flatMap({ JSONSlice($0) })
        else { return nil }
        var members = ObservedMembers(value, model: index, models: models).sound
        for group in groups {
            guard let doubt = group.doubt, let member = group.members?.first else { continue }
            members.put(doubt.value, at: MemberPath(pointer: member))
        }
        return MergedWriter.json(members, inShapeOf: value)
    }

    /// Whether the object's known values show it to be deleted.
    public func isDeleted(model: String, models: Models) -> Bool {
        guard models.haveDeletions, let payload = newestPayload(model: model, models: models) else { return false }
        return models.saysDeleted(payload, of: model)
    }

    /// The newest known JSON of the object for display, with references as bare identities.
    ///
    /// Nil if nothing is known. `identity` returns the JSON by which the upstream identifies a referenced object. If it
    /// returns nil, text that reads like an integer is shown as one.
    public func plainJSON(
        model: String,
        models: Models,
        identity: (ObjectName) -> [UInt8]? = { _ in nil }
    ) -> [UInt8]? {
        guard let payload = newestPayload(model: model, models: models) else { return nil }
        return Reference.plain(payload) { name in
            if let known = identity(name) { return known }
            return models.distinguishesTypes(name.model) ? Reference.strict(name.identity) : nil
        }
    }

    /// The members on which the versions in one response disagree.
    ///
    /// Each has its JSON pointer within the object, without the leading slash, and the positions of two versions that
    /// differ.
    public static func disagreements(
        among payloads: [[UInt8]],
        model: String,
        models: Models
    ) -> [(member: String, one: Int, other: Int)] {
        guard let index = models.index(of: model) else { return [] }
        var known: [MemberPath: (position: Int, member: ObservedMember)] = [:]
        var found: [MemberPath: (one: Int, other: Int)] = [:]
        let versions = models.choosing[index] ? payloads.compactMap { JSONSlice($0) } : []
        for (position, payload) in payloads.enumerated() {
            guard let value = JSONSlice(payload) else { continue }
            let observed = ObservedMembers(value, model: index, models: models, known: versions)
            for (path, member) in observed.sound where found[path] == nil {
                guard let first = known[path] else {
                    known[path] = (position, member)
                    continue
                }
                if !first.member.agrees(with: member) { found[path] = (first.position, position) }
            }
        }
        return found.map { ($0.key.text, $0.value.one, $0.value.other) }.sorted { $0.0 < $1.0 }
    }

    /// The object's identity as the upstream spells it; nil for identities of several members.
    public func identityJSON(model: String, models: Models) -> [UInt8]? {
        models.index(of: model).flatMap { index in payload.flatMap(models.compiled[index].identityLiteral) }
    }

    /// The `lo` of a member's clock, for composing.
    func lo(of path: MemberPath, lag: Lag) -> Int64 {
        guard case .whole(let isEmbedded) = knowledge else { return group(of: path)?.clock.lo ?? .min }
        return base?.observation.lo(isEmbedded: isEmbedded, lag: lag) ?? .min
    }

    /// The observation that settled or last confirmed a member.
    func source(of path: MemberPath) -> Int64? {
        if case .whole = knowledge { return base?.observation.sequence }
        return group(of: path)?.source
    }

    /// The observations that settled or last confirmed its values.
    public var sources: Set<Int64> {
        guard case .groups(let groups) = knowledge else { return base.map { [$0.observation.sequence] } ?? [] }
        return Set(groups.map(\.source))
    }

    private func group(of path: MemberPath) -> Knowledge.Group? {
        guard case .groups(let groups) = knowledge else { return nil }
        return groups.first { $0.members?.contains(path.text) == true } ?? groups.first { $0.members == nil }
    }
}

extension ObjectState {
    /// The object for documents that only refer to it: the settled values of its shared members, references as bare
    /// identities.
    ///
    /// Members with a policy of their own are left out. Nil if the current values are unknown: nothing was observed
    /// since a write or deletion, a member is in doubt, or the object shows itself to be deleted.
    ///
    /// - Parameter identity: the JSON by which the upstream identifies a referenced object.
    public func sharedJSON(model: String, models: Models, lag: Lag, identity: (ObjectName) -> [UInt8]?) -> [UInt8]? {
        sharedPayload(model: model, models: models, lag: lag).flatMap { shared in
            shared.isInDoubt ? nil : Reference.plain(shared.bytes, identity: identity)
        }
    }

    /// The same with references, and with the settled values of members in doubt.
    public func sharedPayload(model: String, models: Models, lag: Lag) -> (bytes: [UInt8], isInDoubt: Bool)? {
        guard let index = models.index(of: model), payload?.isUTF8 == true, !isOutdated(lag: lag),
            !isDeleted(model: model, models: models)
        else { return nil }
        let known = KnownMembers(self, reader(of: index, models), lag: lag).members
        // Of an embedded object, too, only what is known as its member.
        let nothing = JSONSlice(Array("{}".utf8), 0..<2)
        let members = known.mapValues { known -> ObservedMember in
            var member = known.settled.value
            if member.isContainer { member.value = nothing }
            return member
        }
        let json = MergedWriter.json(members, inShapeOf: nothing)
        return (json, known.values.contains { $0.settled.doubt != nil })
    }
}
