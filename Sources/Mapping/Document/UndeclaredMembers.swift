/// Collects the members that belong to their answers, each as the newest contribution that has it shows it.
struct UndeclaredMembers {
    let models: Models
    private(set) var members: [Provenance.Member] = []
    private var seen: Set<MemberPath> = []

    init(models: Models) { self.models = models }

    mutating func read(_ contribution: Contribution, model: Int?) {
        guard let object = JSONSlice(contribution.payload) else { return }
        guard let model else {
            for member in object.members { add(member.value, .undeclared, at: member.name, contribution) }
            return
        }
        let compiled = models.compiled[models.concrete(of: model, for: object)]
        read(object, node: compiled.root, shared: compiled.sharesAll, at: .root, contribution)
    }

    /// As `ObservedMembers` reads, but for what that passes over.
    private mutating func read(
        _ object: JSONSlice,
        node: Int,
        shared: Bool,
        at prefix: MemberPath,
        _ contribution: Contribution
    ) {
        for member in object.members {
            let path = prefix.appending(member.name)
            guard let name = member.name.name, let child = models.tree.child(of: node, named: name) else {
                if !shared { add(member.value, .undeclared, at: path, contribution) }
                continue
            }
            let found = models.tree.nodes[child]
            if found.isLocal {
                add(member.value, .local, at: path, contribution)
            } else if found.hasChildren, !found.isProperty, found.relation < 0, member.value.kind == .object {
                read(member.value, node: child, shared: shared, at: path, contribution)
            } else if !found.isProperty, !shared, found.captures == 0, !found.isAsked, found.relation < 0 {
                add(member.value, .undeclared, at: path, contribution)
            }
        }
    }

    private mutating func add(
        _ value: JSONSlice,
        _ standing: Provenance.Standing,
        at path: MemberPath,
        _ contribution: Contribution
    ) {
        guard seen.insert(path).inserted else { return }
        let value = Reference.plain(Array(value.bytes))
        var member = Provenance.Member(pointer: "/" + path.text, standing: standing, value: value)
        member.shown = Provenance.Sighting(
            value: value,
            source: contribution.observation.sequence,
            time: contribution.observation.end
        )
        members.append(member)
    }
}
