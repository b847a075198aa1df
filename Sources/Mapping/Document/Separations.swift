/// Members that do not move between two routes, whose answers disagree about them again and again.
///
/// Each of the two routes' documents keeps its own literal; from and to all other routes such a member moves as ever.
public struct Separations: Sendable, Equatable {
    /// One member that does not move between two routes.
    public struct Separation: Hashable, Sendable {
        /// The name that objects of the model have in the store.
        public var model: String
        /// The JSON pointer (RFC 6901) of the member within its object, without the leading slash.
        public var member: String
        /// The route with the lower number.
        public var lower: Int64
        /// The route with the higher number.
        public var higher: Int64

        /// Names a member and two routes, in whichever order.
        public init(model: String, member: String, between one: Int64, and other: Int64) {
            self.model = model
            self.member = member
            (lower, higher) = (min(one, other), max(one, other))
        }
    }

    /// By model and route, from which other routes which members do not come.
    private var strangers: [String: [Int64: [MemberPath: Set<Int64>]]] = [:]
    /// All of them.
    public private(set) var all: Set<Separation> = []

    /// Everything moves everywhere.
    public init(_ separations: some Sequence<Separation> = []) {
        for separation in separations { insert(separation) }
    }

    /// Adds one; false if it is known.
    @discardableResult
    public mutating func insert(_ separation: Separation) -> Bool {
        guard all.insert(separation).inserted else { return false }
        let path = MemberPath(pointer: separation.member)
        for (route, other) in [(separation.lower, separation.higher), (separation.higher, separation.lower)] {
            strangers[separation.model, default: [:]][route, default: [:]][path, default: []].insert(other)
        }
        return true
    }

    /// Lets a member move again.
    public mutating func remove(_ separation: Separation) {
        self = Separations(all.subtracting([separation]))
    }

    /// The members of a model that documents of a route do not take from some other routes.
    func strangers(to route: Int64, model: String) -> [MemberPath: Set<Int64>] {
        guard !all.isEmpty else { return [:] }
        return strangers[model]?[route] ?? [:]
    }
}
