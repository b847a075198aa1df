/// How Larder is set up for a history: what its config says.
struct Setting: Hashable, Sendable, CustomStringConvertible {
    /// What is made of the date that issues say they were modified at.
    enum Dating: String, Hashable, Sendable {
        /// They say none.
        case none
        /// It decides which answer is newer, and is a property like any other.
        case declared
        /// It decides, and stays with the response that showed it.
        case deciding

        static let likely: [Dating] = [.none, .none, .none, .declared, .deciding]
    }

    /// How far lists may lag behind the truth.
    enum Lag: String, Hashable, Sendable {
        /// As nothing in the config says.
        case usual
        case none = "0s"
        /// For the whole history.
        case long = "1h"

        static let likely: [Lag] = [.usual, .usual, .none, .long]

        /// How old what a list of the upstream shows may be, with something to spare.
        var limit: Duration {
            switch self {
            case .usual: .seconds(20)
            case .none: .zero
            case .long: .seconds(1800)
            }
        }

        fileprivate var line: String { self == .usual ? "" : "lag: \(rawValue)" }
    }

    /// For how long the end of a response waits for the commit of what it shows.
    enum Withhold: String, Hashable, Sendable {
        /// As nothing in the config says.
        case usual
        case brief = "1ms"
        /// However busy the machine is.
        case long = "10s"

        static let likely: [Withhold] = [.brief, .long, .long, .long]

        fileprivate var entry: String { self == .usual ? "" : ", withhold: \(rawValue)" }
    }

    /// What becomes of lists with issues that are gone.
    enum Deletion: String, Hashable, Sendable, CaseIterable {
        case stale, remove, keep
    }

    var dating: Dating
    var lag: Lag
    var withhold: Withhold
    var onDelete: Deletion
    var memory: String
    var disk: String
    /// How many bytes make the body of each issue long, so that the store has to evict.
    var bulk = 0
    /// Whether commits can be held before memory has them.
    var isGated = false
    /// Whether streams follow what happens at the end.
    var isFollowed = false

    /// How much memory ready answers may take.
    static let memories = ["64MiB", "64MiB", "16KiB", "0"]

    /// Whether issues say when they were modified.
    var isDated: Bool { dating != .none }

    /// Members that no model declares, or that are `local`: each stays with the response that showed it (law 5).
    var undeclared: Set<String> {
        dating == .deciding ? ["note", "views", "score", "updated"] : ["note", "views", "score"]
    }

    var description: String {
        "modified: \(dating), lag: \(lag.rawValue)\(withhold.entry), on_delete: \(onDelete), memory: \(memory), store: \(disk)"
            + (bulk > 0 ? ", bodies of \(bulk)" : "")
    }

    /// The config file.
    ///
    /// Every request is sent and waited for: the model knows no other reason to serve what is stored than a failure.
    /// The upstream has long to answer: while a response is held, what is told meanwhile has to be looked through.
    func config(_ origin: Origin) -> String {
        """
        store: { maximum_size: \(disk)\(withhold.entry) }
        memory: { maximum_size: \(memory) }
        timeouts: { first_byte: 10m, idle: 10m }
        mode: online
        upstreams:
          tracker:
            url: \(origin.url)
            prefix: /api
            patience: forever
            \(lag.line)
          settling:
            url: \(origin.url)
            prefix: /settling
            patience: forever
            \(lag.line)
        models:
          User:
            identity: id
            keys: [login]
            properties: { login: login, name: name, karma: karma }
          Label: { identity: id, share: all }
          Issue:
            identity: id
            on_delete: \(onDelete)
            \(isDated ? "modified: updated" : "")
            properties:
              title: title
              state: state
              points: points
              body: body
              \(dating == .declared ? "updated: updated" : "")
              user: { from: user, model: User }
              labels: { from: labels, models: Label }
              watchers: { from: watchers, keyed: User }
            local: [score]
        routes:
          - { path: "users", model: [User] }
          - { path: "users/{id:#}", model: User, object: { id: id } }
          - { path: "names/{login}", model: User, object: { login: login } }
          - { path: "labels", model: [Label] }
          - { path: "labels/{id:#}", model: Label, object: { id: id } }
          - { path: "issues", model: [Issue], root: items }
          - { path: "issues", method: POST, model: Issue }
          - { path: "issues/{id:#}", model: Issue, object: { id: id } }
          - { path: "search", model: [Issue], root: items }
        """
    }
}
