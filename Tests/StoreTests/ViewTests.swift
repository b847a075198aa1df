import Mapping
import Store
import TestSupport
import Testing

struct ViewTests {
    @Test func `a view per model can be queried while the store is open`() async throws {
        let bench = try Bench()
        try await bench.receive(
            "/issues",
            #"""
            [{"id":1,"title":"a","user":{"id":7,"login":"x"},"labels":[{"id":3,"name":"bug"},{"id":4,"name":"ui"}]},
             {"id":2,"title":"b","user":null,"labels":[]},{"id":"x9","title":"c","user":7}]
            """#,
            issues
        )
        try await bench.receive("/issues/1", #"{"id":1,"title":"new","number":5}"#, issue)
        let path = bench.folder.file()
        #expect(sqlite(path, "SELECT upstream, principal, login FROM User") == "github|anonymous|x")
        #expect(
            sqlite(path, "SELECT id, number, title, reporterLogin, user, labels FROM Issue ORDER BY title")
                == """
                2||b|||[]
                x9||c|x|7|
                1|5|new|x|7|[3,4]
                """
        )
        #expect(sqlite(path, "SELECT json FROM Label WHERE id = 3") == #"{"id":3,"name":"bug"}"#)
        #expect(
            sqlite(path, "SELECT i.title FROM Issue i JOIN User u ON u.id = i.user AND u.login = 'x' ORDER BY 1")
                == "c\nnew"
        )
        await bench.store.close()
    }

    @Test func `views follow upstreams that come and go while the store is open`() async throws {
        let bench = try Bench()
        try await bench.receive("/users/7", #"{"id":7,"login":"x"}"#, user)
        let (path, models) = (bench.folder.file(), try #require(try exampleModels()["github"]))
        try await bench.replaceModels(["github": models, "other": models])
        #expect(sqlite(path, "SELECT login FROM github_User") == "x")
        try await bench.replaceModels(["other": models])
        #expect(sqlite(path, "SELECT count(*) FROM User") == "0")
        // A response on its way from an upstream that is gone is stored by the models that it began with.
        try await bench.receive("/users/8", #"{"id":8,"login":"y"}"#, user)
        try await bench.replaceModels(["github": models])
        #expect(sqlite(path, "SELECT login FROM User ORDER BY 1") == "x\ny")
        await bench.store.close()
    }

    @Test func `a model with the name of another one's view does not keep the store from being opened`() async throws {
        let github = try #require(try exampleModels()["github"])
        let models = try Models([ModelDeclaration(name: "a_User", identity: ["id"])])
        let bench = try Bench { $0.models = ["a": github, "b": github, "c": models] }
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM a_User") == "0")
        await bench.store.close()
    }

    @Test func `views follow the models, with the upstream's name if two upstreams declare one model`() async throws {
        let first = try Bench()
        try await first.receive("/users/7", #"{"id":7,"login":"x"}"#, user)
        await first.store.close()
        let github = try #require(try exampleModels()["github"])
        let bench = try Bench(folder: first.folder, time: first.time) {
            $0.models = ["github": github, "other": github]
        }
        let path = bench.folder.file()
        #expect(sqlite(path, "SELECT login FROM github_User") == "x")
        #expect(sqlite(path, "SELECT count(*) FROM other_User") == "0")
        #expect(sqlite(path, "SELECT count(*) FROM User").contains("no such table"))
        await bench.store.close()
        let again = try Bench(folder: bench.folder)
        #expect(sqlite(path, "SELECT login FROM User") == "x")
        await again.store.close()
    }
}
