import Logging
import Mapping
import Store
import TestSupport

@testable import Admin
@testable import EventLoops
@testable import Proxy
@testable import Settings

/// A daemon without its sockets, as the admin side sees it, with a store in a folder of its own.
final class AdminFixture: Sendable {
    let folder = TemporaryFolder()
    let core: DaemonCore
    let token = "correct-horse-battery"
    private let loop: EventLoop

    init() throws {
        let config = """
            upstreams:
              github: { url: https://api.github.com, prefix: /github }
              forge: { url: https://forge.example, prefix: /forge }
            models:
              User: { identity: id, keys: login, properties: { login: login } }
              Issue: { identity: id, properties: { title: title, user: { from: user, model: User } } }
            routes:
              - { path: "users/{login}", model: User }
            """
        let file = ConfigFile.parse(config, file: "larder.yaml", environment: [:])
        precondition(file.errors.isEmpty, "\(file.errors)")
        var settings = file.settings
        settings.store.path = folder.path + "/larder.db"
        try folder.write(token, to: "admin.token")
        loop = try EventLoop(name: "upstream")
        core = try DaemonCore(
            settings,
            version: "0.1-test",
            workers: 1,
            upstreamLoop: loop,
            adminLoop: loop,
            log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            asksUpstreams: false
        )
        loop.start()
        core.setState { $0.unreadiness = nil }
    }

    deinit { loop.stop() }

    var store: ObjectStore { core.store }

    // MARK: What is in the store

    /// Stores a response as if the upstream had just given it.
    @discardableResult
    func receive(_ body: String, at url: String, of upstream: String = "github", as rule: BodyRule?) async throws
        -> Receipt
    {
        let now = store.clock.now()
        return try await store.receive(
            ReceivedDocument(
                key: CacheKey(upstream: key(of: upstream), principal: .anonymous, context: "", url: url),
                body: Array(body.utf8),
                start: now,
                end: store.clock.now(),
                rule: rule
            )
        )
    }

    /// The name by which the store knows an upstream of the config.
    private func key(of name: String) -> UpstreamKey {
        core.upstreams.first { $0.name == name }?.storeKey ?? UpstreamKey(rawValue: name)
    }

    /// Two users, one issue that shows one of them, three documents.
    func fill() async throws {
        try await receive(
            #"{"id": 583231, "login": "octocat", "score": 1.0}"#,
            at: "/users/octocat",
            as: BodyRule(model: "User", isList: false)
        )
        try await receive(
            #"{"id": 2, "login": "hubot"}"#,
            at: "/users/hubot",
            as: BodyRule(model: "User", isList: false)
        )
        try await receive(
            #"{"id": 7, "title": "Broken", "user": {"id": 583231, "login": "octocat", "score": 1.0}}"#,
            at: "/repos/a/b/issues/1",
            as: BodyRule(model: "Issue", isList: false)
        )
    }
}
