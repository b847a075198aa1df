import Foundation
import Mapping
import Store
import TestSupport
import Testing

/// The cases about what is stored, counted, found and kept, by their numbers.
struct MappingStoreTests: MappingStoreFixtures {
    @Test func `FJ-35 FJ-36: posts and their users are counted, gone after a clean, and there again when loaded again`()
        async throws
    {
        let bench = try Bench()
        let list = "[" + (0..<20).map { #"{"id":\#($0),"user":{"id":\#(100 + $0 % 19)}}"# }.joined(separator: ",") + "]"
        try await bench.receive("/posts", list, issues)
        #expect(try await bench.store.count().objects == 39)
        _ = try await bench.store.clean(CleanFilter())
        #expect(try await bench.store.count().objects == 0)
        await bench.store.close()
        // Durable: what was cleaned does not come back with the file.
        let again = try Bench(folder: bench.folder, time: bench.time)
        #expect(try await again.store.count().objects == 0)
        try await again.receive("/posts", list, issues)
        #expect(try await again.store.count().objects == 39)
        await again.store.close()
    }

    @Test func `FJ-16 FJ-38: objects are counted by model, without those of which only the id is known`() async throws {
        let bench = try Bench()
        try await bench.receive("/a", #"[{"id":1,"user":7},{"id":2,"user":{"id":8},"labels":[1,2]}]"#, issues)
        let count = try await bench.store.count()
        #expect(count.models == ["Issue": 2, "User": 1])
        #expect(count.objects == 3)
        await bench.store.close()
    }

    @Test func `FJ-37: an identity without a property survives a restart`() async throws {
        let models = [ModelDeclaration(name: "Thing", identity: ["id"], properties: [property("name")])]
        let first = try bench(models)
        try await first.receive("/a", #"{"id":"x1","name":"n"}"#, thing)
        #expect(sqlite(first.folder.file(), "SELECT id, name FROM Thing") == "x1|n")
        await first.store.close()
        let second = try bench(models, folder: first.folder, time: first.time)
        #expect(try await second.json("Thing", "x1") == [#"{"id":"x1","name":"n"}"#])
        await second.store.close()
    }

    @Test func `an object is found by its keys, and by the captures of the route's path`() async throws {
        let bench = try bench([thingModel { $0.keys = ["login", "slug"] }])
        let bound = MappingContext(url: "/things/Octo", bound: ["login": "Octo", "slug": "ignored"])
        try await bench.receive("/things/Octo", #"{"id":7,"slug":"s","login":"octo"}"#, thing, in: bound)
        for key in ["octo", "Octo", "s"] { #expect(try await bench.json("Thing", key: key).count == 1) }
        #expect(try await bench.json("Thing", key: "other").isEmpty)
        // Renamed: the old name belongs to no object, what a path said stays.
        try await bench.receive("/things", #"[{"id":7,"slug":"s","login":"cat"}]"#, things)
        bench.time.advance(60_000_000)
        try await bench.receive("/things/7", #"{"id":7,"slug":"s","login":"cat"}"#, thing)
        #expect(try await bench.json("Thing", key: "cat").count == 1)
        #expect(try await bench.json("Thing", key: "octo").isEmpty)
        #expect(try await bench.json("Thing", key: "Octo").count == 1)
        // With the object its keys go.
        _ = try await bench.store.clean(CleanFilter())
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _keys") == "0")
        await bench.store.close()
    }

    @Test func `a capture bound to the identity identifies an object whose body does not`() async throws {
        let bench = try bench([thingModel()])
        try await bench.receive("/things/9", #"{"name":"n"}"#, thing, in: MappingContext(bound: ["id": "9"]))
        #expect(try await bench.json("Thing", "9") == [#"{"name":"n"}"#])
        await bench.store.close()
    }

    @Test func `MT-08 MA-06: a value that fails its check never replaces one that does not`() async throws {
        let bench = try bench([
            thingModel { $0.properties[0].checks = [.length(minimum: nil, maximum: 5)] }
        ])
        try await bench.receive("/a", #"{"id":1,"name":"good","age":1}"#, thing)
        try await bench.receive("/b", #"{"id":1,"name":"far too long","age":2}"#, thing)
        #expect(try await bench.body("/a") == #"{"id":1,"name":"good","age":2}"#)
        #expect(try await bench.body("/b") == #"{"id":1,"name":"far too long","age":2}"#)
        #expect(sqlite(bench.folder.file(), "SELECT name, age FROM Thing") == "good|2")
        let warnings = try await bench.store.warnings().rows
        #expect(warnings.map(\.kind) == ["quarantined"])
        #expect(warnings.map(\.subject) == ["Thing.name"])
        #expect(warnings.map(\.pointer) == ["/name"])
        #expect(warnings.first?.url == "/b")
        // Again: the same warning, counted, first and last seen.
        try await bench.receive("/c", #"[{"id":1,"name":"far too long"},{"id":2,"name":"much too long"}]"#, things)
        let again = try #require(try await bench.store.warnings().rows.first { $0.kind == "quarantined" })
        #expect(again.count == 3)
        #expect(again.first < again.last)
        await bench.store.close()
    }

    @Test func `MT-48 RK-16: values gathered by merge policies are in SQL views and survive a restart`() async throws {
        let models = [
            thingModel {
                $0.properties = [
                    property("name", merge: .keep), property("age", merge: .sum), property("tags", merge: .union),
                ]
            }
        ]
        let first = try bench(models)
        try await first.receive("/a", #"{"id":1,"name":"a","age":5,"tags":["x"]}"#, thing)
        try await first.receive("/b", #"{"id":1,"name":"b","age":3,"tags":["y","x"]}"#, thing)
        await first.store.close()
        let second = try bench(models, folder: first.folder, time: first.time)
        // The same response again counts once.
        try await second.receive("/b", #"{"id":1,"name":"b","age":4,"tags":["z"]}"#, thing)
        #expect(sqlite(first.folder.file(), "SELECT name, age, tags FROM Thing") == #"a|9|["x","y","z"]"#)
        #expect(try await second.json("Thing", "1") == [#"{"id":1,"name":"a","age":9,"tags":["x","y","z"]}"#])
        #expect(try await second.body("/a") == #"{"id":1,"name":"a","age":5,"tags":["x"]}"#)
        await second.store.close()
    }

    @Test func `MT-52: a response that shows a secret never reaches the file`() async throws {
        let bench = try bench([thingModel { $0.secret = ["token"] }])
        try await bench.receive("/a", #"{"id":1,"name":"before"}"#, thing)
        let receipt = try await bench.receive("/a", #"{"id":1,"token":"sEcReT-5","name":"n"}"#, thing)
        #expect(receipt.isInMemoryOnly)
        #expect(receipt.document == nil)
        #expect(receipt.objects.count == 1)
        #expect(try await bench.body("/a") == nil)
        #expect(try await bench.json("Thing", "1") == [#"{"id":1,"name":"n"}"#])
        // What cannot be read may hold one.
        let broken = try await bench.receive("/b", #"{"id":1,"token":"sEcReT-5""#, thing)
        #expect(broken.isInMemoryOnly)
        await bench.store.close()
        let left = try bench.folder.names.map { name in
            try String(contentsOfFile: bench.folder.file(name), encoding: .isoLatin1)
        }
        #expect(!left.contains { $0.contains("sEcReT-5") })
    }

    @Test func `RK-33 RK-31: an object that says it is deleted is no longer found`() async throws {
        let bench = try bench([
            thingModel { $0.deletedWhen = .has("deleted_at") }
        ])
        try await bench.receive("/a", #"[{"id":1,"name":"a"},{"id":2,"name":"b"}]"#, things)
        bench.time.advance(60_000_000)
        try await bench.receive("/b", #"{"id":2,"deleted_at":"2020-01-01"}"#, thing)
        #expect(try await bench.store.count().models == ["Thing": 1])
        #expect(try await bench.json("Thing").count == 1)
        #expect(sqlite(bench.folder.file(), "SELECT id FROM Thing") == "1")
        // The responses that showed it are as they were.
        #expect(try await bench.body("/a") == #"[{"id":1,"name":"a"},{"id":2,"name":"b"}]"#)
        await bench.store.close()
    }
}
