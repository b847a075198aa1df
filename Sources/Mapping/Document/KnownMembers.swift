/// What is known of the members of one object, while an observation is taken.
struct KnownMembers {
    /// One member.
    struct Member {
        var settled: SettledMember<ObservedMember>
        /// The sequence of the observation that showed the value last.
        var source: Int64
        var former: Knowledge.Former?
        /// Where the challenger comes from, and from when on it is asked for again.
        var challenger: (source: Int64, asksFrom: Int64)?
        /// Until when a response that contradicts itself about the member shows it as it came.
        var contradictedUntil: Int64?
    }

    /// What taking an observation has done.
    struct Effect {
        var changes: [MemberChange] = []
        /// Members whose value became known, or is another one.
        var isChanged = false
        /// Whether documents that show it are to be looked at again, though all values are the same.
        var hasDoubtChanged = false
        var unanswered: Int64?
    }

    private(set) var members: [MemberPath: Member] = [:]
    private(set) var effect = Effect()

    /// Nothing is known yet.
    init() {}

    /// What was known.
    init(_ payload: JSONSlice, _ knowledge: Knowledge, base: Contribution, model: Int, models: Models, lag: Lag) {
        let observed = ObservedMembers(payload, model: model, models: models).sound
        switch knowledge {
        case .whole(let isEmbedded):
            let stamp = observed.stamp(of: model, models)
            let lo = base.observation.lo(isEmbedded: isEmbedded, lag: lag)
            let clock = Knowledge.Clock(lo: lo, hi: base.observation.end, stamp: stamp)
            members = observed.mapValues { value in
                Member(
                    settled: SettledMember(value: value, clock: clock, doubt: nil),
                    source: base.observation.sequence
                )
            }
        case .groups(let groups):
            var byMember: [MemberPath: Int] = [:]
            for (index, group) in groups.enumerated() {
                for member in group.members ?? [] { byMember[MemberPath(pointer: member)] = index }
            }
            let rest = groups.firstIndex { $0.members == nil } ?? 0
            for (path, value) in observed {
                members[path] = Member(value, groups[byMember[path] ?? rest])
            }
        }
    }

    /// Takes what one response shows of the object, once or several times.
    ///
    /// - Parameter asksFrom: from when on documents that show a member are asked for again which this response puts in
    ///   doubt, given its pointer and the challenger.
    mutating func take(_ seen: Sighting, lag: Lag, asksFrom: (_ member: String, _ challenger: [UInt8]) -> Int64) {
        for path in seen.contradicted {
            guard let known = members[path], known.settled.clock.lo <= seen.observation.end else { continue }
            members[path]?.contradictedUntil = max(known.contradictedUntil ?? .min, seen.observation.end)
        }
        for (path, observed) in seen.outermostFirst {
            guard var member = members[path] else {
                guard isKnownContainer(path.parent, showing: seen, by: observed.hi) else { continue }
                members[path] = Member(settled: SettledMember(first: observed), source: seen.sequence)
                effect.isChanged = effect.isChanged || observed.value.isShared
                continue
            }
            let (old, wasInDoubt) = (member.settled.value, member.settled.doubt != nil)
            let hi = member.settled.clock.hi
            switch member.settled.take(observed, lag: lag.lists) {
            case .replaced(let rule):
                note(observed, at: path, insteadOf: old, by: seen)
                member.source = seen.sequence
                let isShort = old.value.range.count <= Knowledge.Former.limit && !old.isContainer
                member.former = isShort ? Knowledge.Former(value: Array(old.value.bytes), rule: rule) : nil
            case .confirmed:
                if observed.hi >= hi { member.source = seen.sequence }
            case .doubted:
                let known = wasInDoubt ? member.challenger?.asksFrom : nil
                // What does not move is shown as it came, and needs no asking.
                let isAsked = old.isShared || observed.value.isShared
                let time = known ?? (isAsked ? asksFrom(path.text, Array(observed.value.value.bytes)) : .max)
                member.challenger = (seen.sequence, time)
            case .unanswered(let time):
                effect.unanswered = max(effect.unanswered ?? .min, time)
            case .ignored: break
            }
            if wasInDoubt != (member.settled.doubt != nil), old.isShared { effect.hasDoubtChanged = true }
            if let until = member.contradictedUntil, member.settled.clock.lo > until {
                member.contradictedUntil = nil
                effect.hasDoubtChanged = true
            }
            members[path] = member
            if old.isContainer, !member.settled.value.isContainer {
                // Another object that comes there later is another one.
                for inner in members.keys where inner.isWithin(path) { members[inner] = nil }
            }
        }
    }

    private mutating func note(
        _ observed: SettledMember<ObservedMember>.Observed,
        at path: MemberPath,
        insteadOf old: ObservedMember,
        by seen: Sighting
    ) {
        guard old.isShared || observed.value.isShared, !old.agrees(with: observed.value) else { return }
        effect.isChanged = true
        effect.changes.append(
            MemberChange(
                member: path.text,
                old: Array(old.value.bytes),
                new: Array(observed.value.value.bytes),
                observation: seen.observation
            )
        )
    }

    /// Whether a member may stand there: its object is known to be one, and was not seen to be one only later.
    private func isKnownContainer(_ parent: MemberPath, showing seen: Sighting, by hi: Int64) -> Bool {
        guard seen.members[parent]?.value.isContainer == true else { return true }
        return members[parent].map { $0.settled.value.isContainer && $0.settled.clock.lo <= hi } ?? false
    }

    /// Forgets what a write or a deletion at this time has outdated.
    mutating func drop(until time: Int64) {
        members = members.filter { $0.value.settled.clock.lo > time }
    }

    /// Whether a version alone shows every known member at its settled value, and nothing else.
    func isWhole(_ version: [MemberPath: ObservedMember]) -> Bool {
        version.count == members.count
            && version.allSatisfy { path, member in members[path]?.settled.value.agrees(with: member) ?? false }
    }

    /// The same of a version that is not read yet.
    func isWhole(_ version: Contribution, model: Int, _ models: Models) -> Bool {
        guard let value = JSONSlice(version.payload) else { return false }
        return isWhole(ObservedMembers(value, model: model, models: models).sound)
    }

    /// The settled values in the shape of a payload, what it does not show behind.
    func payload(in shape: [UInt8], model: Int, models: Models) -> [UInt8]? {
        guard let value = JSONSlice(shape) else { return nil }
        let unknown = ObservedMembers(value, model: model, models: models).members.keys.filter { members[$0] == nil }
        var writer = MergedWriter(
            ResolvedObject(members.mapValues(\.settled.value), model: model),
            leavingOut: Set(unknown)
        )
        writer.write(value, at: .root)
        return writer.output
    }

    /// The clocks of all members.
    ///
    /// - Parameter base: the version that gives the shape.
    func knowledge(base: Contribution, model: Int, models: Models, lag: Lag) -> Knowledge {
        let groups = sortedGroups(base: base.observation.sequence)
        guard let first = groups.first?.key else { return .whole(isEmbedded: base.isEmbedded) }
        let stamp = members.mapValues(\.settled.value).stamp(of: model, models)
        let clock = Knowledge.Clock(lo: base.lo(lag: lag), hi: base.observation.end, stamp: stamp)
        if groups.count == 1, first.path == nil, first.source == base.observation.sequence, first.clock == clock {
            return .whole(isEmbedded: base.isEmbedded)
        }
        return .groups(
            groups.enumerated().compactMap { index, group in
                let isRest = index == 0 && group.key.path == nil
                return members[group.paths[0]]?.group(naming: isRest ? nil : group.paths.map(\.text).sorted())
            }
        )
    }

    /// The members by what they share; the base's own first, or those that are most.
    private func sortedGroups(base: Int64) -> [(key: GroupKey, paths: [MemberPath])] {
        var groups: [GroupKey: [MemberPath]] = [:]
        for (path, member) in members { groups[GroupKey(path, member), default: []].append(path) }
        func order(_ key: GroupKey, _ paths: [MemberPath]) -> (Int, Int, Int64, Int64) {
            let rank = key.path != nil ? 0 : key.source == base ? 2 : 1
            return (rank, paths.count, key.source, key.clock.lo)
        }
        return groups.sorted { order($0.key, $0.value) > order($1.key, $1.value) }.map { ($0.key, $0.value) }
    }

    /// What members with one clock share.
    private struct GroupKey: Hashable {
        let source: Int64
        let clock: Knowledge.Clock
        /// Members that have more than a clock stand alone.
        let path: MemberPath?

        init(_ path: MemberPath, _ member: Member) {
            (source, clock) = (member.source, member.settled.clock)
            self.path = member.isPlain ? nil : path
        }

        static func == (left: GroupKey, right: GroupKey) -> Bool {
            left.source == right.source && left.path == right.path && left.clock == right.clock
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(source)
            hasher.combine(clock.lo)
            hasher.combine(path)
        }
    }
}

extension KnownMembers.Member {
    /// Whether it has nothing but its clock.
    fileprivate var isPlain: Bool { settled.doubt == nil && former == nil && contradictedUntil == nil }

    /// As it was stored.
    init(_ value: ObservedMember, _ group: Knowledge.Group) {
        var doubt: SettledMember<ObservedMember>.Doubt?
        if let known = group.doubt, let slice = JSONSlice(known.value) {
            doubt = SettledMember.Doubt(challenger: value.with(slice), lo: known.lo, hi: known.hi, rest: known.rest)
            challenger = (known.source, known.asksFrom)
        }
        settled = SettledMember(value: value, clock: group.clock, doubt: doubt)
        source = group.source
        former = group.former
        contradictedUntil = group.contradictedUntil
    }

    fileprivate func group(naming members: [String]?) -> Knowledge.Group {
        Knowledge.Group(
            source: source,
            clock: settled.clock,
            doubt: settled.doubt.map { doubt in
                Knowledge.Doubt(
                    value: Array(doubt.challenger.value.bytes),
                    lo: doubt.lo,
                    hi: doubt.hi,
                    rest: doubt.rest,
                    source: challenger?.source ?? source,
                    asksFrom: challenger?.asksFrom ?? doubt.hi
                )
            },
            former: former,
            contradictedUntil: contradictedUntil,
            members: members
        )
    }
}

extension ObservedMember: MemberValue {
    /// Another value of the same member.
    fileprivate func with(_ value: JSONSlice) -> ObservedMember {
        var member = self
        member.value = value
        member.isContainer = value.kind == .object && (isContainer || link?.arity == .one) && !isWhole
        return member
    }
}

/// A member whose settled value is another one than before.
public struct MemberChange: Sendable, Equatable {
    /// The JSON pointer (RFC 6901) of the member within its object, without the leading slash.
    public var member: String
    /// The value that was settled, as raw JSON.
    public var old: [UInt8]
    /// The value that is settled now, as raw JSON.
    public var new: [UInt8]
    /// By which response.
    public var observation: Observation
}
