import Mapping
import TestSupport
import Testing

@testable import Store

/// The journal of changes: what is in it, and for how long.
struct JournalTests {
    private let ada = #"{"id":1,"login":"ada"}"#

    @Test func `a new object is journaled as created, a changed one as changed, an unchanged one not at all`()
        async throws
    {
        let bench = try Bench()
        try await bench.receive("/users", #"[{"id":1,"login":"ada"},{"id":2,"login":"bela"}]"#, users)
        try await bench.receive("/users/1", ada, user)
        try await bench.receive("/users/1", #"{ "id" : 1.0, "login" : "\u0061da" }"#, user)
        try await bench.receive("/users/2", #"{"id":2,"login":"bella"}"#, user)
        try await bench.receive("/text", "text")
        #expect(try await bench.changes() == ["created User 1", "created User 2", "changed User 2"])
        let page = try #require(try await bench.store.changes(after: 0, limit: 100))
        #expect(page.isLast && page.floor == 0 && page.erased == 0)
        #expect(page.end == bench.store.sequence)
        #expect(Set(page.changes.map(\.sequence)).count == 3)
        let first = try #require(page.changes.first)
        #expect((first.upstream, first.principal, first.context) == ("github", "anonymous", ""))
        #expect(first.time > 1_700_000_000_000_000 && first.json == nil)
        await bench.store.close()
    }

    @Test func `pages of any size contain every change once`() async throws {
        let bench = try Bench()
        for round in 0..<20 {
            let objects = (0..<round).map { #"{"id":\#($0 * 7 % 11),"login":"u\#(round)"}"# }
            try await bench.receive("/users?page=\(round)", "[\(objects.joined(separator: ","))]", users, kind: .detail)
        }
        let all = try #require(try await bench.store.changes(after: 0, limit: 10_000)).changes
        #expect(all.map(\.sequence) == all.map(\.sequence).sorted())
        for size in [1, 2, 3, 7, 50] {
            var (position, found): (CommitNumber, [ObjectChange]) = (0, [])
            while let page = try await bench.store.changes(after: position, limit: size) {
                #expect(page.changes.count <= size)
                found += page.changes
                position = page.end
                if page.isLast { break }
            }
            #expect(found == all)
        }
        await bench.store.close()
    }

    @Test func `journal entries have the upstream's spelling of identities, and current values`() async throws {
        let bench = try Bench()
        try await bench.receive("/users/1", #"{"id":"1","login":"ada"}"#, user)
        try await bench.receive("/users/2", #"{"id":2.0,"login":"bela"}"#, user)
        try await bench.receive("/users/3", #"{"id":"a\u0062c","login":"cleo"}"#, user)
        try await bench.receive("/users/1", #"{"id":"1","login":"ADA"}"#, user)
        let page = try #require(try await bench.store.changes(after: 0, limit: 100, values: true))
        let ids = page.changes.map { String(decoding: $0.id, as: UTF8.self) }
        #expect(ids == [#""1""#, "2.0", #""a\u0062c""#, #""1""#])
        let values = page.changes.map { String(decoding: $0.json ?? [], as: UTF8.self) }
        #expect(values[0] == #"{"id":"1","login":"ADA"}"#)
        #expect(values[0] == values[3])
        await bench.store.close()
    }

    @Test func `an object's changes are journaled separately for each principal and context`() async throws {
        let bench = try Bench()
        let mine = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        try await bench.receive("/users/1", ada, user)
        try await bench.receive("/users/1", ada, user, principal: mine)
        try await bench.receive("/users/1", ada, user, context: "de")
        let changes = try #require(try await bench.store.changes(after: 0, limit: 100)).changes
        #expect(changes.map(\.principal) == ["anonymous", "p-01010101", "anonymous"])
        #expect(changes.map(\.context) == ["", "", "de"])
        await bench.store.close()
    }

    @Test func `an object that says it is deleted is journaled as deleted, and may come back`() async throws {
        var model = ModelDeclaration(
            name: "User",
            identity: ["id"],
            properties: [PropertyDeclaration(name: "login", from: "login")]
        )
        model.deletedWhen = .member("gone", isOneOf: [Array("true".utf8)])
        let models: [UpstreamKey: Models] = ["github": try Models([model])]
        let bench = try Bench { $0.models = models }
        try await bench.receive("/users/1", ada, user)
        try await bench.receive("/users/1", #"{"id":1,"login":"ada","gone":true}"#, user)
        try await bench.receive("/users/1", #"{"id":1,"login":"ada","gone":true}"#, user)
        try await bench.receive("/users/1", #"{"id":1,"login":"ada","gone":false}"#, user)
        try await bench.receive("/users/2", #"{"id":2,"login":"bela","gone":true}"#, user)
        // A later 404 deletes it a second time.
        bench.time.advance(1_000_000)
        let (bound, now) = (BoundObject(model: "User", identity: "2"), bench.store.clock.now())
        try await bench.store.commit(ObservedAbsence(key: bench.key("/users/2"), bound: bound, start: now))
        #expect(
            try await bench.changes() == ["created User 1", "deleted User 1", "created User 1", "deleted User 2"]
        )
        await bench.store.close()
    }

    @Test func `an object that is found deleted again and again is journaled once`() async throws {
        let bench = try Bench()
        try await bench.receive("/users/1", ada, user)
        for _ in 1...3 {
            bench.time.advance(1_000_000)
            let bound = BoundObject(model: "User", identity: "1")
            let now = bench.store.clock.now()
            try await bench.store.commit(ObservedAbsence(key: bench.key("/users/1"), bound: bound, start: now))
        }
        #expect(try await bench.changes() == ["created User 1", "deleted User 1"])
        await bench.store.close()
    }

    @Test func `a mark on an object is journaled and numbered`() async throws {
        let bench = try Bench()
        let receipt = try await bench.receive("/users/1", ada, user)
        try await bench.store.core.commit(.note, .prompt) { session in
            for id in receipt.objects {
                try session.record(id).map { session.markChanged($0, wasKnown: true, as: .unknown) }
            }
        }
        #expect(try await bench.changes() == ["created User 1", "unknown User 1"])
        #expect(bench.store.mayHaveChanged(receipt.objects, since: receipt.sequence))
        await bench.store.close()
    }

    @Test func `a document is not dirty because of its own changes`() async throws {
        let bench = try Bench()
        try await bench.receive("/users", #"[{"id":1,"login":"ada"},{"id":2,"login":"bela"}]"#, users)
        #expect(try await bench.store.variants(at: bench.key("/users")).map(\.form) == [.asReceived])
        await bench.store.close()
    }

    @Test func `the oldest journal entries are removed by whole commits, and the floor follows`() async throws {
        let bench = try Bench { $0.changes = 16 }
        for number in 1...100 { try await bench.receive("/users/\(number)", #"{"id":\#(number),"login":"x"}"#, user) }
        let page = try #require(try await bench.store.changes(after: 0, limit: 1000))
        #expect((16...19).contains(page.changes.count))
        #expect(page.changes.last?.identity == "100")
        #expect(page.floor.rawValue + 2 == page.changes.first?.sequence.rawValue)
        await bench.store.close()
        let again = try Bench(folder: bench.folder, time: bench.time) { $0.changes = 4 }
        let rest = try #require(try await again.store.changes(after: 0, limit: 1000))
        #expect(rest.changes.map(\.identity) == ["97", "98", "99", "100"])
        await again.store.close()
    }

    @Test func `without a journal no change is kept, and switching it on starts a new one`() async throws {
        let bench = try Bench()
        try await bench.receive("/users/1", ada, user)
        await bench.store.close()
        let off = try Bench(folder: bench.folder, time: bench.time) { $0.changes = 0 }
        try await off.receive("/users/2", #"{"id":2,"login":"bela"}"#, user)
        #expect(try await off.store.changes(after: 0, limit: 10) == nil)
        #expect(sqlite(off.folder.file(), "SELECT count(*) FROM _changes") == "0")
        await off.store.close()
        let on = try Bench(folder: bench.folder, time: bench.time)
        try await on.receive("/users/3", #"{"id":3,"login":"cleo"}"#, user)
        #expect(try await on.changes() == ["created User 3"])
        #expect(try #require(try await on.store.changes(after: 0, limit: 10)).floor == off.store.sequence)
        await on.store.close()
    }

    @Test func `a journal survives restarts, and names those whose objects were evicted`() async throws {
        var bench = try Bench()
        try await bench.receive("/users/1", ada, user)
        // Its document goes, and then the object that nothing shows any more.
        let document = try #require(try await bench.document("/users/1")?.id)
        bench.store.remove(document)
        await bench.store.flush()
        _ = try await bench.store.core.commit(.note, .prompt) { try $0.evictOrphans(until: .max, limit: 10) }
        #expect(try await bench.store.count().objects == 0)
        for _ in 0..<3 {
            await bench.store.close()
            bench = try Bench(folder: bench.folder, time: bench.time)
            // The next object has a number of its own, though the highest of all is free.
            try await bench.receive("/users/2", #"{"id":2,"login":"bela\#(bench.time.source.wall())"}"#, user)
        }
        #expect(
            try await bench.changes() == ["created User 1", "created User 2", "changed User 2", "changed User 2"]
        )
        await bench.store.close()
    }

    @Test func `a clean removes the names of objects from the journal`() async throws {
        let bench = try Bench()
        try await bench.receive("/users/1", #"{"id":"secret-name","login":"ada"}"#, user)
        try await bench.receive("/users/2", #"{"id":"secret-name-2","login":"bela"}"#, user)
        let document = try #require(try await bench.document("/users/2")?.id)
        bench.store.remove(document)
        await bench.store.flush()
        _ = try await bench.store.core.commit(.note, .prompt) { try $0.evictOrphans(until: .max, limit: 10) }
        #expect(sqlite(bench.folder.file(), "SELECT identity FROM _gone") == "secret-name-2")
        _ = try await bench.store.clean(CleanFilter(model: "User"))
        let page = try #require(try await bench.store.changes(after: 0, limit: 10))
        #expect(page.changes.isEmpty && page.erased == 2)
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _gone") == "0")
        await bench.store.close()
    }

    @Test func `a full store evicts documents before it removes journal entries`() async throws {
        let bench = try Bench(maximumFileBytes: 4 << 20)
        let filler = String(repeating: "x", count: 2000)
        for number in 0..<4000 {
            try await bench.receive("/users/\(number)", #"{"id":\#(number),"login":"\#(filler)"}"#, user)
        }
        let page = try #require(try await bench.store.changes(after: 0, limit: 10_000))
        #expect(page.changes.count + page.erased > 100)
        #expect(page.erased == 0)
        #expect(page.changes.last?.identity == "3999")
        await bench.store.close()
    }

    @Test(arguments: [1, 2, 3]) func `journal entries are the same after encoding and decoding`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            var (sequence, entries): (CommitNumber, [Journal.Entry]) = (
                .init(rawValue: Int64(random.below(1 << 30))), []
            )
            for _ in 0...random.below(40) {
                let distance = random.once(in: 4) ? Int64(random.below(1 << 20)) + 1 : 1
                sequence = CommitNumber(rawValue: sequence.rawValue + distance)
                let kind = try #require(ObjectChange.Kind(rawValue: UInt8(random.below(4))))
                let object = ObjectID(rawValue: Int64(random.below(1 << 31)))
                entries.append(Journal.Entry(sequence: sequence, object: object, kind: kind))
            }
            let bytes = Journal.encode(entries, at: sequence)
            #expect(try Journal.decode(bytes, at: sequence) == entries)
        }
    }

    @Test func `a list of a hundred new objects costs one row of some hundred bytes`() async throws {
        let bench = try Bench()
        let objects = (1...100).map { #"{"id":\#($0 * 100_003),"login":"u\#($0)"}"# }
        try await bench.receive("/users", "[\(objects.joined(separator: ","))]", users)
        #expect(sqlite(bench.folder.file(), "SELECT count(*), max(length(entries)) < 110 FROM _changes") == "1|1")
        await bench.store.close()
    }
}

extension Bench {
    /// All entries of the journal, such as `created User 1`.
    func changes() async throws -> [String] {
        try await store.changes(after: 0, limit: 100_000)?.changes.map { "\($0.kind.name) \($0.model) \($0.identity)" }
            ?? []
    }
}
