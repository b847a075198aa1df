/// The settled value of each declared member of one object.
struct ResolvedObject {
    private(set) var members: [MemberPath: ObservedMember]
    let model: Int

    /// What a payload shows.
    init(_ value: JSONSlice, model: Int, models: Models) {
        self.model = model
        members = ObservedMembers(value, model: model, models: models).sound
    }

    /// These values.
    init(_ members: [MemberPath: ObservedMember], model: Int) {
        self.model = model
        self.members = members
    }

    subscript(path: MemberPath) -> ObservedMember? { members[path] }

    /// Puts a value in that is known otherwise than from a response.
    mutating func put(_ value: [UInt8], at path: MemberPath) {
        guard let slice = JSONSlice(value) else { return }
        members[path] = ObservedMember(value: slice, isShared: false)
    }
}
