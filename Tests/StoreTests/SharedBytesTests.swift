import Foundation
import GRDB
import Mapping
import TestSupport
import Testing

@testable import Store

/// Equal bytes of several principals are stored once, and each principal's data stays its own.
@Suite struct SharedBytesTests {
    /// Compressed it takes some 20,000 bytes.
    private static let opaque: String = {
        var generator = SystemRandomNumberGenerator()
        let numbers = (0..<5_000).map { _ in UInt32.random(in: 0x1000_0000 ... .max, using: &generator) }
        return "opaque " + numbers.map { String($0, radix: 16) }.joined()
    }()

    /// A list whose objects have the names that a state gives them, and undeclared members.
    private static func list(_ count: Int = 20, state: String = "a") -> String {
        let issues = (1...count).map {
            #"{"id":\#($0),"title":"\#(state)-\#($0)","user":{"id":\#($0 % 3),"login":"u\#($0 % 3)"},"more":"\#(state)"}"#
        }
        return "[\n" + issues.joined(separator: ",\n") + "]"
    }

    private static func principal(_ bench: Bench, _ number: Int) async throws -> PrincipalID {
        try await bench.store.principal([UInt8](repeating: UInt8(number), count: 32))
    }

    private static func label(_ number: Int) -> String {
        ObjectStore.label(ofPrincipal: [UInt8](repeating: UInt8(number), count: 32))
    }

    /// Stores a response as one that probably has the bytes of another document.
    @discardableResult
    private static func receive(
        _ bench: Bench,
        _ url: String,
        _ body: String,
        _ rule: BodyRule? = nil,
        of principal: PrincipalID,
        like other: DocumentID?
    ) async throws -> DocumentID? {
        var response = bench.response(url, body, rule, principal: principal)
        response.resembled = other
        return try await bench.store.receive(response).document
    }

    /// Stores the same list and the same text for so many principals.
    private static func receiveAlike(_ bench: Bench, _ count: Int) async throws {
        var (list, text): (DocumentID?, DocumentID?)
        for number in 1...count {
            let principal = try await principal(bench, number)
            list = try await receive(bench, "/issues", Self.list(), issues, of: principal, like: list)
            text = try await receive(bench, "/text", opaque, of: principal, like: text)
        }
    }

    private static func body(_ bench: Bench, _ url: String, of principal: PrincipalID) async throws -> String? {
        try await bench.document(url, principal: principal).map { String(decoding: $0.body, as: UTF8.self) }
    }

    private static func count(_ bench: Bench, _ sql: String) -> Int {
        Int(sqlite(bench.folder.file(), "SELECT \(sql)")) ?? -1
    }

    /// What does not fit together in a store: versions and bodies that are missing, left over, or counted wrongly.
    private static func mistakes(_ bench: Bench) async throws -> [String] {
        try await bench.store.core.read { database in
            var mistakes: [String] = []
            var owners: [Int64: Int64] = [:]
            for state in try database.query("SELECT state FROM _objects").all(read: { $0.bytes(0) }) {
                for entry in try ObjectRecord.decode(state) where entry.version != .zero {
                    owners[entry.version.rawValue, default: 0] += 1
                }
            }
            try database.query("SELECT version FROM _spilled").each { owners[$0.integer(0), default: 0] += 1 }
            let versions = Set(try database.query("SELECT id FROM _versions").all { $0.integer(0) })
            if versions != Set(owners.keys) { mistakes.append("versions \(versions.symmetricDifference(owners.keys))") }
            var shared: [Int64: Int64] = [:]
            try database.query("SELECT version, owners FROM _shared_versions").each {
                shared[$0.integer(0)] = $0.integer(1)
            }
            if shared != owners.filter({ $0.value > 1 }) { mistakes.append("owners \(shared), not \(owners)") }
            var documents: [Int64: Int64] = [:]
            try database.query("SELECT shared FROM _bodies WHERE shared IS NOT NULL").each {
                documents[$0.integer(0), default: 0] += 1
            }
            var counted: [Int64: Int64] = [:]
            try database.query("SELECT id, documents FROM _shared_bodies").each {
                counted[$0.integer(0)] = $0.integer(1)
            }
            if counted != documents { mistakes.append("bodies \(counted), not \(documents)") }
            for id in try database.query("SELECT id FROM _documents").all(read: { $0.id(0, as: DocumentID.self) }) {
                let stored = try StoredBody(document: id, in: database)
                _ = try stored.received(payloads: stored.payloads(in: database))
            }
            return mistakes
        }
    }

    @Test func `fifty principals with the same bytes have one copy of them, and each its own objects`() async throws {
        let bench = try Bench()
        let list = Self.list()
        var (lists, texts): ([DocumentID?], [DocumentID?]) = ([nil], [nil])
        for number in 1...50 {
            let principal = try await Self.principal(bench, number)
            lists.append(try await Self.receive(bench, "/issues", list, issues, of: principal, like: lists.last!))
            texts.append(try await Self.receive(bench, "/text", Self.opaque, of: principal, like: texts.last!))
            if number == 1 {
                #expect(Self.count(bench, "count(*) FROM _shared_versions") == 0)
                #expect(Self.count(bench, "count(*) FROM _shared_bodies") == 0)
            }
        }
        #expect(Self.count(bench, "count(*) FROM _versions") == 23)
        #expect(Self.count(bench, "count(compressed) FROM _shared_bodies") == 1)
        #expect(Self.count(bench, "count(*) FROM _shared_bodies") == 2)
        #expect(Self.count(bench, "count(coalesce(skeleton, body, compressed)) FROM _bodies") == 0)
        #expect(try await Self.mistakes(bench) == [])
        #expect(try await bench.store.count().models == ["Issue": 50 * 20, "User": 50 * 3])
        for number in [1, 2, 50] {
            let principal = try await Self.principal(bench, number)
            #expect(try await Self.body(bench, "/issues", of: principal) == list)
            #expect(try await Self.body(bench, "/text", of: principal) == Self.opaque)
            let found = try await bench.store.objects(ObjectQuery(model: "User", key: "u1"))
            #expect(found.rows.count == 50, "found by a key that is not their identity")
        }
        await bench.store.close()
        let again = try Bench(folder: bench.folder, time: bench.time)
        #expect(again.notices.isEmpty)
        #expect(try await Self.body(again, "/text", of: Self.principal(again, 7)) == Self.opaque)
        await again.store.close()
    }

    @Test func `a change for one principal is no change for another`() async throws {
        let bench = try Bench()
        let (one, two) = (try await Self.principal(bench, 1), try await Self.principal(bench, 2))
        let list = Self.list(2)
        let first = try await Self.receive(bench, "/issues", list, issues, of: one, like: nil)
        try await Self.receive(bench, "/issues", list, issues, of: two, like: first)
        bench.time.advance(60_000_000)
        try await bench.receive("/issues/1", #"{"id":1,"title":"mine alone"}"#, issue, principal: one)
        #expect(try await Self.body(bench, "/issues", of: one) == list.replacing("a-1", with: "mine alone"))
        #expect(try await Self.body(bench, "/issues", of: two) == list)
        let titles = try await bench.store.objects(ObjectQuery(model: "Issue", identity: "1")).rows
            .map { String(decoding: $0.json, as: UTF8.self).contains("mine alone") }
        #expect(titles.count == 2 && titles.count { $0 } == 1)
        #expect(try await Self.mistakes(bench) == [])
        await bench.store.close()
    }

    @Test func `a body is stored separately if it differs from the one it resembles, or if that one is gone`()
        async throws
    {
        let bench = try Bench()
        let (one, two) = (try await Self.principal(bench, 1), try await Self.principal(bench, 2))
        let first = try await Self.receive(bench, "/text", Self.opaque, of: one, like: nil)
        try await Self.receive(bench, "/text", Self.opaque + ".", of: two, like: first)
        #expect(Self.count(bench, "count(*) FROM _shared_bodies") == 0)
        #expect(try await Self.body(bench, "/text", of: two) == Self.opaque + ".")
        // The objects that have not changed are shared, and only those.
        let list = try await Self.receive(bench, "/issues", Self.list(), issues, of: one, like: nil)
        let changed = Self.list().replacing("a-7\"", with: "b-7\"")
        try await Self.receive(bench, "/issues", changed, issues, of: two, like: list)
        #expect(Self.count(bench, "count(*) FROM _versions") == 23 + 1)
        #expect(try await Self.body(bench, "/issues", of: two) == changed)
        #expect(try await Self.body(bench, "/issues", of: one) == Self.list())
        // A list is nothing that a text could share, nor is what was never stored.
        try await Self.receive(bench, "/other", Self.opaque, of: two, like: list)
        try await Self.receive(bench, "/more", Self.opaque, of: two, like: DocumentID(rawValue: 1 << 40))
        try await bench.store.removePaths(of: Invalidation(of: "github", paths: ["/text"], at: bench.store.clock.now()))
        try await Self.receive(bench, "/text", Self.opaque, of: two, like: first)
        #expect(try await Self.body(bench, "/text", of: two) == Self.opaque)
        #expect(try await Self.mistakes(bench) == [])
        await bench.store.close()
    }

    @Test func `a clean keeps bytes that other principals still have, and erases them with the last`() async throws {
        let bench = try Bench()
        try await Self.receiveAlike(bench, 3)
        func clean(_ filter: CleanFilter) async throws -> Int64 {
            let preview = try await bench.store.clean(filter, dryRun: true).removed
            let removed = try await bench.store.clean(filter).removed
            #expect(preview == removed)
            #expect(try await Self.mistakes(bench) == [])
            return removed.bytes
        }
        let size = Self.count(bench, "length(compressed) FROM _shared_bodies WHERE compressed IS NOT NULL") + 1_000
        let piece = "SELECT hex(substr(compressed, 100, 16)) FROM _shared_bodies WHERE compressed IS NOT NULL"
        let digits = Array(sqlite(bench.folder.file(), piece))
        let bytes = Data(try (0..<16).map { try #require(UInt8(String(digits[2 * $0...2 * $0 + 1]), radix: 16)) })
        #expect(try await clean(CleanFilter(principal: Self.label(1))) < size)
        #expect(try await Self.body(bench, "/issues", of: Self.principal(bench, 2)) == Self.list())
        #expect(try await clean(CleanFilter(principal: Self.label(3))) < size)
        #expect(try await Self.body(bench, "/text", of: Self.principal(bench, 2)) == Self.opaque)
        #expect(try await clean(CleanFilter()) > size)
        for table in ["_versions", "_shared_versions", "_bodies", "_shared_bodies", "_objects"] {
            #expect(Self.count(bench, "count(*) FROM \(table)") == 0, "\(table)")
        }
        for suffix in ["", "-wal"] {
            let content = FileManager.default.contents(atPath: bench.folder.file() + suffix) ?? Data()
            #expect(content.range(of: bytes) == nil && content.range(of: Data("a-7".utf8)) == nil)
        }
        await bench.store.close()
    }

    @Test func `a clean of all principals at once counts shared bytes once`() async throws {
        let bench = try Bench()
        try await Self.receiveAlike(bench, 9)
        let preview = try await bench.store.clean(CleanFilter(), dryRun: true).removed
        #expect(preview == (try await bench.store.clean(CleanFilter()).removed))
        #expect((20_000..<60_000).contains(preview.bytes), "\(preview.bytes)")
        await bench.store.close()
    }

    @Test(arguments: [true, false])
    func `spilled versions of two objects are deleted with the last of the objects`(isInOrder: Bool) async throws {
        let bench = try Bench()
        let shapes = "[" + (0..<1_000).map { #"{"id":1,"x\#($0)":0,"title":"a"}"# }.joined(separator: ",") + "]"
        let owners = [try await Self.principal(bench, 1), try await Self.principal(bench, 2)]
        var document: DocumentID?
        for owner in owners {
            document = try await Self.receive(bench, "/shapes", shapes, issues, of: owner, like: document)
        }
        #expect(Self.count(bench, "count(*) FROM _versions") == 1_000)
        #expect(Self.count(bench, "count(*) FROM _spilled") > 800)
        #expect(try await Self.mistakes(bench) == [])
        // Again, and once more: what is spilled is stored anew.
        for owner in owners {
            document = try await Self.receive(bench, "/again", shapes, issues, of: owner, like: document)
            #expect(try await Self.mistakes(bench) == [])
        }
        for owner in isInOrder ? owners : owners.reversed() {
            for url in ["/shapes", "/again"] { try await bench.receive(url, "[]", issues, principal: owner) }
            #expect(try await Self.mistakes(bench) == [])
        }
        #expect(Self.count(bench, "count(*) FROM _spilled") == 0)
        #expect(Self.count(bench, "count(*) FROM _versions") <= 2)
        await bench.store.close()
    }

    @Test func `when a copy is loaded its shared bytes are counted anew, whatever counts the copy has`() async throws {
        let bench = try Bench()
        try await Self.receiveAlike(bench, 3)
        let copy = bench.folder.file("copy")
        let forgeries = [
            "SELECT 1", "UPDATE _shared_versions SET owners = 1", "UPDATE _shared_versions SET owners = 77",
            "UPDATE _shared_bodies SET documents = 1", "UPDATE _shared_bodies SET documents = 77",
            "INSERT INTO _shared_bodies VALUES (77, 3, NULL, 'x', NULL, NULL); INSERT INTO _shared_versions VALUES (99, 3)",
        ]
        for forgery in forgeries {
            try? FileManager.default.removeItem(atPath: copy)
            try await bench.store.save(to: copy, principalKey: [1])
            _ = alter(copy, forgery.replacing("'x'", with: "x'00'"))
            let other = try Bench(time: bench.time)
            try TestProcess.run("cp", [copy, other.store.copyPaths.loading])
            let result = try await other.store.load(
                other.store.copyPaths.loading,
                principalKey: [1],
                replacing: true,
                bodyLimit: 1 << 20
            ) { _ in true }
            #expect(result.count.documents == 6)
            #expect(try await Self.mistakes(other) == [], "\(forgery)")
            for number in 1...3 {
                _ = try await other.store.clean(CleanFilter(principal: Self.label(number)))
                #expect(try await Self.mistakes(other) == [], "\(forgery)")
            }
            #expect(Self.count(other, "count(*) FROM _shared_bodies") == 0)
            await other.store.close()
        }
        // With another key only what belongs to no principal is taken over.
        let other = try Bench(time: bench.time)
        try await bench.store.save(to: copy + "2", principalKey: [1])
        try TestProcess.run("cp", [copy + "2", other.store.copyPaths.loading])
        _ = try await other.store.load(
            other.store.copyPaths.loading,
            principalKey: [2],
            replacing: true,
            bodyLimit: 1 << 20
        ) { _ in true }
        #expect(Self.count(other, "count(*) FROM _versions") == 0)
        #expect(Self.count(other, "count(*) FROM _shared_bodies") == 0)
        await other.store.close()
        await bench.store.close()
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `whatever is stored, replaced, cleaned, evicted and restarted, each principal has its bytes`(seed: UInt64)
        async throws
    {
        var random = SeededGenerator(seed: seed)
        let size: Int64 = 5 << 18
        var bench = try Bench(maximumFileBytes: size)
        var known: [[String: String]] = Array(repeating: [:], count: 9)
        var evicted: Int64 = 0
        var documents: [DocumentID] = []
        let filler = String(repeating: "y", count: 3_000)
        func forget(_ principals: Range<Int>, where isGone: (String) -> Bool) {
            for number in principals { known[number] = known[number].filter { !isGone($0.key) } }
        }
        for step in 0..<300 {
            let number = 1 + random.below(8)
            let principal = try await Self.principal(bench, number)
            let url = random.pick(["/issues?1", "/issues?2", "/text", "/long"])
            switch random.below(100) {
            case 0..<75:
                let state = random.pick(["a", "b", "c"]) + filler
                let body = url.hasPrefix("/issues") ? Self.list(12, state: state) : state + Self.opaque
                let other = documents.isEmpty || random.once(in: 8) ? nil : random.pick(documents.suffix(12))
                bench.time.advance(60_000_000)
                let rule = url.hasPrefix("/issues") ? issues : nil
                let id = try await Self.receive(bench, url, body, rule, of: principal, like: other)
                documents.append(try #require(id))
                known[number][url] = body
            case 75..<80:
                _ = try await bench.store.clean(CleanFilter(principal: Self.label(number)))
                known[number] = [:]
            case 80..<84:
                _ = try await bench.store.clean(CleanFilter(url: { $0 == url }))
                forget(1..<9) { $0 == url }
            case 84..<87:
                _ = try await bench.store.clean(CleanFilter(model: "User", identity: "1"))
                forget(1..<9) { $0.hasPrefix("/issues") }
            case 87..<90:
                try await bench.store.removePaths(
                    of: Invalidation(of: "github", paths: [url], at: bench.store.clock.now())
                )
                forget(1..<9) { $0.split(separator: "?")[0] == url.split(separator: "?")[0] }
            case 90..<93:
                evicted += bench.store.statistics.evicted
                await bench.store.close()
                bench = try Bench(folder: bench.folder, time: bench.time, maximumFileBytes: size)
                #expect(bench.notices.isEmpty)
            default:
                let key = bench.key(url, principal: principal)
                guard let stored = try await bench.store.documents(at: key).first else {
                    // It was evicted.
                    known[number][url] = nil
                    continue
                }
                let received = try await bench.store.received(stored.id)
                #expect(received.map { String(decoding: $0, as: UTF8.self) } == known[number][url], "step \(step)")
            }
            let mistakes = try await Self.mistakes(bench)
            #expect(mistakes == [], "step \(step)")
            if !mistakes.isEmpty { return }
        }
        #expect(evicted + bench.store.statistics.evicted > 0)
        _ = try await bench.store.clean(CleanFilter())
        #expect(Self.count(bench, "count(*) FROM _versions") == 0)
        await bench.store.close()
        #expect(sqlite(bench.folder.file(), "PRAGMA integrity_check") == "ok")
    }
}
