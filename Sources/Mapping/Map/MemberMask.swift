/// The requested properties of an object, such as `user.login` for one of a related object.
struct MemberMask: Sendable {
    private var children: [String: MemberMask] = [:]

    /// Requests everything.
    static let all = MemberMask()

    private init() {}

    /// Creates a mask from property paths; nil requests everything.
    init(_ members: [String]?) {
        guard let members else { return }
        isEverything = false
        for member in members {
            insert(member.split(separator: ".").map(String.init)[...])
        }
    }

    private var isEverything = true
    /// The exceptions when everything else is requested.
    var excluded: [String] = []

    /// Requests everything but members with these names.
    static func excluding(_ names: [String]) -> MemberMask {
        var mask = MemberMask.all
        mask.excluded = names
        return mask
    }

    private mutating func insert(_ path: ArraySlice<String>) {
        guard let name = path.first else { return }
        if path.count == 1 {
            children[name] = .all
        } else if children[name]?.isEverything != true {
            var child = children[name] ?? MemberMask([])
            child.insert(path.dropFirst())
            children[name] = child
        }
    }

    /// Whether a property is requested by name, not with everything else.
    func names(_ name: String) -> Bool { !isEverything && children[name] != nil }

    /// The mask for a property's value; nil if the property is not requested.
    func member(_ name: String) -> MemberMask? {
        isEverything ? (excluded.contains(name) ? nil : .all) : children[name]
    }
}
