import Foundation
import Mapping
import Store
import TestSupport
import Testing

/// The cases about models in the file, by their numbers: versions, clusters and columns.
struct MappingModelStoreTests: MappingStoreFixtures {
    private func version(_ version: Int) -> ModelDeclaration {
        thingModel { model in
            model.version = version
            model.properties = [property(version == 0 ? "name" : "full_name")]
            guard version > 0 else { return }
            model.migrations = [Migration(to: 1, renamed: [.init(from: "name", to: "full_name")], removed: ["gone"])]
        }
    }

    @Test
    func `MT-54 MT-56 MT-57: objects of an earlier version are read as of the newer one, responses keep their bytes`()
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

    @Test func `a model's version can be undone once none of its objects is stored`() async throws {
        let new = try bench([version(1)])
        try await new.receive("/a", #"{"id":1,"full_name":"M"}"#, thing)
        #expect(try await new.store.clean(CleanFilter()).removed.objects == 1)
        await new.store.close()
        let old = try bench([version(0)], folder: new.folder, time: new.time)
        #expect(old.notices == [])
        try await old.receive("/a", #"{"id":1,"name":"M"}"#, thing)
        await old.store.close()
        // What is stored by now is of the version that is declared now.
        let again = try bench([version(0)], folder: new.folder, time: new.time)
        #expect(again.notices == [])
        #expect(try await again.json("Thing", "1") == [#"{"id":1,"name":"M"}"#])
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

    @Test func `NZ-03: keyed relations, arrays and folded values have columns`() async throws {
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
}
