/// The known members of one object, while an observation is merged.
struct KnownMembers {
    typealias Settled = SettledMember<ObservedMember>

    struct Member {
        var settled: Settled
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
    private(set) var effect = ObjectState.Merge()
    /// The time of a write that no response has shown (row W4); what was observed before it is in doubt.
    private let writtenUnseen: Int64?
    private let reader: ObjectReader
    private let lag: Lag

    init(_ state: ObjectState, _ reader: ObjectReader, lag: Lag) {
        (self.reader, self.lag) = (reader, lag)
        if case .unobserved(let time, _, _) = state.mark { writtenUnseen = time } else { writtenUnseen = nil }
        guard let base = state.base?.observation, let payload = state.payload.flatMap({ JSONSlice($0) }) else { return }
        switch state.knowledge {
        case .whole(let isEmbedded):
            // A later version may say of which model this one is.
            let observed = reader.observed(payload).sound
            let clock = clock(of: observed, in: base, isEmbedded: isEmbedded)
            members = observed.mapValues { value in
                Member(settled: Settled(value: value, clock: clock, doubt: nil, source: base.sequence))
            }
        case .groups(let groups):
            let observed = ObservedMembers(payload, model: reader.model, models: reader.models).sound
            var byMember: [MemberPath: Int] = [:]
            for (index, group) in groups.enumerated() {
                for member in group.members ?? [] { byMember[MemberPath(pointer: member)] = index }
            }
            let rest = groups.firstIndex { $0.members == nil } ?? 0
            for (path, value) in observed { members[path] = Member(value, groups[byMember[path] ?? rest]) }
        }
        guard let writtenUnseen else { return }
        for path in members.keys { members[path]?.settled.doubt(until: writtenUnseen) }
    }

    /// The clock of members that one observation shows.
    func clock(of members: [MemberPath: ObservedMember], in seen: Observation, isEmbedded: Bool) -> Knowledge.Clock {
        let lo = seen.lo(isEmbedded: isEmbedded, lag: lag)
        return Knowledge.Clock(lo: lo, hi: seen.hi, stamp: seen.counting(reader.stamp(in: members)))
    }

    /// Merges what one response shows of the object, as `ObjectState.merge` does.
    mutating func merge(
        _ seen: Sighting,
        _ history: ObjectHistory,
        asksFrom: (_ member: String, _ challenger: [UInt8]) -> Int64
    ) {
        for path in seen.contradicted {
            guard let known = members[path], known.settled.clock.lo <= seen.observation.end else { continue }
            members[path]?.contradictedUntil = max(known.contradictedUntil ?? .min, seen.observation.end)
        }
        for (path, observed) in seen.outermostFirst {
            guard var member = members[path] else {
                let time = max(observed.lo, observed.hi)
                // Row F is not for a delivery.
                guard observed.kind != .delivery, isKnownContainer(path.parent, showing: seen, by: time) else {
                    continue
                }
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
            let rule: KnowledgeRule? =
                switch outcome {
                case .replaced(let rule): rule
                case .unordered where !old.agrees(with: member.settled.value): .overlappingWrite
                case .unordered, .confirmed, .ignored, .doubted: nil
                }
            if let rule {
                if old.isShared || observed.value.isShared, !old.agrees(with: observed.value) {
                    effect.isChanged = true
                    let (before, after) = (Array(old.value.bytes), Array(observed.value.value.bytes))
                    let change = MemberChange(member: path.text, old: before, new: after, observation: seen.observation)
                    effect.changes.append(change)
                }
                let isShort = old.value.range.count <= Knowledge.Former.byteLimit && !old.isContainer
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

    /// Row W4 for a write whose response shows the object without some of its members: these are in doubt, except its
    /// identity, which a write cannot change.
    mutating func doubtMembersMissing(in write: Sighting) {
        let (end, constant) = (write.observation.end, reader.models.compiled[reader.model].identityMembers)
        for (path, member) in members where write.members[path] == nil && !constant.contains(path) {
            let settled = member.settled
            guard settled.value.isShared, !settled.value.isContainer, settled.clock.lo <= end else { continue }
            // Also of a member that was in doubt before: until now it may have been served.
            effect.hasDoubtChanged = true
            members[path]?.doubtStrictly(until: end)
        }
    }

    /// Whether a member is in doubt for another reason than the unseen write, which its mark says already.
    private func isInDoubt(_ member: Member) -> Bool {
        guard let doubt = member.settled.doubt else { return false }
        let isMarked = doubt.challenger == nil && writtenUnseen.map { doubt.rest <= $0 } ?? false
        // The mark may be of another principal's write, after which less is asked for.
        return !isMarked || member.isLeftOut
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

    /// The same for a payload.
    func isWhole(_ payload: [UInt8]) -> Bool { reader.sound(payload).map { isWhole($0) } ?? false }

    /// The settled values in the shape of a payload; members that it lacks are appended.
    func payload(in shape: [UInt8]) -> [UInt8]? {
        guard let value = JSONSlice(shape) else { return nil }
        let unknown = reader.observed(value).members.keys.filter { members[$0] == nil }
        return MergedWriter.json(members.mapValues(\.settled.value), inShapeOf: value, leavingOut: Set(unknown))
    }

    /// The clocks of all members; `base` is the version that gives the shape.
    func knowledge(base: Contribution) -> Knowledge {
        let groups = sortedGroups(base: base.observation.sequence)
        let clock = clock(of: members.mapValues(\.settled.value), in: base.observation, isEmbedded: base.isEmbedded)
        let own = GroupKey(source: base.observation.sequence, clock: clock)
        if groups.allSatisfy({ $0.key == own }) { return .whole(isEmbedded: base.isEmbedded) }
        return .groups(
            groups.enumerated().compactMap { index, group in
                let isRest = index == 0 && group.key.path == nil
                guard let member = members[group.value[0]] else { return nil }
                let names = isRest ? nil : group.value.map(\.text).sorted()
                return member.group(naming: names, isInDoubt: isInDoubt(member))
            }
        )
    }

    /// The members grouped by what they share: the base's own group first, else the largest.
    private func sortedGroups(base: Int64) -> [(key: GroupKey, value: [MemberPath])] {
        var groups: [GroupKey: [MemberPath]] = [:]
        for (path, member) in members {
            let isPlain = member.former == nil && member.contradictedUntil == nil && !isInDoubt(member)
            let (source, clock) = (member.settled.source, member.settled.clock)
            groups[GroupKey(source: source, clock: clock, path: isPlain ? nil : path), default: []].append(path)
        }
        func order(_ key: GroupKey, _ paths: [MemberPath]) -> (Int, Int, Int64, Int64) {
            let rank = key.path != nil ? 0 : key.source == base ? 2 : 1
            return (rank, paths.count, key.source, key.clock.lo)
        }
        return groups.sorted { order($0.key, $0.value) > order($1.key, $1.value) }
    }

    private struct GroupKey: Hashable {
        let source: Int64
        let clock: Knowledge.Clock
        /// Set for a member with more than a clock, which forms a group of its own.
        var path: MemberPath?
    }
}

extension KnownMembers.Member {
    init(_ value: ObservedMember, _ group: Knowledge.Group) {
        let doubt = group.doubt.map { known in
            let challenger = JSONSlice(known.value).map {
                KnownMembers.Settled.Challenger(value: value.with($0), lo: known.lo, hi: known.hi, source: known.source)
            }
            return KnownMembers.Settled.Doubt(challenger: challenger, rest: known.rest)
        }
        settled = SettledMember(value: value, clock: group.clock, doubt: doubt, source: group.source)
        (former, asksFrom, contradictedUntil) = (group.former, group.doubt?.asksFrom, group.contradictedUntil)
    }

    fileprivate func group(naming members: [String]?, isInDoubt: Bool) -> Knowledge.Group {
        var group = Knowledge.Group(source: settled.source, clock: settled.clock)
        (group.former, group.contradictedUntil, group.members) = (former, contradictedUntil, members)
        if isInDoubt, let doubt = settled.doubt {
            group.doubt = Knowledge.Doubt(
                value: doubt.challenger.map { Array($0.value.value.bytes) } ?? [],
                lo: doubt.challenger?.lo ?? 0,
                hi: doubt.challenger?.hi ?? 0,
                rest: doubt.rest,
                source: doubt.challenger?.source ?? settled.source,
                asksFrom: asksFrom ?? doubt.end
            )
        }
        return group
    }
}

extension ObservedMember: MemberValue {
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
    /// Up to when the words of documents may have been lost in a crash; the record of a write never is.
    var restarted: Int64
    /// The time of a write whose effect on the member no response has shown (row W4).
    var unseen = Int64.min

    /// Describes what is known.
    public init(wrote: Int64 = .min, restarted: Int64 = .min, word: @escaping (Int64) -> LastWord? = { _ in nil }) {
        (self.word, self.wrote, self.restarted) = (word, wrote, restarted)
    }
}

/// A member whose settled value has changed, with both values as raw JSON, and the observation that changed it.
public struct MemberChange: Sendable, Equatable {
    /// The JSON pointer (RFC 6901) of the member within its object, without the leading slash.
    public var member: String
    public var old: [UInt8]
    public var new: [UInt8]
    public var observation: Observation
}

/// Writes an object with the newest value of each member, in the shape of one contribution; the others are appended.
struct MergedWriter {
    private let newest: [MemberPath: ObservedMember]
    /// Members of the shape that fail their checks; they are left out if no better value is known.
    private let quarantined: Set<MemberPath>
    /// All members, by the object that directly contains them.
    private let byParent: [MemberPath: [(path: MemberPath, member: ObservedMember)]]
    private var output: [UInt8] = []

    /// The newest members in the shape of `value`, an object.
    static func json(
        _ newest: [MemberPath: ObservedMember],
        inShapeOf value: JSONSlice,
        leavingOut quarantined: Set<MemberPath> = []
    ) -> [UInt8] {
        let byParent = Dictionary(grouping: newest.map { (path: $0.key, member: $0.value) }, by: \.path.parent)
        var writer = MergedWriter(
            newest: newest,
            quarantined: quarantined.filter { newest[$0] == nil },
            byParent: byParent.mapValues { $0.sorted { $0.path.text < $1.path.text } }
        )
        writer.write(value, at: .root)
        return writer.output
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
            if quarantined.contains(inner) || shown.contains(inner) && newest[inner] != nil {
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
            guard let known = newest[inner] else { continue }
            output.append(contentsOf: value.text[position..<member.value.range.lowerBound])
            let shown = member.value
            if known.isContainer {
                write(shown.kind == .object ? shown : known.value, at: inner)
            } else {
                let isSame = known.agrees(with: ObservedMember(value: shown, isShared: true, link: known.link))
                output.append(contentsOf: (isSame ? shown : known.value).bytes)
            }
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
}
