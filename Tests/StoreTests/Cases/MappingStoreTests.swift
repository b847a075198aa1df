import Foundation
import Mapping
import Store
import TestSupport
import Testing

private func property(
    _ name: String,
    _ relation: Relation? = nil,
    checks: [ValueCheck] = [],
    merge: MergePolicy = .latest
) -> PropertyDeclaration {
    PropertyDeclaration(name: name, from: name, relation: relation, checks: checks, merge: merge)
}

private func bench(
    _ declarations: [ModelDeclaration],
    folder: TemporaryFolder = TemporaryFolder(),
    time: ManualTime = ManualTime()
) throws -> Bench {
    let models = ["github": try Models(declarations)]
    return try Bench(folder: folder, time: time) { $0.models = models }
}

extension Bench {
    fileprivate func json(_ model: String, _ identity: String? = nil, key: String? = nil) async throws -> [String] {
        try await store.objects(ObjectQuery(model: model, identity: identity, key: key)).rows
            .map { String(decoding: $0.json, as: UTF8.self) }
    }

    @discardableResult
    fileprivate func receive(
        _ url: String,
        _ body: String,
        _ rule: BodyRule,
        in surroundings: MappingContext
    ) async throws -> Receipt {
        var document = answer(url, body, rule)
        document.surroundings = surroundings
        return try await store.receive(document)
    }
}

/// The cases that speak of what is stored, counted, found and kept, by their numbers.
struct MappingStoreTests {
    private let thing = BodyRule(model: "Thing", shape: .one)
    private let things = BodyRule(model: "Thing", shape: .many)

    private func thingModel(_ change: (inout ModelDeclaration) -> Void = { _ in }) -> ModelDeclaration {
        var model = ModelDeclaration(name: "Thing", identity: ["id"], properties: [property("name"), property("age")])
        change(&model)
        return model
    }

    @Test func `FJ-35 FJ-36: posts and their users are counted, gone after a clean, and there again when loaded again`()
        async throws
    {
        let bench = try Bench()
        let list = "[" + (0..<20).map { #"{"id":\#($0),"user":{"id":\#(100 + $0 % 19)}}"# }.joined(separator: ",") + "]"
        try await bench.receive("/posts", list, issues)
        #expect(try await bench.store.count().objects == 39)
        _ = try await bench.store.clean(.all)
        #expect(try await bench.store.count().objects == 0)
        await bench.store.close()
        // Durable: what was cleaned does not come back with the file.
        let again = try Bench(folder: bench.folder, time: bench.time)
        #expect(try await again.store.count().objects == 0)
        try await again.receive("/posts", list, issues)
        #expect(try await again.store.count().objects == 39)
        await again.store.close()
    }

    @Test func `FJ-16 FJ-38: objects are counted by model, and stubs are none`() async throws {
        let bench = try Bench()
        try await bench.receive("/a", #"[{"id":1,"user":7},{"id":2,"user":{"id":8},"labels":[1,2]}]"#, issues)
        let count = try await bench.store.count()
        #expect(count.models == ["Issue": 2, "User": 1])
        #expect(count.objects == 3)
        await bench.store.close()
    }

    @Test func `FJ-37: an identity that is in no property is kept, and there after the next start`() async throws {
        let models = [ModelDeclaration(name: "Thing", identity: ["id"], properties: [property("name")])]
        let first = try bench(models)
        try await first.receive("/a", #"{"id":"x1","name":"n"}"#, thing)
        #expect(sqlite(first.folder.file(), "SELECT id, name FROM Thing") == "x1|n")
        await first.store.close()
        let second = try bench(models, folder: first.folder, time: first.time)
        #expect(try await second.json("Thing", "x1") == [#"{"id":"x1","name":"n"}"#])
        await second.store.close()
    }

    @Test func `an object is found by its keys, and by what the route's path says of it`() async throws {
        let bench = try bench([thingModel { $0.keys = ["login", "slug"] }])
        let bound = MappingContext(url: "/things/Octo", bound: ["login": "Octo", "slug": "ignored"])
        try await bench.receive("/things/Octo", #"{"id":7,"slug":"s","login":"octo"}"#, thing, in: bound)
        for key in ["octo", "Octo", "s"] { #expect(try await bench.json("Thing", key: key).count == 1) }
        #expect(try await bench.json("Thing", key: "other").isEmpty)
        // Renamed: the old name is nobody's, what a path said stays.
        try await bench.receive("/things", #"[{"id":7,"slug":"s","login":"cat"}]"#, things)
        bench.time.advance(60_000_000)
        try await bench.receive("/things/7", #"{"id":7,"slug":"s","login":"cat"}"#, thing)
        #expect(try await bench.json("Thing", key: "cat").count == 1)
        #expect(try await bench.json("Thing", key: "octo").isEmpty)
        #expect(try await bench.json("Thing", key: "Octo").count == 1)
        // With the object its keys go.
        _ = try await bench.store.clean(.all)
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _keys") == "0")
        await bench.store.close()
    }

    @Test func `what the path binds to the identity names an object whose body does not`() async throws {
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

    @Test func `MT-48 RK-16: what policies gather is known to SQL and survives the next start`() async throws {
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
        // The same answer again counts once.
        try await second.receive("/b", #"{"id":1,"name":"b","age":4,"tags":["z"]}"#, thing)
        #expect(sqlite(first.folder.file(), "SELECT name, age, tags FROM Thing") == #"a|9|["x","y","z"]"#)
        #expect(try await second.json("Thing", "1") == [#"{"id":1,"name":"a","age":9,"tags":["x","y","z"]}"#])
        #expect(try await second.body("/a") == #"{"id":1,"name":"a","age":5,"tags":["x"]}"#)
        await second.store.close()
    }

    @Test func `MT-52: an answer that shows a secret never reaches the file`() async throws {
        let bench = try bench([thingModel { $0.secret = ["token"] }])
        try await bench.receive("/a", #"{"id":1,"name":"before"}"#, thing)
        let receipt = try await bench.receive("/a", #"{"id":1,"token":"sEcReT-5","name":"n"}"#, thing)
        #expect(receipt.isSecret)
        #expect(receipt.document == nil)
        #expect(receipt.objects.count == 1)
        #expect(try await bench.body("/a") == nil)
        #expect(try await bench.json("Thing", "1") == [#"{"id":1,"name":"n"}"#])
        // What cannot be read may hold one.
        let broken = try await bench.receive("/b", #"{"id":1,"token":"sEcReT-5""#, thing)
        #expect(broken.isSecret)
        await bench.store.close()
        let left = try bench.folder.names.map { name in
            try String(contentsOfFile: bench.folder.file(name), encoding: .isoLatin1)
        }
        #expect(!left.contains { $0.contains("sEcReT-5") })
    }

    @Test func `RK-33 RK-31: what says that it is deleted is no object any more`() async throws {
        let bench = try bench([
            thingModel { $0.deletedWhen = .has("deleted_at") }
        ])
        try await bench.receive("/a", #"[{"id":1,"name":"a"},{"id":2,"name":"b"}]"#, things)
        bench.time.advance(60_000_000)
        try await bench.receive("/b", #"{"id":2,"deleted_at":"2020-01-01"}"#, thing)
        #expect(try await bench.store.count().models == ["Thing": 1])
        #expect(try await bench.json("Thing").count == 1)
        #expect(sqlite(bench.folder.file(), "SELECT id FROM Thing") == "1")
        // The answers that showed it are as they were.
        #expect(try await bench.body("/a") == #"[{"id":1,"name":"a"},{"id":2,"name":"b"}]"#)
        await bench.store.close()
    }

    private func version(_ version: Int) -> ModelDeclaration {
        thingModel { model in
            model.version = version
            model.properties = [property(version == 0 ? "name" : "full_name")]
            guard version > 0 else { return }
            model.migrations = [Migration(to: 1, renamed: [.init(from: "name", to: "full_name")], removed: ["gone"])]
        }
    }

    @Test
    func `MT-54 MT-56 MT-57: objects of an earlier version are read as of the newer one, answers keep their bytes`()
        async throws
    {
        let old = try bench([version(0)])
        try await old.receive("/a", #"{"id":1,"name":"M","gone":true}"#, thing)
        await old.store.close()
        let new = try bench([version(1)], folder: old.folder, time: old.time)
        #expect(new.notices == [.modelMigrated(upstream: "github", model: "Thing", from: 0, to: 1)])
        #expect(try await new.json("Thing", "1") == [#"{"id":1,"full_name":"M"}"#])
        #expect(try await new.body("/a") == #"{"id":1,"name":"M","gone":true}"#)
        await new.store.flush()
        await new.store.flush()
        #expect(sqlite(old.folder.file(), "SELECT full_name FROM Thing") == "M")
        // What comes now comes in the new form.
        try await new.receive("/b", #"{"id":1,"full_name":"N"}"#, thing)
        #expect(try await new.json("Thing", "1").first?.contains(#""full_name":"N""#) == true)
        await new.store.close()
        let again = try bench([version(1)], folder: old.folder, time: old.time)
        #expect(again.notices == [])
        await again.store.close()
    }

    @Test func `MT-55: a store that is newer than the models is refused and left as it is`() async throws {
        let new = try bench([version(1)])
        try await new.receive("/a", #"{"id":1,"full_name":"M"}"#, thing)
        await new.store.close()
        let before = try String(contentsOfFile: new.folder.file(), encoding: .isoLatin1)
        do {
            _ = try bench([version(0)], folder: new.folder, time: new.time)
            Issue.record("it was opened")
        } catch let error as StoreError {
            #expect(
                error
                    == .newerModel(
                        path: new.folder.file(),
                        upstream: "github",
                        model: "Thing",
                        found: 1,
                        declared: 0
                    )
            )
            #expect(error.description.contains("Thing") && error.description.contains("--store"))
        }
        #expect(try String(contentsOfFile: new.folder.file(), encoding: .isoLatin1) == before)
        let again = try bench([version(1)], folder: new.folder, time: new.time)
        #expect(try await again.json("Thing", "1") == [#"{"id":1,"full_name":"M"}"#])
        await again.store.close()
    }

    @Test func `FJ-23 NZ-06: a cluster's objects have a view each for base and concrete models`() async throws {
        let bench = try bench([
            thingModel {
                $0.choices = [
                    ModelChoice(model: "Red", condition: .member("colour", isOneOf: [Array(#""red""#.utf8)])),
                    ModelChoice(model: "Blue", condition: .all([.has("blue"), .not(.has("red"))])),
                ]
            },
            ModelDeclaration(name: "Red", properties: [property("heat")], base: "Thing"),
            ModelDeclaration(name: "Blue", properties: [property("blue")], base: "Thing"),
        ])
        try await bench.receive(
            "/a",
            #"[{"id":1,"colour":"red","heat":5},{"id":2,"blue":true,"name":"b"},{"id":3},{"id":4,"red":1,"blue":1}]"#,
            things
        )
        let path = bench.folder.file()
        #expect(sqlite(path, "SELECT id FROM Thing ORDER BY id") == "1\n2\n3\n4")
        #expect(sqlite(path, "SELECT id, heat FROM Red") == "1|5")
        #expect(sqlite(path, "SELECT id, name FROM Blue") == "2|b")
        #expect(try await bench.store.count().models == ["Thing": 4])
        #expect(try await bench.json("Red") == [#"{"id":1,"colour":"red","heat":5}"#])
        await bench.store.close()
    }

    @Test func `a concrete model is cleaned among its base's objects, and found there`() async throws {
        let bench = try bench([
            thingModel {
                $0.choices = [
                    ModelChoice(model: "Red", condition: .member("colour", isOneOf: [Array(#""red""#.utf8)]))
                ]
            },
            ModelDeclaration(name: "Red", properties: [property("heat")], base: "Thing"),
        ])
        for (id, colour) in [(1, "red"), (2, "blue"), (3, "red"), (4, "green")] {
            try await bench.receive("/\(id)", #"{"id":\#(id),"colour":"\#(colour)"}"#, thing)
        }
        let preview = try await bench.store.clean(CleanFilter(model: "Red"), dryRun: true)
        #expect((preview.removed.objects, preview.removed.documents) == (2, 2))
        #expect(try await bench.store.clean(CleanFilter(model: "Red", identity: "2")).removed.objects == 0)
        #expect(try await bench.store.clean(CleanFilter(model: "Red", identity: "3")).removed.objects == 1)
        #expect(try await bench.store.clean(CleanFilter(model: "Red")).removed.objects == 1)
        #expect(sqlite(bench.folder.file(), "SELECT id FROM Thing ORDER BY id") == "2\n4")
        #expect(try await bench.store.clean(CleanFilter(model: "Thing")).removed.objects == 2)
        await bench.store.close()
    }

    @Test func `NZ-03: columns of keyed relations, arrays and folded values`() async throws {
        let bench = try bench([
            thingModel {
                $0.properties = [
                    property("files", .keyed("File")),
                    PropertyDeclaration(name: "tagNames", from: "tags[].name"),
                    PropertyDeclaration(name: "owners", from: "shares[].owner", relation: .many("Owner")),
                    PropertyDeclaration(
                        name: "span",
                        from: "",
                        parts: [.init(name: "start", from: "loc"), .init(name: "length", from: "meta.len")]
                    ),
                ]
            },
            ModelDeclaration(name: "File", identity: ["@parent.id", "@key"], properties: [property("size")]),
            ModelDeclaration(name: "Owner", identity: ["id"], properties: [property("name")]),
        ])
        try await bench.receive(
            "/a",
            #"{"id":1,"files":{"x":{"size":3}},"tags":[{"name":"a"},{"n":1},7],"shares":[{"owner":{"id":4,"name":"o"}}],"loc":2,"meta":{"len":9}}"#,
            thing
        )
        let path = bench.folder.file()
        #expect(sqlite(path, "SELECT files FROM Thing") == #"{"x":"1:x"}"#)
        #expect(sqlite(path, "SELECT tagNames FROM Thing") == #"["a",null,null]"#)
        #expect(sqlite(path, "SELECT owners FROM Thing") == "[4]")
        #expect(sqlite(path, "SELECT span FROM Thing") == #"{"start":2,"length":9}"#)
        #expect(sqlite(path, "SELECT identity, size FROM File") == "1:x|3")
        #expect(sqlite(path, "SELECT id, name FROM Owner") == "4|o")
        await bench.store.close()
    }

    @Test func `RK-30: an object that a list no longer shows is not deleted by that`() async throws {
        let bench = try bench([thingModel()])
        try await bench.receive("/a", #"[{"id":1},{"id":2}]"#, things)
        try await bench.receive("/b/2", #"{"id":2}"#, thing)
        try await bench.receive("/a", "[]", things)
        #expect(try await bench.json("Thing", "2").count == 1)
        await bench.store.close()
    }

    private func house(_ change: (inout PropertyDeclaration) -> Void = { _ in }) -> ModelDeclaration {
        var cats = property("cats", .many("Thing"))
        cats.former = .delete
        change(&cats)
        return ModelDeclaration(
            name: "House",
            identity: ["id"],
            properties: [cats, property("best", .one("Thing"))]
        )
    }

    private let aHouse = BodyRule(model: "House", shape: .one)

    @Test func `RK-17: what a relation names no more is deleted where that is declared, and else stays`() async throws {
        for policy in FormerPolicy.allCases {
            let bench = try bench([thingModel(), house { $0.former = policy }])
            try await bench.receive("/1", #"{"id":1,"cats":[{"id":1,"name":"Jeff"},{"id":2,"name":"Zach"},3]}"#, aHouse)
            try await bench.receive("/things/2", #"{"id":2,"name":"Zach"}"#, thing)
            // Absent says nothing, and a value that does not name its objects does not say which is missing.
            try await bench.receive("/1b", #"{"id":1}"#, aHouse)
            try await bench.receive("/1c", #"{"id":1,"cats":"two"}"#, aHouse)
            #expect(try await bench.store.count().models == ["House": 1, "Thing": 2])
            try await bench.receive("/1d", #"{"id":1,"cats":[{"id":1,"name":"Jeff"},{"id":2},3]}"#, aHouse)
            try await bench.receive("/1", #"{"id":1,"cats":[{"id":1,"name":"Jeff"}]}"#, aHouse)
            let left = policy == .delete ? ["Jeff"] : ["Jeff", "Zach"]
            #expect(try await bench.store.count().models["Thing"] == left.count)
            #expect(sqlite(bench.folder.file(), "SELECT name FROM Thing ORDER BY id") == left.joined(separator: "\n"))
            try await bench.receive("/1", #"{"id":1,"cats":null}"#, aHouse)
            #expect(try await bench.store.count().models["Thing"] == (policy == .delete ? nil : 2))
            // What is seen again is there again.
            try await bench.receive("/things/2", #"{"id":2,"name":"Zoe"}"#, thing)
            #expect(try await bench.json("Thing", "2") == [#"{"id":2,"name":"Zoe"}"#])
            await bench.store.close()
        }
    }

    @Test func `RK-17: to one object and by name the former object is deleted as well, but none that the answer shows`()
        async throws
    {
        let one = property("best", .one("Thing")), keyed = property("byName", .keyed("Thing"))
        let model = ModelDeclaration(
            name: "House",
            identity: ["id"],
            properties: [one, keyed].map { property in
                var property = property
                property.former = .delete
                return property
            }
        )
        let bench = try bench([thingModel(), model])
        try await bench.receive("/1", #"{"id":1,"best":{"id":1},"byName":{"a":{"id":2},"b":{"id":3}}}"#, aHouse)
        #expect(try await bench.store.count().models["Thing"] == 3)
        try await bench.receive("/1", #"{"id":1,"best":{"id":3},"byName":{"a":{"id":2}}}"#, aHouse)
        // 1 is nowhere any more, 3 has moved.
        #expect(sqlite(bench.folder.file(), "SELECT id FROM Thing ORDER BY id") == "2\n3")
        await bench.store.close()
    }

    @Test func `RK-17: of what was seen meanwhile, or belongs to somebody else, nothing is deleted`() async throws {
        let bench = try bench([thingModel(), house()])
        let mine = try await bench.store.principal([UInt8](repeating: 9, count: 32))
        try await bench.receive("/1", #"{"id":1,"cats":[{"id":1},{"id":2}]}"#, aHouse)
        try await bench.receive("/1", #"{"id":1,"cats":[{"id":1},{"id":2}]}"#, aHouse, principal: mine)
        var overlapping = bench.answer("/1", #"{"id":1,"cats":[]}"#, aHouse)
        let seen = bench.answer("/things/2", #"{"id":2,"name":"Zach"}"#, thing)
        overlapping.end = seen.end
        _ = try await bench.store.receive(seen)
        _ = try await bench.store.receive(overlapping)
        #expect(try await bench.json("Thing", "2").count == 2)
        #expect(try await bench.json("Thing", "1").count == 1)
        await bench.store.close()
    }

    @Test func `MT-53: a reference does not keep what it points to`() async throws {
        let bench = try bench([thingModel { $0.properties.append(property("friend", .one("Thing"))) }])
        try await bench.receive("/a", #"{"id":1,"friend":2}"#, thing)
        try await bench.receive("/b", #"{"id":2,"name":"n"}"#, thing)
        _ = try await bench.store.clean(CleanFilter(model: "Thing", identity: "2"))
        #expect(try await bench.json("Thing", "2").isEmpty)
        #expect(try await bench.json("Thing", "1") == [#"{"id":1,"friend":2}"#])
        await bench.store.close()
    }
}
