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
