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

    package init(base: Contribution? = nil, knowledge: Knowledge = .whole(isEmbedded: false), mark: ObjectMark? = nil) {
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
    ///   - model: the object's model. If it is not declared, only the newest version is kept.
    ///   - asksFrom: called for each member that this response puts in doubt; returns the time from which documents that
    ///     show the member are fetched again. By default they are fetched at once.
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
            set(last)
            return Merge(isChanged: true)
        }
        // A delivery gives an object neither its first values nor its shape, and it is no word about its deletion.
        let isDelivery = new.first?.observation.kind == .delivery
        if isDelivery, base == nil { return Merge() }
        let reader = reader(of: index, models, with: new)
        // Members with a policy of their own.
        for contribution in new where !models.plain[index] && !isDelivery {
            guard let value = JSONSlice(contribution.payload) else { continue }
            gathered.merge(reader.observed(value), from: contribution)
        }
        // Of what is shown for the first time, a deletion is always news.
        let wasDeleted = base != nil && deletedSince != nil
        var effect = Merge(isChanged: true)
        if base == nil, new.count == 1 {
            set(new[0])
        } else {
            guard !confirms(new, lag: lag), let seen = Sighting(new, reader, lag: lag) else { return Merge() }
            var known = KnownMembers(self, reader, lag: lag)
            known.merge(seen, history, asksFrom: asksFrom)
            if seen.isWritten { known.doubtMembersMissing(in: seen) }
            set(known, seen: isDelivery ? nil : (new, seen))
            effect = known.effect
        }
        if !isDelivery, models.haveDeletions {
            let isDeleted = isDeleted(model: model, models: models)
            deletedSince = isDeleted ? deletedSince ?? new[0].lo(lag: lag) : nil
        }
        effect.hasDeletionChanged = wasDeleted != (deletedSince != nil)
        return effect
    }

    /// Makes one version all that is known.
    private mutating func set(_ version: Contribution) {
        (base, merged, knowledge) = (version, nil, .whole(isEmbedded: version.isEmbedded))
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
        set(new[0])
        return true
    }

    private mutating func set(_ known: KnownMembers, seen: (versions: [Contribution], sighting: Sighting)? = nil) {
        // A version that shows everything by itself gives the shape.
        if let seen, let complete = seen.sighting.versions.lastIndex(where: { known.isWhole($0) }) {
            (base, merged) = (seen.versions[complete], nil)
        } else {
            // Otherwise the newest version does, unless an older one is complete.
            if let last = seen?.versions.last {
                let isKept = base.map { $0.observation.end > last.observation.end || known.isWhole($0.payload) }
                if isKept != true { base = last }
            }
            merged = known.payload(in: base?.payload ?? [])
            if merged == base?.payload { merged = nil }
        }
        if let base { knowledge = known.knowledge(base: base) }
    }

    /// Forgets the members that a write or deletion has outdated; if that is all of them, they are kept for display.
    public mutating func drop(outdatedBy mark: ObjectMark, model: String, models: Models, lag: Lag) {
        guard let index = models.index(of: model), base != nil else { return }
        var known = KnownMembers(self, reader(of: index, models), lag: lag)
        let count = known.members.count
        known.drop(until: mark.time)
        if !known.members.isEmpty, known.members.count < count { set(known) }
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
        mark?.isTombstone == false || knowledge.doubts.contains { $0.asksFrom == Knowledge.Doubt.always }
    }

    /// Whether nothing known of the object is newer than a mark.
    public func isOutdated(by mark: ObjectMark, lag: Lag) -> Bool {
        guard case .whole(let isEmbedded) = knowledge else {
            return knowledge.groups.allSatisfy { $0.clock.lo <= mark.time }
        }
        return base.map { $0.observation.lo(isEmbedded: isEmbedded, lag: lag) <= mark.time } ?? true
    }

    /// Whether everything known of the object is newer than a mark.
    public func isNewer(than mark: ObjectMark, lag: Lag) -> Bool {
        !isOutdated(by: mark, lag: lag) && knowledge.groups.allSatisfy { $0.clock.lo > mark.time }
    }

    /// The latest time at which a known value was true.
    public var lastSeen: Int64? {
        guard case .groups(let groups) = knowledge else { return base?.observation.end }
        return groups.map { max($0.clock.lo, $0.clock.hi) }.max()
    }

    /// The newest known members, with references.
    ///
    /// Members with a policy of their own have their merged values. Values that fail their checks are left out unless a
    /// sound value is known.
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
        let doubts = knowledge.groups.filter { $0.doubt?.value.isEmpty == false }
        guard let index = models.index(of: model), !doubts.isEmpty, let value = payload.flatMap({ JSONSlice($0) })
        else { return nil }
        var members = ObservedMembers(value, model: index, models: models).sound
        for group in doubts {
            guard let doubt = group.doubt, let member = group.members?.first else { continue }
            members.put(doubt.value, at: MemberPath(pointer: member))
        }
        return MergedWriter.json(members, inShapeOf: value)
    }

    /// Whether the object's known values show it to be deleted.
    public func isDeleted(model: String, models: Models) -> Bool {
        models.haveDeletions
            && newestPayload(model: model, models: models).map { models.saysDeleted($0, of: model) } ?? false
    }

    /// The newest known JSON of the object for display, with references as bare identities.
    ///
    /// `identity` returns the JSON by which the upstream identifies a referenced object. If it returns nil, text that
    /// reads like an integer is shown as one.
    public func plainJSON(
        model: String,
        models: Models,
        identity: (ObjectName) -> [UInt8]? = { _ in nil }
    ) -> [UInt8]? {
        guard let payload = newestPayload(model: model, models: models) else { return nil }
        return Reference.plain(payload) { name in
            identity(name) ?? (models.distinguishesTypes(name.model) ? Reference.strict(name.identity) : nil)
        }
    }

    /// The members on which the versions in one response disagree: their JSON pointers within the object, without the
    /// leading slash, and the positions of two versions that differ.
    public static func disagreements(
        among payloads: [[UInt8]],
        model: String,
        models: Models
    ) -> [(member: String, one: Int, other: Int)] {
        guard let index = models.index(of: model) else { return [] }
        let versions = models.choosing[index] ? payloads.compactMap { JSONSlice($0) } : []
        let reader = ObjectReader(models: models, model: index, known: versions)
        var known: [MemberPath: (position: Int, member: ObservedMember)] = [:]
        var found: [MemberPath: (one: Int, other: Int)] = [:]
        for (position, payload) in payloads.enumerated() {
            for (path, member) in reader.sound(payload) ?? [:] where found[path] == nil {
                if let first = known[path] {
                    if !first.member.agrees(with: member) { found[path] = (first.position, position) }
                } else {
                    known[path] = (position, member)
                }
            }
        }
        return found.map { ($0.key.text, $0.value.one, $0.value.other) }.sorted { $0.0 < $1.0 }
    }

    /// The object's identity as the upstream spells it; nil for identities of several members.
    public func identityJSON(model: String, models: Models) -> [UInt8]? {
        models.index(of: model).flatMap { index in payload.flatMap(models.compiled[index].identityLiteral) }
    }

    /// The `lo` of a member's clock.
    func lo(of path: MemberPath, lag: Lag) -> Int64 {
        guard case .whole(let isEmbedded) = knowledge else { return group(of: path)?.clock.lo ?? .min }
        return base?.observation.lo(isEmbedded: isEmbedded, lag: lag) ?? .min
    }

    /// The observation that settled or last confirmed a member.
    func source(of path: MemberPath) -> Int64? {
        if case .whole = knowledge { base?.observation.sequence } else { group(of: path)?.source }
    }

    /// The observations that settled or last confirmed its values.
    public var sources: Set<Int64> {
        guard case .groups(let groups) = knowledge else { return base.map { [$0.observation.sequence] } ?? [] }
        return Set(groups.map(\.source))
    }

    private func group(of path: MemberPath) -> Knowledge.Group? {
        let groups = knowledge.groups
        return groups.first { $0.members?.contains(path.text) == true } ?? groups.first { $0.members == nil }
    }

    /// The settled values of the object's shared members, with references as bare identities.
    ///
    /// Members with a policy of their own are left out. Nil if the current values are unknown: nothing was observed
    /// since a write or deletion, a member is in doubt, or the object shows itself to be deleted.
    ///
    /// - Parameter identity: the JSON by which the upstream identifies a referenced object.
    public func sharedJSON(model: String, models: Models, lag: Lag, identity: (ObjectName) -> [UInt8]?) -> [UInt8]? {
        sharedPayload(model: model, models: models, lag: lag).flatMap {
            $0.isInDoubt ? nil : Reference.plain($0.bytes, identity: identity)
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
        let members = known.mapValues { known in
            var member = known.settled.value
            if member.isContainer { member.value = nothing }
            return member
        }
        return (MergedWriter.json(members, inShapeOf: nothing), known.values.contains { $0.settled.doubt != nil })
    }
}
