import Foundation
import Mapping
import Synchronization
import TestSupport

@testable import Store

// Tests name the ids of rows that they make up by plain numbers, and upstreams by plain texts.
extension RowID where Self: ExpressibleByIntegerLiteral {
    init(integerLiteral value: Int64) { self.init(rawValue: value) }
}
extension PrincipalID: ExpressibleByIntegerLiteral {}
extension ObjectID: ExpressibleByIntegerLiteral {}
extension CommitNumber: ExpressibleByIntegerLiteral {}
extension UpstreamKey: ExpressibleByStringLiteral {
    init(stringLiteral text: String) { self.init(rawValue: text) }
}

/// A clock that stands still until a test moves it.
final class ManualTime: Sendable {
    private let time: Mutex<Int64>

    init(_ start: Int64 = 1_700_000_000_000_000) {
        time = Mutex(start)
    }

    func advance(_ microseconds: Int64) {
        time.withLock { $0 += microseconds }
    }

    var source: TimeSource {
        let read: @Sendable () -> Int64 = { self.time.withLock { $0 } }
        return TimeSource(wall: read, elapsed: read)
    }
}

/// The models most tests work with: issues that show users and labels.
///
/// - Parameter policy: what happens to responses that show a deleted object.
func exampleModels(onDelete policy: DeletionPolicy = .stale) throws -> [UpstreamKey: Models] {
    let user = ModelDeclaration(
        name: "User",
        identity: ["id"],
        keys: ["login"],
        properties: [
            PropertyDeclaration(name: "login", from: "login"),
            PropertyDeclaration(name: "admin", from: "admin"),
        ]
    )
    let label = ModelDeclaration(name: "Label", identity: ["id"], sharesAll: true)
    let issue = ModelDeclaration(
        name: "Issue",
        identity: ["id"],
        properties: [
            PropertyDeclaration(name: "number", from: "number"),
            PropertyDeclaration(name: "title", from: "title"),
            PropertyDeclaration(name: "reporterLogin", from: "user.login"),
            PropertyDeclaration(name: "user", from: "user", relation: .one("User")),
            PropertyDeclaration(name: "labels", from: "labels", relation: .many("Label")),
        ],
        local: ["score"]
    )
    let declarations = [user, label, issue].map { model in
        var model = model
        model.onDelete = policy
        return model
    }
    return ["github": try Models(declarations)]
}

extension StoreConfiguration {
    /// A configuration for tests that are not about its values.
    init(path: String, maximumFileBytes: Int64 = 1 << 30, models: [UpstreamKey: Models] = [:]) {
        self.init(
            path: path,
            maximumFileBytes: maximumFileBytes,
            batchDelay: .milliseconds(5),
            queueBytes: 64 << 20,
            objectLimit: 50_000,
            readers: 4,
            lag: Lag(lists: 30_000_000),
            changes: 100_000,
            models: models
        )
    }
}

/// A store with what a test needs around it.
struct Bench {
    let folder: TemporaryFolder
    let time: ManualTime
    let store: ObjectStore
    let notices: [StoreNotice]

    init(
        folder: TemporaryFolder = TemporaryFolder(),
        time: ManualTime = ManualTime(),
        maximumFileBytes: Int64 = 64 << 20,
        onDelete policy: DeletionPolicy = .stale,
        _ change: (inout StoreConfiguration) -> Void = { _ in }
    ) throws {
        self.folder = folder
        self.time = time
        var configuration = StoreConfiguration(
            path: folder.file(),
            maximumFileBytes: maximumFileBytes,
            models: try exampleModels(onDelete: policy)
        )
        configuration.batchDelay = .milliseconds(1)
        configuration.time = time.source
        // Tests that are about the lag of lists say how long it is.
        configuration.lag = Lag(lists: 0)
        change(&configuration)
        (store, notices) = try ObjectStore.open(configuration)
    }

    /// Replaces the models of all upstreams while the store is open, and what else is to be changed.
    func replaceModels(_ models: [UpstreamKey: Models], _ change: (inout StoreConfiguration) -> Void = { _ in })
        async throws
    {
        var configuration = store.core.configuration
        configuration.models = models
        change(&configuration)
        try await store.replaceConfiguration(by: configuration)
    }

    func key(_ url: String, principal: PrincipalID = .anonymous, context: String = "") -> CacheKey {
        CacheKey(upstream: "github", principal: principal, context: context, url: url)
    }

    /// A response whose request is sent a second from now, and which is complete a tenth of a second later.
    func response(
        _ url: String,
        _ body: String,
        _ rule: BodyRule? = nil,
        principal: PrincipalID = .anonymous,
        context: String = "",
        kind: Observation.Kind? = nil
    ) -> ReceivedDocument {
        time.advance(1_000_000)
        let start = store.clock.now()
        time.advance(100_000)
        return ReceivedDocument(
            key: key(url, principal: principal, context: context),
            head: Array("etag: \"\(url)\"".utf8),
            policy: [1, 2, 3],
            body: Array(body.utf8),
            start: start,
            end: store.clock.now(),
            kind: kind ?? (rule?.isList == true ? .list : .detail),
            rule: rule
        )
    }

    @discardableResult
    func receive(
        _ url: String,
        _ body: String,
        _ rule: BodyRule? = nil,
        principal: PrincipalID = .anonymous,
        context: String = "",
        kind: Observation.Kind? = nil
    ) async throws -> Receipt {
        try await store.receive(
            response(url, body, rule, principal: principal, context: context, kind: kind)
        )
    }

    /// Stores what a write's response shows.
    func complete(_ observation: ReceivedObservation, method: String = "POST") async throws {
        var write = CompletedWrite(
            upstream: "github",
            principal: .anonymous,
            context: "",
            path: "",
            time: store.clock.now()
        )
        (write.method, write.observation) = (method, observation)
        try await store.complete(write)
    }

    /// The one document at a URL.
    func document(_ url: String, principal: PrincipalID = .anonymous) async throws -> StoredDocument? {
        try await store.documents(at: key(url, principal: principal)).first
    }

    func body(_ url: String) async throws -> String? {
        try await document(url).map { String(decoding: $0.body, as: UTF8.self) }
    }
}

extension ObjectStore {
    /// Stores warnings of no response.
    func warn(about subjects: [String], _ message: String) {
        let now = clock.now()
        core.submitDispensable {
            try $0.warn(subjects.map { StoredWarning(kind: "k", subject: $0, message: message) }, at: now)
        }
    }
}

extension Bench {
    /// A store with something in every table that a copy takes over.
    static func filled() async throws -> Bench {
        let bench = try Bench()
        let mine = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        let list = #"[{"id":1,"title":"a","user":{"id":7,"login":"ada"},"labels":[{"id":3}]},{"id":2,"title":"b"}]"#
        let other = try await bench.receive("/issues", list, issues).document
        var same = bench.response("/issues", list, issues, principal: mine)
        same.resembled = other
        _ = try await bench.store.receive(same)
        try await bench.receive("/issues/1", #"{"id":1,"title":"c","user":{"id":7,"login":"ada"}}"#, issue)
        try await bench.receive("/issues/1", #"{"id":1,"title":"mine"}"#, issue, principal: mine)
        try await bench.receive("/plain", "no objects")
        bench.store.warn(about: ["one"], "a warning")
        let start = bench.store.clock.now()
        let shown = Array(#"{"id":9,"login":"nine"}"#.utf8)
        try await bench.complete(ReceivedObservation(body: shown, start: start, rule: user))
        var write = CompletedWrite(
            upstream: "github",
            principal: .anonymous,
            context: "",
            path: "/issues/2",
            time: bench.store.clock.now()
        )
        (write.method, write.bound) = ("PATCH", BoundObject(model: "Issue", identity: "2"))
        try await bench.store.complete(write)
        _ = try await bench.store.markSuspect(
            Invalidation(
                of: "github",
                paths: ["/users/3"],
                patterns: [],
                objects: [BoundObject(model: "User", identity: "3")],
                at: 0
            )
        )
        return bench
    }
}

let issue = BodyRule(model: "Issue", isList: false)
let issues = BodyRule(model: "Issue", isList: true)
let user = BodyRule(model: "User", isList: false)
let users = BodyRule(model: "User", isList: true)

/// What the `sqlite3` command says, without the last newline; errors included.
func sqlite(_ path: String, _ sql: String) -> String {
    guard let process = try? TestProcess("sqlite3", ["-cmd", ".timeout 60000", path, sql]) else {
        return "sqlite3 cannot be run"
    }
    process.waitForEnd()
    return (process.output + process.errors).trimmingCharacters(in: .newlines)
}

/// Changes a closed store's file by the `sqlite3` command, and gives its pages the checksums that this one does not know.
func alter(_ path: String, _ sql: String) -> String {
    let said = sqlite(path, sql)
    do { try PageChecksums.seal(path, isNew: true) } catch { return "\(error)" }
    return said
}

/// Another process that has one long transaction: one that reads keeps the WAL from being reset, one that writes all others
/// from writing.
final class ForeignReader {
    private let folder = TemporaryFolder()
    private let process: TestProcess
    private let input: Int32

    /// Returns once the transaction has begun; nil when it cannot.
    init?(_ path: String, mayWrite: Bool = false) {
        let (orders, results) = (folder.file("orders"), folder.file("results"))
        // Line by line: sqlite3 would buffer its output into a file.
        let script = #"exec stdbuf -oL sqlite3 "$0" < "$1" > "$2""#
        guard mkfifo(orders, 0o600) == 0,
            let process = try? TestProcess("/bin/sh", ["-c", script, path, orders, results])
        else { return nil }
        self.process = process
        // Waits for the other side.
        input = open(orders, O_WRONLY | O_CLOEXEC)
        let order = Array("BEGIN \(mayWrite ? "IMMEDIATE" : "DEFERRED"); SELECT count(*) FROM _meta;\n".utf8)
        guard write(input, order, order.count) == order.count else { return nil }
        for _ in 0..<6000 where (try? String(contentsOfFile: results, encoding: .utf8))?.isEmpty ?? true {
            usleep(10_000)
        }
    }

    func end() {
        close(input)
        process.waitForEnd()
    }
}
