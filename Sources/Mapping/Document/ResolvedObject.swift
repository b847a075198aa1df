/// The newest value of each declared member of one object, decided over its contributions.
struct ResolvedObject {
    /// What is known of one member.
    enum Newest {
        case value(ObservedMember)
        case disputed

        func agrees(with other: Newest) -> Bool {
            switch (self, other) {
            case (.value(let mine), .value(let theirs)): mine.agrees(with: theirs)
            case (.disputed, .disputed): true
            default: false
            }
        }
    }

    private(set) var members: [MemberPath: Newest] = [:]
    let model: Int
    /// Members that versions of one answer contradict each other on, and nothing newer is known of: what is known is older
    /// than those versions, so that each keeps its literal there.
    private var kept: [Literal: Set<MemberPath>] = [:]

    /// A version as one answer shows it.
    private struct Literal: Hashable {
        var payload: [UInt8]
        /// The sequence of its observation.
        var answer: Int64
    }

    /// A single literal: what it shows is the newest.
    init(_ value: JSONSlice, model: Int, models: Models) {
        self.model = model
        for (path, member) in ObservedMembers(value, model: model, models: models).members where !member.isRepeated {
            members[path] = .value(member)
        }
    }

    /// What one contribution alone observes.
    init(_ members: [MemberPath: ObservedMember], model: Int) {
        self.model = model
        self.members = members.mapValues(Newest.value)
    }

    /// Nothing is known yet.
    init(model: Int) {
        self.model = model
    }

    subscript(path: MemberPath) -> Newest? { members[path] }

    /// Whether some member that may move differs, or moves where it did not: a literal kept by an answer that contradicts
    /// itself concerns that answer alone, until something newer is known.
    func differs(from other: ResolvedObject) -> Bool {
        !other.kept.allSatisfy { $0.value.isSubset(of: kept[$0.key] ?? []) }
            || members.contains { $0.value.isShared && !(other.members[$0.key]?.agrees(with: $0.value) ?? false) }
            || other.members.contains { $0.value.isShared && members[$0.key] == nil }
    }

    /// Whether an answer keeps its own literal of a member, whatever else is known.
    ///
    /// - Parameter answer: the sequence of the answer's observation; nil: of any.
    func isKept(_ path: MemberPath, in payload: [UInt8], of answer: Int64?) -> Bool {
        guard !kept.isEmpty else { return false }
        guard let answer else { return kept.contains { $0.key.payload == payload && $0.value.contains(path) } }
        return kept[Literal(payload: payload, answer: answer)]?.contains(path) ?? false
    }

    /// Has an answer keep its own literals of some members.
    mutating func keep(_ paths: Set<MemberPath>, in payload: [UInt8], of answer: Int64) {
        if !paths.isEmpty { kept[Literal(payload: payload, answer: answer), default: []].formUnion(paths) }
    }

    /// Puts a value in that is known otherwise than from a contribution.
    mutating func put(_ value: [UInt8], at path: MemberPath) {
        guard let slice = JSONSlice(value) else { return }
        members[path] = .value(ObservedMember(value: slice, isShared: false))
    }

    mutating func set(_ newest: Newest?, at path: MemberPath) {
        members[path] = newest
    }
}

extension ResolvedObject.Newest {
    var isShared: Bool {
        if case .value(let member) = self { return member.isShared }
        return true
    }
}
