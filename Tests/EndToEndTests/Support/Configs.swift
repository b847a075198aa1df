import TestSupport

/// The models and routes that most scenarios speak of: users who write posts that carry tags.
enum Configs {
    /// A config in front of one origin; `upstream` adds keys to it, `top` adds keys beside it.
    ///
    /// Where nothing else is said, lists do not lag, and the end of each response waits for its commit, however busy the
    /// machine is: who has a response need not wait for what it shows to hold.
    static func blog(_ origin: Origin, upstream: [String] = [], top: [String] = []) -> String {
        let lag = upstream.contains { $0.hasPrefix("lag:") } ? [] : ["lag: 0s"]
        let top = top.contains { $0.hasPrefix("store:") } ? top : top + ["store: { withhold: 10s }"]
        return """
            upstreams:
              blog:
                url: \(origin.url)
            \((lag + upstream).map { "    \($0)" }.joined(separator: "\n"))
            models:
              User:
                identity: id
                keys: [login]
                properties:
                  login: login
                  name: name
                  company: company
                local: [score]
              Tag: { identity: name, share: all }
              Post:
                identity: id
                properties:
                  title: title
                  likes: likes
                  author: { from: author, model: User }
                  tags: { from: tags, models: Tag }
              Note:
                identity: id
                modified: updated_at
                properties: { text: text }
            routes:
              - { path: "users", model: [User] }
              - { path: "users/{id:#}", model: User }
              - { path: "search/users", model: [User], root: items }
              - { path: "posts", model: [Post] }
              - { path: "posts/{id:#}", model: Post }
              - { path: "notes", model: [Note] }
              - { path: "notes/{id:#}", model: Note }
            \(top.joined(separator: "\n"))
            """
    }

    /// A config in front of one origin, without models.
    static func plain(_ origin: Origin, upstream: [String] = [], top: [String] = []) -> String {
        """
        upstreams:
          api:
            url: \(origin.url)
        \(upstream.map { "    \($0)" }.joined(separator: "\n"))
        \(top.joined(separator: "\n"))
        """
    }
}

/// Fields that many scenarios' origins send.
enum Fresh {
    /// Longer than any test takes, on whatever machine.
    static let hour: FieldLines = ["Cache-Control": "max-age=3600"]
    static let never: FieldLines = ["Cache-Control": "max-age=0"]

    static func tagged(_ etag: String, _ seconds: Int = 3600) -> FieldLines {
        ["Cache-Control": "max-age=\(seconds)", "ETag": "\"\(etag)\""]
    }
}

/// Runs so many copies of something at once, each on a thread of its own, and gives their results in order.
func together<Result: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Result) throws -> [Result] {
    let results = Monitor([Int: Swift.Result<Result, any Error>]())
    for index in 0..<count {
        startThread {
            let result = Swift.Result { try body(index) }
            results.withLock { $0[index] = result }
        }
    }
    results.wait { $0.count == count }
    let all = results.current
    return try (0..<count).map { index in
        guard let result = all[index] else { throw SocketError.timedOut }
        return try result.get()
    }
}

/// Something that runs on a thread of its own, whose result can be waited for.
final class Background<Result: Sendable>: Sendable {
    private let result = Monitor<Swift.Result<Result, any Error>?>(nil)

    init(_ body: @escaping @Sendable () throws -> Result) {
        let result = result
        startThread {
            let value = Swift.Result { try body() }
            result.withLock { $0 = value }
        }
    }

    /// Whether there is a result.
    var isOver: Bool { result.current != nil }

    /// Waits for the result.
    func value(_ limit: Duration = .seconds(120)) throws -> Result {
        result.wait(limit) { $0 != nil }
        guard let value = result.current else { throw SocketError.timedOut }
        return try value.get()
    }

    var isDone: Bool { result.current != nil }
}
