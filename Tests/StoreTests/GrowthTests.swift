import Foundation
import Mapping
import TestSupport
import Testing

@testable import Store

/// An upstream whose responses differ for each request does not make the store larger.
@Suite struct GrowthTests {
    private func count(_ table: String, _ bench: Bench) -> Int {
        Int(sqlite(bench.folder.file(), "SELECT count(*) FROM \(table)")) ?? -1
    }

    @Test(arguments: ["title", "undeclared"])
    func `values that differ each time leave a bounded number of versions`(member: String) async throws {
        let bench = try Bench()
        for round in 0..<120 {
            for number in 0..<4 {
                let objects = (0..<5).map { #"{"id":\#($0),"\#(member)":"\#(round)-\#(number)-\#($0)"}"# }
                // At once, one after the other, and lagging: as it comes.
                if round % 3 == 0 { bench.time.advance(60_000_000) }
                try await bench.receive("/lists/\(number)", "[\(objects.joined(separator: ","))]", issues)
            }
            try await bench.receive("/issues/1", #"{"id":1,"\#(member)":"\#(round)"}"#, issue)
        }
        await bench.store.flush()
        #expect(count("_documents", bench) == 5)
        #expect(count("_objects", bench) == 5)
        // Those pinned, and the few that what is known was seen by.
        #expect(count("_versions", bench) <= 5 * 5 + 5)
        #expect(count("_observations", bench) <= 5 + 5 * 5)
        #expect(Int(sqlite(bench.folder.file(), "SELECT max(length(state)) FROM _objects")) ?? .max < 600)
        await bench.store.close()
    }

    @Test func `an object in thousands of shapes is stored, from one response or many documents`() async throws {
        let bench = try Bench()
        let body = "[" + (0..<4_000).map { #"{"id":1,"x\#($0)":0,"title":"a"}"# }.joined(separator: ",") + "]"
        try await bench.receive("/shapes", body, issues)
        try await bench.receive("/issues/1", #"{"id":1,"title":"b"}"#, issue)
        #expect(try await bench.body("/shapes") == body.replacing(#""a""#, with: #""b""#))
        try await bench.receive("/shapes", "[]", issues)
        await bench.store.flush()
        #expect(count("_versions", bench) == 1)
        for number in 0..<300 {
            try await bench.receive("/one/\(number)", #"{"id":1,"x\#(number)":0,"title":"c"}"#, issue)
        }
        bench.time.advance(60_000_000)
        try await bench.receive("/issues/1", #"{"id":1,"title":"d"}"#, issue)
        #expect(try await bench.body("/one/7") == #"{"id":1,"x7":0,"title":"d"}"#)
        await bench.store.flush()
        #expect(count("_versions", bench) == 301)
        await bench.store.close()
    }

    @Test func `an object with thousands of versions costs each response no more than one with a few`()
        async throws
    {
        let bench = try Bench { $0.queueLimit = 4096 }
        let (count, step) = (20_000, 500)
        // A thousand documents, each of which shows the object in twenty versions of its own.
        for start in stride(from: 0, to: count, by: step) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for document in start / step * 25..<(start / step + 1) * 25 {
                    let versions = (0..<20).map { #"{"id":1,"title":"a","at":\#(document * 20 + $0)}"# }
                    let response = bench.response("/pages/\(document)", "[\(versions.joined(separator: ","))]", issues)
                    group.addTask { _ = try await bench.store.receive(response) }
                }
                try await group.waitForAll()
            }
        }
        // All of them are pinned; the state, which is read and written with each response, has a bound.
        #expect(self.count("_versions", bench) == count)
        #expect(Int(sqlite(bench.folder.file(), "SELECT max(length(state)) FROM _objects")) ?? .max < 4000)
        bench.time.advance(60_000_000)
        try await bench.receive("/issues/1", #"{"id":1,"title":"b"}"#, issue)
        for document in [0, 500, 999] {
            let body = try #require(try await bench.body("/pages/\(document)"))
            #expect(body.hasPrefix(#"[{"id":1,"title":"b","at":\#(document * 20)},"#))
        }
        // And they go with the documents that show them.
        for document in 0..<1000 {
            bench.store.receive(bench.response("/pages/\(document)", "[]", issues)) { _ in }
        }
        await bench.store.flush()
        try await bench.store.removePaths(of: Invalidation(of: "github", paths: ["/none"], at: bench.store.clock.now()))
        #expect(self.count("_versions", bench) == 1)
        #expect(self.count("_spilled", bench) == 0)
        await bench.store.close()
    }

    @Test func `a document of very many objects is stored, found dirty, and composed`() async throws {
        let bench = try Bench()
        let count = 4_000
        let body = { (name: String) in
            "["
                + (0..<count).map { #"{"id":\#($0),"title":"\#($0 == count - 1 ? name : "t")"}"# }.joined(
                    separator: ","
                ) + "]"
        }
        let slow = bench.response("/late", body("older"), issues)
        bench.time.advance(60_000_000)
        try await bench.receive("/all", body("old"), issues)
        // Older than what is known: it is compared while it is stored.
        #expect(try await bench.store.receive(slow).isDirty)
        bench.time.advance(60_000_000)
        try await bench.receive("/issues/\(count - 1)", #"{"id":\#(count - 1),"title":"new"}"#, issue)
        #expect(try await bench.body("/all") == body("new"))
        #expect(try await bench.body("/late") == body("new"))
        await bench.store.close()
    }
}
