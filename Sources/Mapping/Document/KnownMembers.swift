/// The known members of one object, while an observation is merged.
struct KnownMembers {
    struct Member {
        var settled: SettledMember<ObservedMember>
        var former: Knowledge.Former?
        /// While it is in doubt, the time from which documents that show it are fetched again.
        var asksFrom: Int64?
        /// Until this time, a response that contradicts itself about the member shows its own literals.
        var contradictedUntil: Int64?

        /// Row W4 for an own write, complete at this time, whose response has left the member out.
        fileprivate mutating func doubtStrictly(until time: Int64) {
            settled.doubt(until: time)
            asksFrom = Knowledge.Doubt.always
        }

        /// Whether the last own write has left it out.
        fileprivate var isLeftOut: Bool { settled.doubt != nil && asksFrom == Knowledge.Doubt.always }
    }

    private(set) var members: [MemberPath: Member] = [:]
    /// The effect of merging an observation.
    private(set) var effect = ObjectState.Merge()
    /// The time of a write that no response has shown (row W4); what was observed before it is in doubt.
    private let writtenUnseen: Int64?

    /// Reads the stored knowledge.
    ///
    /// - Parameter versions: as in `ObservedMembers`.
    init(_ state: ObjectState, with versions: [JSONSlice] = [], model: Int, models: Models, lag: Lag) {
        if case .unobserved(let time, _, _) = state.mark { writtenUnseen = time } else { writtenUnseen = nil }
        guard let base = state.base, let payload = state.payload.flatMap({ JSONSlice($0) }) else { return }
        func observed(_ versions: [JSONSlice]) -> [MemberPath: ObservedMember] {
            ObservedMembers(payload, model: model, models: models, known: versions).sound
        }
        switch state.knowledge {
        case .whole(let isEmbedded):
            // A later version may say of which model this one is.
            let observed = observed(versions)
            let stamp = base.observation.counting(observed.stamp(of: model, models))
            let lo = base.observation.lo(isEmbedded: isEmbedded, lag: lag)
            let clock = Knowledge.Clock(lo: lo, hi: base.observation.hi, stamp: stamp)
            members = observed.mapValues { value in
                let source = base.observation.sequence
                return Member(settled: SettledMember(value: value, clock: clock, doubt: nil, source: source))
            }
        case .groups(let groups):
            var byMember: [MemberPath: Int] = [:]
            for (index, group) in groups.enumerated() {
                for member in group.members ?? [] { byMember[MemberPath(pointer: member)] = index }
            }
            let rest = groups.firstIndex { $0.members == nil } ?? 0
            for (path, value) in observed([]) { members[path] = Member(value, groups[byMember[path] ?? rest]) }
        }
        guard let writtenUnseen else { return }
        for path in members.keys { members[path]?.settled.doubt(until: writtenUnseen) }
    }

    /// Merges what one response shows of the object, at one place or several.
    ///
    /// - Parameters:
    ///   - history: what is known of earlier words and writes.
    ///   - asksFrom: called for each member that this response puts in doubt, with its pointer and the challenger.
    ///     Returns the time from which documents that show the member are fetched again.
    mutating func merge(
        _ seen: Sighting,
        lag: Lag,
        _ history: ObjectHistory,
        asksFrom: (_ member: String, _ challenger: [UInt8]) -> Int64
    ) {
        for path in seen.contradicted {
            guard let known = members[path], known.settled.clock.lo <= seen.observation.end else { continue }
            members[path]?.contradictedUntil = max(known.contradictedUntil ?? .min, seen.observation.end)
        }
        for (path, observed) in seen.outermostFirst {
            guard var member = members[path] else {
                // Row F is not for it.
                if observed.kind == .delivery { continue }
                let time = max(observed.lo, observed.hi)
                guard isKnownContainer(path.parent, showing: seen, by: time) else { continue }
                var first = Member(settled: SettledMember(first: observed))
                if let writtenUnseen { first.settled.doubt(until: writtenUnseen) }
                if history.wrote > writtenUnseen ?? .min, observed.lo <= history.wrote {
                    first.doubtStrictly(until: history.wrote)
                }
                members[path] = first
                effect.isChanged = effect.isChanged || observed.value.isShared
                continue
            }
            let (old, wasInDoubt) = (member.settled.value, isInDoubt(member))
            var history = history
            history.unseen = max(writtenUnseen ?? .min, member.isLeftOut ? history.wrote : .min)
            let outcome = member.settled.merge(observed, lag: lag.lists, history)
            if let rule = Self.rule(of: outcome, old, member.settled.value) {
                note(observed, at: path, insteadOf: old, by: seen)
                let isShort = old.value.range.count <= Knowledge.Former.limit && !old.isContainer
                member.former = isShort ? Knowledge.Former(value: Array(old.value.bytes), rule: rule) : nil
            }
            if !wasInDoubt, let challenger = member.settled.doubt?.challenger?.value {
                // A member that does not move keeps its literal, so there is nothing to fetch.
                let isAsked = old.isShared || observed.value.isShared
                member.asksFrom = isAsked ? asksFrom(path.text, Array(challenger.value.bytes)) : .max
            }
            if case .unordered(let time) = outcome { effect.unordered = max(effect.unordered ?? .min, time) }
            if wasInDoubt != isInDoubt(member), old.isShared { effect.hasDoubtChanged = true }
            if let until = member.contradictedUntil, member.settled.clock.lo > until {
                member.contradictedUntil = nil
                effect.hasDoubtChanged = true
            }
            members[path] = member
            if old.isContainer, !member.settled.value.isContainer {
                // An object that appears there later is a different one.
                for inner in members.keys where inner.isWithin(path) { members[inner] = nil }
            }
        }
    }

    /// Row W4 for a write whose response shows the object without some of its members: these are in doubt.
    ///
    /// - Parameter constant: the members that a write cannot change.
    mutating func doubtMembersMissing(in write: Sighting, besides constant: Set<MemberPath>) {
        for (path, member) in members where write.members[path] == nil && !constant.contains(path) {
            let settled = member.settled.value
            guard settled.isShared, !settled.isContainer, member.settled.clock.lo <= write.observation.end else {
                continue
            }
            // Also of a member that was in doubt before: until now it may have been served.
            effect.hasDoubtChanged = true
            members[path]?.doubtStrictly(until: write.observation.end)
        }
    }

    /// The row by which an observation replaced the settled value; nil if it stands.
    private static func rule(
        of outcome: SettledMember<ObservedMember>.Outcome,
        _ old: ObservedMember,
        _ new: ObservedMember
    ) -> KnowledgeRule? {
        switch outcome {
        case .replaced(let rule): rule
        case .unordered: old.agrees(with: new) ? nil : .overlappingWrite
        case .confirmed, .ignored, .doubted: nil
        }
    }

    /// Whether a member is in doubt for another reason than the unseen write, which its mark says already.
    private func isInDoubt(_ member: Member) -> Bool {
        // The mark may be of another principal's write, after which less is asked for.
        member.settled.doubt.map { !isMarked($0) || member.isLeftOut } ?? false
    }

    private func isMarked(_ doubt: SettledMember<ObservedMember>.Doubt) -> Bool {
        doubt.challenger == nil && writtenUnseen.map { doubt.rest <= $0 } ?? false
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

    /// Whether a member's parent is known to be an object, and was not observed as one only later.
    private func isKnownContainer(_ parent: MemberPath, showing seen: Sighting, by hi: Int64) -> Bool {
        guard seen.members[parent]?.value.isContainer == true else { return true }
        return members[parent].map { $0.settled.value.isContainer && $0.settled.clock.lo <= hi } ?? false
    }

    /// Forgets the members that a write or deletion at this time has outdated.
    mutating func drop(until time: Int64) { members = members.filter { $0.value.settled.clock.lo > time } }

    /// Whether a version alone shows every known member at its settled value, and nothing else.
    func isWhole(_ version: [MemberPath: ObservedMember]) -> Bool {
        version.count == members.count
            && version.allSatisfy { path, member in members[path]?.settled.value.agrees(with: member) ?? false }
    }

    /// The same for a version that has not been read yet.
    func isWhole(_ version: Contribution, _ versions: [JSONSlice], model: Int, _ models: Models) -> Bool {
        guard let value = JSONSlice(version.payload) else { return false }
        return isWhole(ObservedMembers(value, model: model, models: models, known: versions).sound)
    }

    /// The settled values in the shape of a payload; members that it lacks are appended.
    func payload(in shape: [UInt8], _ versions: [JSONSlice], model: Int, models: Models) -> [UInt8]? {
        guard let value = JSONSlice(shape) else { return nil }
        let shown = ObservedMembers(value, model: model, models: models, known: versions).members
        let unknown = shown.keys.filter { members[$0] == nil }
        let resolved = ResolvedObject(members.mapValues(\.settled.value), model: model)
        return MergedWriter.json(resolved, inShapeOf: value, leavingOut: Set(unknown))
    }

    /// The clocks of all members.
    ///
    /// - Parameter base: the version that gives the shape.
    func knowledge(base: Contribution, model: Int, models: Models, lag: Lag) -> Knowledge {
        let groups = sortedGroups(base: base.observation.sequence)
        guard let first = groups.first?.key else { return .whole(isEmbedded: base.isEmbedded) }
        let stamp = base.observation.counting(members.mapValues(\.settled.value).stamp(of: model, models))
        let clock = Knowledge.Clock(lo: base.lo(lag: lag), hi: base.observation.hi, stamp: stamp)
        if groups.count == 1, first.path == nil, first.source == base.observation.sequence, first.clock == clock {
            return .whole(isEmbedded: base.isEmbedded)
        }
        return .groups(
            groups.enumerated().compactMap { index, group in
                let isRest = index == 0 && group.key.path == nil
                guard let member = members[group.paths[0]] else { return nil }
                let names = isRest ? nil : group.paths.map(\.text).sorted()
                return member.group(naming: names, isInDoubt: isInDoubt(member))
            }
        )
    }

    /// The members grouped by what they share: the base's own group first, else the largest.
    private func sortedGroups(base: Int64) -> [(key: GroupKey, paths: [MemberPath])] {
        var groups: [GroupKey: [MemberPath]] = [:]
        for (path, member) in members {
            let isPlain = member.former == nil && member.contradictedUntil == nil && !isInDoubt(member)
            groups[GroupKey(path, member, isPlain: isPlain), default: []].append(path)
        }
        func order(_ key: GroupKey, _ paths: [MemberPath]) -> (Int, Int, Int64, Int64) {
            let rank = key.path != nil ? 0 : key.source == base ? 2 : 1
            return (rank, paths.count, key.source, key.clock.lo)
        }
        return groups.sorted { order($0.key, $0.value) > order($1.key, $1.value) }.map { ($0.key, $0.value) }
    }

    /// The properties that members of one group share.
    private struct GroupKey: Hashable {
        let source: Int64
        let clock: Knowledge.Clock
        /// Set for a member with more than a clock, which forms a group of its own.
        let path: MemberPath?

        init(_ path: MemberPath, _ member: Member, isPlain: Bool) {
            (source, clock) = (member.settled.source, member.settled.clock)
            self.path = isPlain ? nil : path
        }
    }
}

extension KnownMembers.Member {
    /// Reads a stored member.
    init(_ value: ObservedMember, _ group: Knowledge.Group) {
        var doubt: SettledMember<ObservedMember>.Doubt?
        if let known = group.doubt {
            doubt = SettledMember.Doubt(rest: known.rest)
            if let slice = known.value.isEmpty ? nil : JSONSlice(known.value) {
                doubt?.challenger = .init(
                    value: value.with(slice),
                    lo: known.lo,
                    hi: known.hi,
                    source: known.source
                )
            }
            asksFrom = known.asksFrom
        }
        settled = SettledMember(value: value, clock: group.clock, doubt: doubt, source: group.source)
        former = group.former
        contradictedUntil = group.contradictedUntil
    }

    fileprivate func group(naming members: [String]?, isInDoubt: Bool) -> Knowledge.Group {
        Knowledge.Group(
            source: settled.source,
            clock: settled.clock,
            doubt: settled.doubt.flatMap { doubt in
                guard isInDoubt else { return nil }
                return Knowledge.Doubt(
                    value: doubt.challenger.map { Array($0.value.value.bytes) } ?? [],
                    lo: doubt.challenger?.lo ?? 0,
                    hi: doubt.challenger?.hi ?? 0,
                    rest: doubt.rest,
                    source: doubt.challenger?.source ?? settled.source,
                    asksFrom: asksFrom ?? doubt.end
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
        member.isContainer = value.kind == .object && (isContainer || isHolder || link?.arity == .one) && !isWhole
        return member
    }
}

/// What is known of an object beside its members, and is looked up only where it decides.
public struct ObjectHistory {
    /// The word of the observation with a sequence; nil if that was a write, or it is no longer known.
    var word: (_ source: Int64) -> LastWord?
    /// The latest `hi` of a write to the object, besides the one being merged; `Int64.min` if there was none.
    var wrote: Int64
    /// Up to when the words of documents may have been lost in a crash.
    ///
    /// The record of a write is never lost.
    var restarted: Int64
    /// The time of a write whose effect on the member no response has shown (row W4).
    var unseen = Int64.min

    /// Describes what is known.
    public init(
        wrote: Int64 = .min,
        restarted: Int64 = .min,
        word: @escaping (_ source: Int64) -> LastWord? = { _ in nil }
    ) {
        (self.word, self.wrote, self.restarted) = (word, wrote, restarted)
    }
}

/// A member whose settled value has changed.
public struct MemberChange: Sendable, Equatable {
    /// The JSON pointer (RFC 6901) of the member within its object, without the leading slash.
    public var member: String
    /// The former value, as raw JSON.
    public var old: [UInt8]
    /// The new value, as raw JSON.
    public var new: [UInt8]
    /// The observation that changed it.
    public var observation: Observation
}

/// Writes an object with the newest value of every declared member, in the shape of one contribution.
///
/// Members that the shape lacks are appended.
struct MergedWriter {
    private let resolved: ResolvedObject
    /// Members of the shape that fail their checks; they are left out if no better value is known.
    private let quarantined: Set<MemberPath>
    /// All members, by the object that directly contains them.
    private let byParent: [MemberPath: [(path: MemberPath, member: ObservedMember)]]
    private var output: [UInt8] = []

    /// The newest members in the shape of `value`, an object.
    static func json(
        _ resolved: ResolvedObject,
        inShapeOf value: JSONSlice,
        leavingOut quarantined: Set<MemberPath> = []
    ) -> [UInt8] {
        var writer = MergedWriter(resolved, leavingOut: quarantined)
        writer.write(value, at: .root)
        return writer.output
    }

    private init(_ resolved: ResolvedObject, leavingOut quarantined: Set<MemberPath>) {
        self.resolved = resolved
        self.quarantined = quarantined.filter { resolved[$0] == nil }
        var byParent: [MemberPath: [(path: MemberPath, member: ObservedMember)]] = [:]
        for (path, member) in resolved.members { byParent[path.parent, default: []].append((path, member)) }
        self.byParent = byParent.mapValues { $0.sorted { $0.path.text < $1.path.text } }
    }

    /// Writes `value`, which is at `path`, with its newest members.
    private mutating func write(_ value: JSONSlice, at path: MemberPath) {
        guard value.kind == .object else { return output.append(contentsOf: value.bytes) }
        var position = value.range.lowerBound
        var shown: Set<MemberPath> = []
        // The position of the comma before the next member, or just inside the bracket.
        var separator = position + 1
        for member in value.members {
            let inner = path.appending(member.name)
            defer { separator = member.value.range.upperBound }
            // Of a repeated member, only the first place is written: a repetition would be no observation.
            if quarantined.contains(inner) || shown.contains(inner) && resolved[inner] != nil {
                // The comma before the member goes with it. If it has none, the comma after it is dropped below.
                output.append(contentsOf: value.text[position..<max(position, separator)])
                position = member.value.range.upperBound
                continue
            }
            if shown.isEmpty, position > value.range.lowerBound {
                // All members before this one were left out.
                position = member.nameRange.lowerBound
            }
            shown.insert(inner)
            guard let newest = resolved[inner] else { continue }
            output.append(contentsOf: value.text[position..<member.value.range.lowerBound])
            writeMember(newest, shownAs: member.value, at: inner)
            position = member.value.range.upperBound
        }
        output.append(contentsOf: value.text[position..<value.range.upperBound - 1])
        for (inner, member) in byParent[path] ?? [] where !shown.contains(inner) {
            guard let name = inner.lastName else { continue }
            if !shown.isEmpty { output.append(UInt8(ascii: ",")) }
            shown.insert(inner)
            JSONString.append(name, to: &output)
            output.append(UInt8(ascii: ":"))
            write(member.value, at: inner)
        }
        output.append(UInt8(ascii: "}"))
    }

    private mutating func writeMember(_ newest: ObservedMember, shownAs value: JSONSlice, at path: MemberPath) {
        if newest.isContainer {
            write(value.kind == .object ? value : newest.value, at: path)
        } else if newest.agrees(with: ObservedMember(value: value, isShared: true, link: newest.link)) {
            output.append(contentsOf: value.bytes)
        } else {
            output.append(contentsOf: newest.value.bytes)
        }
    }
}
