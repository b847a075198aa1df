import Mapping
import Store
import Synchronization
import TestSupport

@testable import Admin
@testable import HTTPSemantics
@testable import Proxy
@testable import Settings

/// A daemon reduced to what the admin side sees of it: a real store in a folder of its own.
final class AdminFixture: AdminContext {
    let folder = TemporaryFolder()
    let store: ObjectStore
    let modes = ModeSwitch(.online)
    let metrics = Metrics(workers: 1, startTime: 0)
    let changeStreams: ChangeStreams? = nil
    let requests = RequestLog()
    let requestStreams: RequestStreams? = nil
    let origins = [
        UpstreamOrigin(name: "github", url: "https://api.github.com", routes: ["users/{login}", "a\"b"]),
        UpstreamOrigin(name: "forge", url: "https://forge.example", routes: []),
    ]
    let version = "0.1-test"
    let models: [String: Models]
    let token = "correct-horse-battery"
    let logins = DashboardLogins(token: AdminToken("correct-horse-battery"))
    let dashboardURL: String? = nil
    private let state = Mutex(Readiness.ready)

    init() throws {
        let models = try Models([
            ModelDeclaration(
                name: "User",
                identity: ["id"],
                keys: ["login"],
                properties: [PropertyDeclaration(name: "login", from: "login")]
            ),
            ModelDeclaration(
                name: "Issue",
                identity: ["id"],
                properties: [
                    PropertyDeclaration(name: "title", from: "title"),
                    PropertyDeclaration(name: "user", from: "user", relation: .one("User")),
                ]
            ),
        ])
        self.models = ["github": models, "forge": models]
        let configuration = StoreConfiguration(
            path: folder.path + "/larder.db",
            models: self.models
        )
        store = try ObjectStore.open(configuration).0
    }

    var traffic: TrafficHistory { TrafficHistory(metrics) }

    var readiness: Readiness {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }

    func figures() async throws(StoreError) -> StoreFigures {
        let count = try await store.count()
        var figures = StoreFigures()
        (figures.objects, figures.documents, figures.bytes) = (count.objects, count.documents, Int(count.bytes))
        return figures
    }

    func routes(spelled path: String) -> [RouteFilter] {
        guard path == "users/{login}" else { return [] }
        return ["github", "forge"].map { RouteFilter(upstream: $0) { $0.hasPrefix("/users/") } }
    }

    func clean(
        _ filter: CleanFilter,
        dryRun: Bool,
        progress: @escaping CleanProgress
    ) async throws(StoreError) -> CleanResult {
        try await store.clean(filter, dryRun: dryRun, progress: progress)
    }

    func inspect(_ document: DocumentID, in view: View) async throws(StoreError) -> ShownDocument? {
        guard let found = try await store.inspect(document) else { return nil }
        // As for an upstream that the config no longer has: nothing is proxied here.
        let body = try await store.received(document) ?? []
        return ShownDocument(document: found, fields: Fields(), body: body, ready: nil, notice: "received")
    }

    func explain(_ question: ExplainQuestion) async throws(ProblemDocument) -> Explanation {
        throw .badRequest("nothing is proxied here: \(question.url)")
    }

    // MARK: What is in the store

    /// Stores an answer as if the upstream had just given it.
    @discardableResult
    func receive(_ body: String, at url: String, of upstream: String = "github", as rule: BodyRule?) async throws
        -> Receipt
    {
        let now = store.clock.now()
        return try await store.receive(
            ReceivedDocument(
                key: DocumentKey(upstream: upstream, principal: .anonymous, context: "", url: url),
                body: Array(body.utf8),
                start: now,
                end: store.clock.now(),
                rule: rule
            )
        )
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
