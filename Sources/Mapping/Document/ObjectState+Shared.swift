extension ObjectState {
    /// The object as other documents may show it that only name it: the newest of each member that is shared and has no
    /// policy of its own, references as bare identities.
    ///
    /// Nil where that is not known: nothing was observed since a write or a deletion, responses disagree, or the object says
    /// of itself that it is deleted.
    ///
    /// - Parameter identity: the JSON that an object referred to is identified by.
    public func sharedJSON(
        model: String,
        models: Models,
        lag: Int64,
        identity: (ObjectName) -> [UInt8]?
    ) -> [UInt8]? {
        var current = self
        current.contributions = counting(lag: lag)
        guard let index = models.index(of: model), !current.contributions.isEmpty,
            !current.isDeleted(model: model, models: models, lag: lag)
        else { return nil }
        let resolved = current.resolved(model: index, models: models, lag: lag)
        var members: [MemberPath: [(path: MemberPath, member: ObservedMember)]] = [:]
        for (path, newest) in resolved.members {
            guard case .value(let member) = newest else { return nil }
            members[path.parent, default: []].append((path, member))
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
