import Foundation
import Mapping
import Store
import TestSupport
import Testing

struct CleanerTests {
    /// Whether a text is anywhere in the store's files.
    private func holds(_ text: String, _ folder: TemporaryFolder) -> Bool {
        ["", "-wal"].contains { suffix in
            FileManager.default.contents(atPath: folder.file() + suffix)?.range(of: Data(text.utf8)) != nil
        }
    }

    private func filled() async throws -> Bench {
        let bench = try Bench()
        // Until a new store has read its keys, it may have every key.
        let absent = bench.store.hasher.digest(bench.key("/absent"))
        #expect(await eventually { !bench.store.mayHave(absent) })
        for number in 0..<300 {
            try await bench.receive(
                "/issues/\(number)",
                #"{"id":\#(number),"title":"title-\#(number)","user":{"id":\#(number % 7),"login":"u\#(number % 7)"}}"#,
                issue
            )
        }
        try await bench.receive("/text", "marker-text and more")
        try await bench.receive("/users/3", #"{"id":3,"login":"u3","bio":"marker-three"}"#, user)
        return bench
    }

    @Test func `a clean of everything leaves nothing in file or WAL, and nothing comes back`() async throws {
        let bench = try await filled()
        #expect(holds("title-299", bench.folder))
        let result = try await bench.store.clean(CleanFilter())
        #expect(result.erasure == .erased)
        #expect(result.removed.documents == 302)
        #expect(result.removed.objects == 307)
        #expect(result.removed.models == ["Issue": 300, "User": 7])
        #expect(try await bench.store.count().documents == 0)
        #expect(try await bench.store.count().objects == 0)
        for text in ["title-", "marker-text", "marker-three", "u3"] { #expect(!holds(text, bench.folder)) }
        #expect(!bench.store.mayHave(bench.store.hasher.digest(bench.key("/text"))))
        await bench.store.close()
        let again = try Bench(folder: bench.folder)
        #expect(try await again.store.count().documents == 0)
        await again.store.close()
    }

    @Test func `a dry run counts and removes nothing`() async throws {
        let bench = try await filled()
        let preview = try await bench.store.clean(CleanFilter(model: "User", identity: "3"), dryRun: true)
        #expect(preview.erasure == .notAsked)
        #expect(preview.removed.documents == 44)
        let result = try await bench.store.clean(CleanFilter(model: "User", identity: "3"))
        #expect(result.removed.documents == preview.removed.documents)
        #expect(result.removed.objects == preview.removed.objects)
        #expect(result.removed.models == ["User": 1])
        // The issues that these documents showed stay known, though nothing shows them any more.
        #expect(preview.unshown == 43 && result.unshown == 43)
        #expect(try await bench.store.count().models == ["Issue": 300, "User": 6])
        #expect(!holds("marker-three", bench.folder))
        #expect(try await bench.store.count().documents == 302 - 44)
        await bench.store.close()
    }

    @Test func `a clean of one object removes the lists that show it, and their other objects stay known`() async throws
    {
        let bench = try Bench()
        let list = (1...500).map { #"{"id":\#($0),"title":"title-\#($0)"}"# }.joined(separator: ",")
        try await bench.receive("/issues", "[\(list)]", issues)
        try await bench.receive("/issues/7", #"{"id":7,"title":"title-7"}"#, issue)
        let filter = CleanFilter(model: "Issue", identity: "5")
        let preview = try await bench.store.clean(filter, dryRun: true)
        let result = try await bench.store.clean(filter)
        for outcome in [preview, result] {
            #expect(outcome.removed.documents == 1 && outcome.removed.models == ["Issue": 1])
            #expect(outcome.unshown == 498)
        }
        #expect(!holds("title-5\"", bench.folder))
        #expect(try await bench.body("/issues") == nil)
        #expect(try await bench.body("/issues/7") == #"{"id":7,"title":"title-7"}"#)
        #expect(try await bench.store.count().models == ["Issue": 499])
        #expect(try await bench.store.clean(CleanFilter()).removed.models == ["Issue": 499])
        #expect(!holds("title-", bench.folder))
        await bench.store.close()
    }

    @Test func `a clean that its caller stops leaves a consistent store`() async throws {
        let bench = try await filled()
        let result = try await bench.store.clean(CleanFilter()) { $0.documents == 0 }
        #expect(result.isStopped)
        #expect(result.removed.documents > 0 && result.removed.documents < 302)
        #expect(try await bench.store.count().documents == 302 - result.removed.documents)
        for document in try await bench.store.list(DocumentListing(limit: 1000), patience: .seconds(60)).rows {
            #expect(try await bench.store.received(document.id) != nil)
        }
        // A second one does the rest; two at a time do no harm.
        async let one = bench.store.clean(CleanFilter())
        async let other = bench.store.clean(CleanFilter())
        let rest = try await one.removed.documents + other.removed.documents
        #expect(rest == 302 - result.removed.documents)
        #expect(try await bench.store.count().objects == 0)
        await bench.store.close()
        #expect(sqlite(bench.folder.file(), "PRAGMA integrity_check") == "ok")
    }

    @Test func `a clean can be limited by URL, upstream, principal and age`() async throws {
        let bench = try Bench()
        let mine = try await bench.store.principal([UInt8](repeating: 9, count: 32))
        try await bench.receive("/a/1", "1")
        try await bench.receive("/a/2", "2", principal: mine)
        bench.time.advance(3_600_000_000)
        try await bench.receive("/b/1", "3")
        func documents(_ filter: CleanFilter) async throws -> Int {
            try await bench.store.clean(filter, dryRun: true).removed.documents
        }
        #expect(try await documents(CleanFilter(url: { $0.hasPrefix("/a/") })) == 2)
        #expect(try await documents(CleanFilter(url: { $0.hasSuffix("/1") })) == 2)
        #expect(try await documents(CleanFilter(upstream: "other")) == 0)
        #expect(try await documents(CleanFilter(principal: "p-09090909")) == 1)
        #expect(try await documents(CleanFilter(principal: "anonymous", url: { $0.hasPrefix("/a/") })) == 1)
        #expect(try await documents(CleanFilter(olderThan: 1_800_000_000)) == 2)
        #expect(try await bench.store.clean(CleanFilter(url: { $0.hasPrefix("/a/") })).removed.documents == 2)
        #expect(try await bench.body("/b/1") == "3")
        await bench.store.close()
    }

    @Test func `a response requested before a clean is not stored after it`() async throws {
        let bench = try Bench()
        let early = bench.response("/issues/1", #"{"id":1,"title":"early"}"#, issue)
        let other = bench.response("/text", "text")
        _ = try await bench.store.clean(CleanFilter(model: "Issue"))
        #expect(try await bench.store.receive(early).document == nil)
        #expect(try await bench.store.receive(other).document != nil)
        #expect(try await bench.store.count().objects == 0)
        let late = bench.response("/issues/1", #"{"id":1,"title":"late"}"#, issue)
        #expect(try await bench.store.receive(late).document != nil)
        await bench.store.close()
    }

    @Test func `an object in a cleaned document keeps only the values that other documents show`() async throws {
        let bench = try Bench()
        let list = #"[{"id":1,"title":"old"}]"#
        try await bench.receive("/issues", list, issues)
        try await bench.receive("/issues/1", #"{"id":1,"title":"marker-new"}"#, issue)
        #expect(try await bench.body("/issues") == #"[{"id":1,"title":"marker-new"}]"#)
        let result = try await bench.store.clean(CleanFilter(url: { $0.hasPrefix("/issues/1") }))
        #expect(result.removed.documents == 1)
        #expect(result.removed.objects == 0)
        #expect(!holds("marker-new", bench.folder))
        // It is not shown with an older value than before as if that were the newest: it has to be asked for again.
        let stored = try #require(try await bench.document("/issues"))
        guard case .outdated = stored.form else {
            Issue.record("served as \(stored.form)")
            return
        }
        #expect(String(decoding: stored.body, as: UTF8.self) == list)
        try await bench.receive("/issues", list, issues)
        #expect(try await bench.body("/issues") == list)
        await bench.store.close()
    }

    @Test func `bytes that another program's reader keeps in the WAL are erased soon after it ends`() async throws {
        let bench = try Bench()
        try await bench.receive("/text", "marker-text")
        let reader = try #require(ForeignReader(bench.folder.file()))
        let result = try await bench.store.clean(CleanFilter())
        #expect(result.erasure == .pending)
        #expect(holds("marker-text", bench.folder))
        reader.end()
        // The writer looks once a second; there is no event to await in another process's files.
        for _ in 0..<1200 where holds("marker-text", bench.folder) { try await Task.sleep(for: .milliseconds(50)) }
        #expect(!holds("marker-text", bench.folder))
        await bench.store.close()
    }

    @Test func `cleaned large rows leave no trace in free pages`() async throws {
        let bench = try Bench()
        for number in 0..<400 {
            let text = "marker-\(number)-" + String(repeating: "x", count: number * 37 % 9000)
            try await bench.receive("/big/\(number % 150)", #"{"id":\#(number),"title":"\#(text)"}"#, issue)
        }
        _ = try await bench.store.clean(CleanFilter(model: "Issue"))
        #expect(!holds("marker-", bench.folder))
        await bench.store.close()
    }

    @Test func `while one model is cleaned, others are stored and served, and lose no object`() async throws {
        let bench = try Bench()
        for number in 0..<700 {
            try await bench.receive(
                "/issues/\(number)",
                #"{"id":\#(number),"title":"t","user":{"id":\#(number % 7),"login":"u"}}"#,
                issue
            )
            try await bench.receive("/users/\(number % 9)", #"{"id":\#(number % 9),"login":"u\#(number)"}"#, user)
        }
        async let cleaned = bench.store.clean(CleanFilter(model: "Issue"))
        for number in 0..<50 {
            try await bench.receive("/texts/\(number)", "text-\(number)")
            #expect(try await bench.body("/texts/\(number)") == "text-\(number)")
            #expect(try await bench.body("/users/8") != nil)
        }
        #expect(try await cleaned.removed.models == ["Issue": 700])
        #expect(try await cleaned.removed.documents == 700)
        #expect(try await bench.store.count().models == ["User": 9])
        #expect(try await bench.store.count().documents == 59)
        for number in 0..<50 { #expect(try await bench.body("/texts/\(number)") == "text-\(number)") }
        await bench.store.close()
        #expect(sqlite(bench.folder.file(), "PRAGMA integrity_check") == "ok")
    }

    @Test func `not even the URL of a cleaned document is kept as the source of other objects`() async throws {
        let bench = try Bench()
        try await bench.receive("/users/3", #"{"id":3,"login":"u","bio":"x"}"#, user)
        try await bench.receive("/issues/1", #"{"id":1,"title":"t","user":{"id":3,"login":"u","bio":"x"}}"#, issue)
        try await bench.receive("/secret-path", #"{"id":1,"title":"t","user":{"id":3,"login":"u","bio":"x"}}"#, issue)
        #expect(try await bench.store.clean(CleanFilter(url: { $0.hasPrefix("/secret") })).removed.documents == 1)
        #expect(!holds("/secret-path", bench.folder))
        #expect(try await bench.body("/users/3") == #"{"id":3,"login":"u","bio":"x"}"#)
        await bench.store.close()
    }
}
