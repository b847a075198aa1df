import Mapping
import TestSupport
import Testing

@testable import Store

/// The cases about objects that others no longer name, by their numbers.
struct MappingRelationStoreTests: MappingStoreFixtures {
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

    private let aHouse = BodyRule(model: "House", arity: .one)

    @Test func `RK-17: an object that leaves a relation is deleted only where that is declared`() async throws {
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

    @Test
    func `RK-17: the former object of a relation to one or keyed by name is deleted unless the response shows it`()
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

    @Test func `RK-17: objects seen meanwhile, or of other principals, are not deleted`() async throws {
        let bench = try bench([thingModel(), house()])
        let mine = try await bench.store.principal([UInt8](repeating: 9, count: 32))
        try await bench.receive("/1", #"{"id":1,"cats":[{"id":1},{"id":2}]}"#, aHouse)
        try await bench.receive("/1", #"{"id":1,"cats":[{"id":1},{"id":2}]}"#, aHouse, principal: mine)
        var overlapping = bench.response("/1", #"{"id":1,"cats":[]}"#, aHouse)
        let seen = bench.response("/things/2", #"{"id":2,"name":"Zach"}"#, thing)
        overlapping.end = seen.end
        _ = try await bench.store.receive(seen)
        _ = try await bench.store.receive(overlapping)
        #expect(try await bench.json("Thing", "2").count == 2)
        #expect(try await bench.json("Thing", "1").count == 1)
        await bench.store.close()
    }

    @Test func `RK-30: an object is not deleted because a list no longer shows it`() async throws {
        let bench = try bench([thingModel()])
        try await bench.receive("/a", #"[{"id":1},{"id":2}]"#, things)
        try await bench.receive("/b/2", #"{"id":2}"#, thing)
        try await bench.receive("/a", "[]", things)
        #expect(try await bench.json("Thing", "2").count == 1)
        await bench.store.close()
    }

    @Test func `MT-53: a reference does not keep its object from being cleaned`() async throws {
        let bench = try bench([thingModel { $0.properties.append(property("friend", .one("Thing"))) }])
        try await bench.receive("/a", #"{"id":1,"friend":2}"#, thing)
        try await bench.receive("/b", #"{"id":2,"name":"n"}"#, thing)
        _ = try await bench.store.clean(CleanFilter(model: "Thing", identity: "2"))
        #expect(try await bench.json("Thing", "2").isEmpty)
        #expect(try await bench.json("Thing", "1") == [#"{"id":1,"friend":2}"#])
        await bench.store.close()
    }
}
