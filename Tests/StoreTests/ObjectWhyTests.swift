import Foundation
import Mapping
import TestSupport
import Testing

@testable import Store

/// Where what is known of an object comes from, and what shows it.
struct ObjectWhyTests {
    private func object(_ bench: Bench, _ model: String, _ identity: String) async throws -> ObjectID {
        let page = try await bench.store.objects(ObjectQuery(model: model, identity: identity))
        return try #require(page.rows.first).id
    }

    private func why(_ bench: Bench, _ model: String, _ identity: String) async throws -> ObjectWhy {
        let found = try await bench.store.why(try await object(bench, model, identity), patience: .seconds(600))
        return try #require(found)
    }

    /// `value <- METHOD url`, then `?value <- METHOD url` for a challenger and `!rule value` for what was replaced.
    private func account(_ why: ObjectWhy, _ pointer: String) throws -> [String] {
        let member = try #require(why.members.first { $0.pointer == pointer })
        func line(_ sighting: Provenance.Sighting) -> String {
            let source = why.sources[sighting.source]
            return String(decoding: sighting.value, as: UTF8.self)
                + (source.map { " <- \($0.method) \($0.url)" } ?? " <- ?")
        }
        var lines = [
            member.shown,
            member.challenger.map { sighting in
                var sighting = sighting
                sighting.value.insert(UInt8(ascii: "?"), at: 0)
                return sighting
            },
        ].compactMap { $0 }.map(line)
        if let replaced = member.replaced {
            lines.append("!\(replaced.rule.rawValue) \(String(decoding: replaced.value, as: UTF8.self))")
        }
        return lines
    }

    @Test func `why shows for each member the response it is from, and the value it replaced`() async throws {
        let bench = try Bench()
        try await bench.receive("/users", #"[{"id":1,"login":"old","admin":true,"bio":"b"}]"#, users)
        try await bench.receive("/users/1", #"{"id":1,"login":"new"}"#, user)
        let why = try await why(bench, "User", "1")
        #expect(try account(why, "/login") == [#""new" <- GET /users/1"#, #"!C2 "old""#])
        #expect(try account(why, "/admin") == ["true <- GET /users"])
        let login = try #require(why.members.first { $0.pointer == "/login" })
        #expect(login.properties == ["login"])
        #expect(why.members.first { $0.pointer == "/bio" }?.standing == .undeclared)
        #expect(why.members.first { $0.pointer == "/id" }?.moves == false)
        await bench.store.close()
    }

    @Test func `the URL that showed a member is known longer than its document`() async throws {
        let bench = try Bench()
        for number in 0..<40 { try await bench.receive("/other/\(number)", #"{"id":\#(number + 50)}"#, user) }
        try await bench.receive("/users/1?page=2", #"{"id":1,"login":"ada"}"#, user)
        for number in 40..<80 { try await bench.receive("/other/\(number)", #"{"id":\#(number + 50)}"#, user) }
        #expect(try account(try await why(bench, "User", "1"), "/login") == [#""ada" <- GET /users/1?page=2"#])
        try await bench.store.removePaths(
            of: Invalidation(of: "github", paths: ["/users/1"], at: bench.store.clock.now())
        )
        let after = try await why(bench, "User", "1")
        #expect(try account(after, "/login") == [#""ada" <- GET /users/1?page=2"#])
        #expect(after.sources.values.allSatisfy { !$0.isStored })
        #expect(after.documents.rows.isEmpty)
        await bench.store.close()
        let again = try Bench(folder: bench.folder, time: bench.time)
        #expect(try account(try await why(again, "User", "1"), "/login") == [#""ada" <- GET /users/1?page=2"#])
        await again.store.close()
    }

    @Test func `a member that a write set names its method and URL`() async throws {
        let bench = try Bench { $0.lag = Lag(lists: 30_000_000) }
        try await bench.receive("/users/1", #"{"id":1,"login":"ada"}"#, user)
        bench.time.advance(1_000_000)
        let now = bench.store.clock.now()
        try await bench.complete(
            ReceivedObservation(
                body: Array(#"{"id":1,"login":"bela"}"#.utf8),
                start: now,
                rule: user,
                url: "/users/1"
            ),
            method: "PATCH"
        )
        try await bench.receive("/users", #"[{"id":1,"login":"cleo"}]"#, users)
        let why = try await why(bench, "User", "1")
        #expect(
            try account(why, "/login")
                == [#""bela" <- PATCH /users/1"#, #"?"cleo" <- GET /users"#, #"!C2 "ada""#]
        )
        await bench.store.close()
    }

    @Test func `members of overlapping reads that disagree are in doubt, with both values`() async throws {
        let bench = try Bench()
        var one = bench.response("/users/1", #"{"id":1,"login":"a"}"#, user)
        var two = bench.response("/users", #"[{"id":1,"login":"b"}]"#, users)
        (one.start, two.start) = (one.end - 50, one.end - 40)
        two.kind = .detail
        one.end = two.end
        _ = try await bench.store.receive(one)
        _ = try await bench.store.receive(two)
        let why = try await why(bench, "User", "1")
        let login = try #require(why.members.first { $0.pointer == "/login" })
        #expect(login.standing == .doubt)
        #expect(try account(why, "/login") == [#""a" <- GET /users/1"#, #"?"b" <- GET /users"#])
        await bench.store.close()
    }

    @Test func `why shows the value with the later modification time`() async throws {
        let dated = ModelDeclaration(
            name: "Note",
            identity: ["id"],
            properties: [PropertyDeclaration(name: "text", from: "text")],
            modified: "updated_at"
        )
        let bench = try Bench { $0.models = ["github": (try? Models([dated])) ?? .none] }
        let rule = BodyRule(model: "Note", isList: false)
        try await bench.receive("/notes/1", #"{"id":1,"text":"new","updated_at":"2024-05-02T00:00:00Z"}"#, rule)
        try await bench.receive("/notes/1?v=2", #"{"id":1,"text":"old","updated_at":"2024-05-01T00:00:00Z"}"#, rule)
        let why = try await why(bench, "Note", "1")
        #expect(
            try account(why, "/text") == [#""new" <- GET /notes/1"#]
        )
        await bench.store.close()
    }

    @Test func `documents that show an object are listed with what they show, the newest first`() async throws {
        let bench = try Bench()
        let labels = #""labels":[{"id":5,"name":"bug"}]"#
        try await bench.receive("/issues", #"[{"id":1,"title":"t","user":{"id":1,"login":"old","x":1}}]"#, issues)
        try await bench.receive(
            "/issues/2",
            #"{"id":2,"title":"t","user":{"id":1,"login":"old","y":1},\#(labels)}"#,
            issue
        )
        try await bench.receive("/nobody", #"{"id":9,"login":"else"}"#, user)
        try await bench.receive("/users/1", #"{"id":1,"login":"new"}"#, user)
        // Issue 2 has another user now: that one's undeclared member is not known.
        try await bench.receive("/issues/2?v=2", #"{"id":2,"user":{"id":9,"login":"else"}}"#, issue)
        let page = try await bench.store.documents(
            showing: try await object(bench, "User", "1"),
            patience: .seconds(600)
        )
        try #require(page.rows.map(\.row.url) == ["/users/1", "/issues/2", "/issues"])
        #expect(page.rows.map(\.form)[0] == .asReceived)
        #expect(page.rows.map(\.form)[2] == .composed)
        guard case .outdated(let reason) = page.rows[1].form else {
            Issue.record("\(page.rows[1].form)")
            return
        }
        #expect(reason.contains("y is not known of User:9"))
        #expect(page.next == nil)
        await bench.store.close()
    }

    @Test func `an object's documents are listed in pages, however short the time for each`() async throws {
        let bench = try Bench()
        for number in 0..<300 {
            let author = number % 3 == 0 ? 7 : 1_000_000 + number
            try await bench.receive("/issues/\(number)", #"{"id":\#(number),"user":{"id":\#(author)}}"#, issue)
        }
        let id = try await object(bench, "User", "7")
        for patience in [Duration.seconds(60), .zero] {
            var (urls, after, pages) = ([String](), Int64?.none, 0)
            repeat {
                let page = try await bench.store.documents(showing: id, limit: 7, after: after, patience: patience)
                #expect(page.rows.count <= 7)
                urls += page.rows.map(\.row.url)
                after = page.next
                pages += 1
            } while after != nil && pages < 1000
            #expect(urls == (0..<100).reversed().map { "/issues/\($0 * 3)" })
        }
        await bench.store.close()
    }

    @Test func `for an object that no document shows, the list of documents is empty at once`() async throws {
        let bench = try Bench()
        try await bench.receive("/users/1", #"{"id":1,"login":"ada"}"#, user)
        let id = try await object(bench, "User", "1")
        try await bench.store.removePaths(
            of: Invalidation(of: "github", paths: ["/users/1"], at: bench.store.clock.now())
        )
        let page = try await bench.store.documents(showing: id, patience: .zero)
        #expect(page.rows.isEmpty)
        #expect(page.next == nil)
        #expect(try await bench.store.why(12_345) == nil)
        await bench.store.close()
    }
}
