/// What can be asked of the upstream, and the shape in which it answers.
enum Page: Hashable, Sendable {
    case user(Int)
    case users
    case label(Int)
    case labels
    case issue(Int)
    /// All, or those in one state.
    case issues(String?)
    case search(Int)

    var target: String {
        switch self {
        case .user(let id): "/users/\(id)"
        case .users: "/users"
        case .label(let id): "/labels/\(id)"
        case .labels: "/labels"
        case .issue(let id): "/issues/\(id)"
        case .issues(let state): state.map { "/issues?state=\($0)" } ?? "/issues"
        case .search(let query): "/search?q=\(query)"
        }
    }

    /// Below this path users are found by their names.
    static let names = "/names/"

    var path: String { String(target.prefix { $0 != "?" }) }

    /// The path above, whose responses list what is below it.
    var parent: String? {
        switch self {
        case .user: "/users"
        case .label: "/labels"
        case .issue: "/issues"
        default: nil
        }
    }

    var kind: Kind {
        switch self {
        case .user, .users: .user
        case .label, .labels: .label
        case .issue, .issues, .search: .issue
        }
    }

    /// The object that the page is about; nil for lists.
    var subject: Ref? {
        switch self {
        case .user(let id), .label(let id), .issue(let id): Ref(kind: kind, id: id)
        default: nil
        }
    }

    /// Whether its objects lead to no others.
    var isFlat: Bool { kind != .issue }

    /// Which objects it lists at a moment.
    func listed(in holdings: Holdings) -> [Int] {
        switch self {
        case .issues(let state?):
            holdings.all(.issue).filter { holdings[Ref(kind: .issue, id: $0)]?["state"] == .text(state) }
        case .search(let query): holdings.all(.issue).filter { $0 > query }
        default: holdings.all(kind)
        }
    }

    static let everything: [Page] =
        (1...3).map { .user($0) } + (1...3).map { .label($0) } + (1...4).map { .issue($0) }
        + [.users, .labels, .issues(nil), .issues("open"), .issues("closed"), .search(0), .search(1)]
}

/// One member of a shape.
indirect enum Field: Hashable, Sendable {
    case id
    case plain(String)
    /// A related object, in a shape of its own.
    case one(String, [Field])
    /// Its bare identity.
    case bare(String)
    case many(String, [Field])
    case keyed(String, [Field])
}

extension Page {
    /// The members that the page shows of each of its objects: details show more than lists, and some show members that
    /// nobody has declared.
    func shape(dated: Bool) -> [Field] {
        let updated: [Field] = dated ? [.plain("updated")] : []
        switch self {
        case .user: return [.id, .plain("login"), .plain("name"), .plain("karma"), .plain("note")]
        case .users: return [.id, .plain("login"), .plain("karma"), .plain("note")]
        case .label, .labels: return [.id, .plain("name"), .plain("color")]
        case .issue:
            return [.id, .plain("title"), .plain("state"), .plain("points"), .plain("body")] + updated + [
                .one("user", [.id, .plain("login"), .plain("name")]),
                .many("labels", [.id, .plain("name"), .plain("color")]),
                .keyed("watchers", [.id, .plain("login")]), .plain("views"),
            ]
        case .issues(let state):
            let user: [Field] = [.id, .plain("login")] + (state == "closed" ? [.plain("note")] : [])
            return [.id, .plain("title"), .plain("state"), .plain("points"), .plain("views")] + updated + [
                .one("user", user), .many("labels", [.id, .plain("name")]),
            ]
        case .search: return [.id, .plain("title")] + updated + [.plain("score"), .bare("user")]
        }
    }
}

extension Scope {
    static let principals = ["", "a", "b"]
    static let languages = ["", "de"]
    /// A language in which lists are polled that show nothing in common, so that each value has one source.
    static let secluded = "fr"
}

extension Page {
    /// The page about one object.
    init(of ref: Ref) {
        switch ref.kind {
        case .user: self = .user(ref.id)
        case .label: self = .label(ref.id)
        case .issue: self = .issue(ref.id)
        }
    }

    /// Reads a request's target.
    init?(target: String) {
        guard let page = Page.known[target] else { return nil }
        self = page
    }

    private static let known: [String: Page] = {
        var known: [String: Page] = [:]
        for page in everything + (5...9).map({ .issue($0) }) { known[page.target] = page }
        return known
    }()
}
