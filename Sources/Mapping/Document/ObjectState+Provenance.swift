/// The sources of what is known of one object, for display.
public enum Provenance {
    /// A value as shown by one response, as JSON with identities in place of objects.
    public struct Sighting: Sendable, Equatable {
        public var value: [UInt8]
        /// The sequence of the observation that last showed it.
        public var source: Int64
        /// The end of that observation's interval, in microseconds of the store's clock.
        public var time: Int64
    }

    /// The status of a member's value.
    public enum Standing: String, Sendable {
        case known
        /// The value is settled, but another one was seen that cannot be ordered against it.
        case doubt
        /// The value was gathered over several responses by the member's policy.
        case gathered = "merged"
        /// No sound value is known.
        case quarantined
        /// A write or deletion came after everything known of the value, which moves nowhere.
        case outdated
        /// The member belongs to the response because it is declared `local`.
        case local
        /// The member belongs to the response because it is not declared.
        case undeclared
    }

    /// One member.
    public struct Member: Sendable {
        /// The JSON pointer of the member in the upstream's JSON.
        public var pointer: String
        public var properties: [String] = []
        public var standing: Standing
        public var policy = MergePolicy.latest
        /// Whether it moves into other responses.
        public var moves = false
        /// The settled value, or else the newest one shown.
        public var value: [UInt8]?
        /// The observation that last showed that value.
        public var shown: Sighting?
        /// The value that the settled one replaced, and why.
        public var replaced: Knowledge.Former?
        /// The value that puts the settled one in doubt.
        public var challenger: Sighting?
        public var quarantined: [Sighting] = []
        /// The components of a gathered value, with the effective times of the responses that showed them.
        public var items: [(value: [UInt8], time: Int64)] = []
    }
}

extension ObjectState {
    /// The source of each known member: the declared ones in the order of their declaration, then the undeclared ones.
    ///
    /// - Parameter others: what other documents show of the object, newest first. Members that belong to their
    ///   responses may occur only there.
    package func provenance(model: String, models: Models, lag: Lag, others: [Contribution]) -> [Provenance.Member] {
        let shown = (base.map { [$0] } ?? []) + others
        guard let index = models.index(of: model) else { return Self.ownMembers(in: shown, nil) }
        let properties = Self.properties(of: index, models)
        let reader = reader(of: index, models)
        var members = settledMembers(reader, lag: lag) + gatheredMembers(reader)
        if !models.plain[index] { for contribution in shown { Self.quarantine(&members, contribution, reader) } }
        let isOutdated = isOutdated(lag: lag)
        for position in members.indices {
            members[position].properties = properties[members[position].pointer]?.names ?? []
            guard isOutdated else { continue }
            members[position].moves = false
            if members[position].standing != .quarantined { members[position].standing = .outdated }
        }
        let position = { (member: Provenance.Member) in properties[member.pointer]?.position ?? .max }
        members.sort { (position($0), $0.pointer) < (position($1), $1.pointer) }
        let declared = Set(members.map(\.pointer))
        return members + Self.ownMembers(in: shown, reader).filter { !declared.contains($0.pointer) }
    }

    /// The members that belong to their responses, each from the first version that has it.
    private static func ownMembers(in shown: [Contribution], _ reader: ObjectReader?) -> [Provenance.Member] {
        var seen: Set<MemberPath> = []
        return shown.flatMap { contribution -> [Provenance.Member] in
            guard let object = JSONSlice(contribution.payload) else { return [] }
            let observed = reader?.observed(object, withRest: true).rest
            let own = observed ?? object.members.map { ($0.name, $0.value, .undeclared) }
            return own.filter { seen.insert($0.path).inserted }.map { path, value, standing in
                let shown = sighting(value, in: contribution.observation)
                return .init(pointer: "/" + path.text, standing: standing, value: shown.value, shown: shown)
            }
        }
    }

    private func settledMembers(_ reader: ObjectReader, lag: Lag) -> [Provenance.Member] {
        KnownMembers(self, reader, lag: lag).members.compactMap { path, known in
            let settled = known.settled
            // The members of an embedded object are listed one by one.
            guard !settled.value.isContainer else { return nil }
            let (value, time) = (Self.plain(settled.value.value), max(settled.clock.lo, settled.clock.hi))
            let shown = Provenance.Sighting(value: value, source: settled.source, time: time)
            let standing: Provenance.Standing = settled.doubt == nil ? .known : .doubt
            var member = Provenance.Member(pointer: "/" + path.text, standing: standing, value: value, shown: shown)
            member.policy = reader.policy(of: path) ?? .latest
            member.moves = settled.value.isShared
            member.replaced = known.former.map { Knowledge.Former(value: Reference.plain($0.value), rule: $0.rule) }
            member.challenger = settled.doubt?.challenger.map {
                Provenance.Sighting(value: Self.plain($0.value.value), source: $0.source, time: $0.hi)
            }
            return member
        }
    }

    private func gatheredMembers(_ reader: ObjectReader) -> [Provenance.Member] {
        gathered.items.compactMap { path, items in
            guard let policy = reader.policy(of: path), policy != .latest, policy != .replace else { return nil }
            let value = gathered.values { $0 == path ? policy : nil }[path]
            var member = Provenance.Member(pointer: "/" + path.text, standing: .gathered, policy: policy)
            member.value = value.map { Reference.plain($0) }
            member.items = items.map { (Self.plain($0.value), $0.time) }
            return member
        }
    }

    /// Adds the values that fail their checks.
    private static func quarantine(_ members: inout [Provenance.Member], _ seen: Contribution, _ reader: ObjectReader) {
        guard let object = JSONSlice(seen.payload) else { return }
        for path in reader.observed(object).quarantined {
            guard let names = path.names, let value = object.value(at: names[...]) else { continue }
            let (pointer, shown) = ("/" + path.text, sighting(value, in: seen.observation))
            if let known = members.firstIndex(where: { $0.pointer == pointer }) {
                members[known].quarantined.append(shown)
            } else {
                let policy = reader.policy(of: path) ?? .latest
                members.append(.init(pointer: pointer, standing: .quarantined, policy: policy, quarantined: [shown]))
            }
        }
    }

    private static func plain(_ value: JSONSlice) -> [UInt8] { Reference.plain(value.json) }

    private static func sighting(_ value: JSONSlice, in response: Observation) -> Provenance.Sighting {
        Provenance.Sighting(value: plain(value), source: response.sequence, time: response.end)
    }

    /// The properties of a model by the pointer that they are read from, and its position among all.
    private static func properties(of model: Int, _ models: Models) -> [String: (position: Int, names: [String])] {
        // For a cluster, the properties of its base and all its concrete models.
        let family = reachable(from: [model, models.index(of: models.compiled[model].objectName) ?? model]) {
            models.compiled[$0].reading.choices.map(\.model)
        }
        var found: [String: (position: Int, names: [String])] = [:]
        for member in family.flatMap({ models.compiled[$0].members }) where member.index != nil {
            let property = member.declaration
            for source in property.parts.isEmpty ? member.spellings : property.parts.map(\.from) {
                guard let steps = KeyPathSyntax.steps(of: source) else { continue }
                // A member of an array's elements is known only as part of the array.
                let pointer = "/" + MemberPath(steps.leadingNames).text
                let (position, names) = found[pointer] ?? (found.count, [])
                found[pointer] = (position, names.contains(property.name) ? names : names + [property.name])
            }
        }
        return found
    }
}
