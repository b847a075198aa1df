/// The requested properties of an object, such as `user.login` for one of a related object.
struct MemberMask: Sendable {
    /// Nil requests all.
    private var requested: [String: MemberMask]?
    /// Properties that are left out although they are requested.
    let excluded: [String]
    /// Paths of properties whose values belong to an outer object, which completes this one.
    var completed: [ArraySlice<String>] = []

    /// Requests everything.
    static let all = MemberMask(nil)

    static func excluding(_ names: [String]) -> MemberMask { MemberMask(nil, excluding: names) }

    /// Creates a mask from property paths; nil requests everything.
    init(_ members: [String]?, excluding excluded: [String] = []) {
        self.excluded = excluded
        guard let members else { return }
        requested = [:]
        for member in members { insert(member.split(separator: ".").map(String.init)[...]) }
    }

    private mutating func insert(_ path: ArraySlice<String>) {
        guard let name = path.first else { return }
        var child = requested?[name] ?? MemberMask([])
        if path.count == 1 { child = .all } else if child.requested != nil { child.insert(path.dropFirst()) }
        requested?[name] = child
    }

    /// Whether a property is requested by name, not with everything else.
    func names(_ name: String) -> Bool { requested?[name] != nil }

    /// The mask for a property's value; nil if the property is not requested.
    func member(_ name: String) -> MemberMask? { completed.contains { $0 == [name] } ? nil : within(name) }

    /// The same for a value within the property's, even if the property's own belongs to an outer object.
    func within(_ name: String) -> MemberMask? {
        guard !excluded.contains(name), var inner = requested.map({ $0[name] }) ?? .all else { return nil }
        inner.completed = completed.filter { $0.count > 1 && $0.first == name }.map { $0.dropFirst() }
        return inner
    }
}
