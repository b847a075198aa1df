import Foundation
import TestSupport
import Testing

@testable import Store

/// Files whose bytes have changed on the disk.
@Suite struct DamageTests {
    private static let lists = 0..<12
    private static let details = 0..<120

    /// What the upstream says; long enough to fill many pages.
    private static func detail(_ id: Int) -> String {
        var random = SeededGenerator(seed: UInt64(id))
        let text = (0..<40).map { _ in String(random.next(), radix: 36) }.joined(separator: " ")
        return #"{"id":\#(id),"title":"title \#(id)","body":"\#(text)"}"#
    }

    private static func list(_ page: Int) -> String {
        "[" + (page * 10..<page * 10 + 10).map(detail).joined(separator: ",") + "]"
    }

    private static var all: [(url: String, body: String)] {
        details.map { ("/issues/\($0)", detail($0)) } + lists.map { ("/issues?page=\($0)", list($0)) }
    }

    private func fill(_ bench: Bench) async throws {
        for (url, body) in Self.all { try await bench.receive(url, body, url.contains("?") ? issues : issue) }
    }

    /// How many documents there are; fails where one is not what was stored.
    private func check(_ bench: Bench, _ seed: UInt64) async throws -> Int {
        var found = 0
        for (url, body) in Self.all {
            do {
                guard let document = try await bench.document(url) else { continue }
                found += 1
                #expect(document.body == Array(body.utf8), "seed \(seed): \(url)")
                #expect(document.head == Array("etag: \"\(url)\"".utf8), "seed \(seed): \(url)")
                #expect(document.policy == [1, 2, 3] && document.status == 200, "seed \(seed): \(url)")
            } catch StoreError.corrupt {
                // As good as not stored.
            }
        }
        return found
    }

    @Test(arguments: 0..<30 as Range<UInt64>)
    func `bytes damaged on disk are never served, and later responses are stored`(seed: UInt64)
        async throws
    {
        let folder = TemporaryFolder()
        var bench = try Bench(folder: folder)
        try await fill(bench)
        await bench.store.close()
        var random = SeededGenerator(seed: seed)
        var bytes = folder.bytes("larder.db")
        for _ in 0..<[1, 3, 10, 40][random.below(4)] {
            let place = random.below(bytes.count)
            if random.once(in: 3) {
                // A sector that was never written.
                let start = place / 512 * 512
                for index in start..<min(start + 512, bytes.count) { bytes[index] = 0 }
            } else {
                bytes[place] ^= UInt8(1) << random.below(8)
            }
        }
        try Data(bytes).write(to: URL(fileURLWithPath: folder.file()))
        bench = try Bench(folder: folder)
        _ = try await check(bench, seed)
        // Where the writer meets damage, the file is emptied: what was stored just before is asked for again.
        for _ in 0..<2 { try await fill(bench) }
        #expect(try await check(bench, seed) == Self.all.count, "seed \(seed)")
        await bench.store.close()
        bench = try Bench(folder: folder)
        #expect(try await check(bench, seed) == Self.all.count, "seed \(seed)")
    }

    @Test func `a store whose pages are damaged, except the first, stores new responses`() async throws {
        let folder = TemporaryFolder()
        var bench = try Bench(folder: folder)
        try await fill(bench)
        await bench.store.close()
        var bytes = folder.bytes("larder.db")
        for place in stride(from: 8192 + 4000, to: bytes.count, by: 8192) { bytes[place] ^= 1 }
        try Data(bytes).write(to: URL(fileURLWithPath: folder.file()))
        bench = try Bench(folder: folder)
        #expect(bench.notices.contains { if case .corruptFileSetAside = $0 { true } else { false } })
        try await fill(bench)
        #expect(try await check(bench, 0) == Self.all.count)
    }

    @Test func `a killed store loses nothing if another program empties its WAL`() async throws {
        let folder = TemporaryFolder()
        let copy = TemporaryFolder()
        let bench = try Bench(folder: folder)
        try await fill(bench)
        for name in ["larder.db", "larder.db-wal"] {
            try Data(folder.bytes(name)).write(to: URL(fileURLWithPath: copy.file(name)))
        }
        #expect(
            sqlite(
                copy.file(),
                "SELECT count(*) > 0 FROM _documents; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA integrity_check"
            ).hasSuffix("ok")
        )
        #expect(!copy.names.contains("larder.db-wal"))
        let second = try Bench(folder: copy)
        #expect(second.notices.isEmpty)
        #expect(try await check(second, 0) == Self.all.count)
    }
}
