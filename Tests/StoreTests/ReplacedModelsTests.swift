import Mapping
import TestSupport
import Testing

@testable import Store

/// Other models for an upstream while the store is open.
struct ReplacedModelsTests {
    /// Users whose name is in `name`, or in `login` from version 1 on.
    private func models(version: Int, secret: [String] = []) throws -> [UpstreamKey: Models] {
        var user = ModelDeclaration(
            name: "User",
            identity: ["id"],
            properties: [PropertyDeclaration(name: "login", from: version == 0 ? "name" : "login")]
        )
        (user.version, user.secret) = (version, secret)
        if version > 0 { user.migrations = [Migration(to: 1, renamed: [.init(from: "name", to: "login")])] }
        return ["github": try Models([user])]
    }

    @Test func `stored objects are migrated in the background`() async throws {
        let bench = try Bench { $0.models = try! models(version: 0) }
        for id in 1...600 { try await bench.receive("/users/\(id)", #"{"id":\#(id),"name":"x"}"#, user) }
        let path = bench.folder.file()
        #expect(sqlite(path, "SELECT count(*) FROM User WHERE login = 'x'") == "600")
        try await bench.replaceModels(try models(version: 1))
        #expect(sqlite(path, "SELECT version FROM _models WHERE model = 'User'") == "1")
        // One job for each 256 objects follows, each after the jobs before it.
        for _ in 1...4 { await bench.store.flush() }
        #expect(sqlite(path, "SELECT count(*) FROM User WHERE login = 'x'") == "600")
        #expect(try await bench.body("/users/1") == #"{"id":1,"name":"x"}"#)
        await bench.store.close()
    }

    @Test func `a response that waits to be stored is stored by the models of the moment`() async throws {
        let bench = try Bench { $0.models = try! models(version: 0) }
        let response = bench.response("/users/1", #"{"id":1,"password":"p"}"#, user)
        let prepared = bench.store.core.prepare(
            MappedSubject(body: response.body, rule: user, mappingContext: .none, url: "/users/1"),
            upstream: "github"
        )
        try await bench.replaceModels(try models(version: 1, secret: ["password"]))
        let current = try await bench.store.core.commit(.flush, .prompt) { session in
            let subject = MappedSubject(body: response.body, rule: user, mappingContext: .none, url: "/users/1")
            return session.current(prepared, of: subject, upstream: "github")
        }
        #expect(!prepared.isSecret && current.isSecret)
        await bench.store.close()
    }

    @Test func `models of a version below that of the stored objects are refused`() async throws {
        let bench = try Bench { $0.models = try! models(version: 1) }
        try await bench.receive("/users/1", #"{"id":1,"login":"x"}"#, user)
        await #expect(throws: StoreError.self) { try await bench.replaceModels(try models(version: 0)) }
        try await bench.receive("/users/2", #"{"id":2,"login":"y"}"#, user)
        #expect(sqlite(bench.folder.file(), "SELECT login FROM User ORDER BY 1") == "x\ny")
        await bench.store.close()
    }

    @Test func `the bound on the file, the delay and the limit on objects change while the store is open`() async throws
    {
        let bench = try Bench()
        try await bench.replaceModels(try exampleModels()) {
            ($0.maximumFileBytes, $0.batchDelay, $0.objectLimit) = (8 << 20, .milliseconds(2), 1)
        }
        let core = bench.store.core
        #expect(core.budget.maximum == 8 << 20 && core.batchDelay == 2_000)
        let pages = try await core.commit(.flush, .prompt) { try $0.database.query("PRAGMA max_page_count").integer() }
        #expect(try #require(pages) * core.budget.pageSize <= 8 << 20)
        let receipt = try await bench.receive("/users", #"[{"id":1,"login":"x"},{"id":2,"login":"y"}]"#, users)
        #expect(receipt.warnings.map(\.kind) == [.tooManyObjects])
        await bench.store.close()
    }
}
