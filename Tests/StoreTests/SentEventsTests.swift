import Foundation
import Store
import TestSupport
import Testing

/// What readers of live responses were sent.
struct SentEventsTests {
    private static let subject = Digest128(low: 1, high: 2)
    private static let (one, other) = (Digest128(low: 3, high: 4), Digest128(low: 5, high: 6))

    @Test func `the same content has the same number, also after a restart, until something else is sent`() async throws
    {
        let folder = TemporaryFolder()
        var bench = try Bench(folder: folder)
        let first = try await bench.store.recordSent(Self.subject, content: Self.one)
        let number = bench.store.publicSequence(first)
        #expect(try await bench.store.recordSent(Self.subject, content: Self.one) == first)
        await bench.store.close()
        bench = try Bench(folder: folder)
        #expect(try await bench.store.recordSent(Self.subject, content: Self.one) == first)
        #expect(bench.store.publicSequence(first) == number)
        let second = try await bench.store.recordSent(Self.subject, content: Self.other)
        #expect(second > first)
        #expect(try await bench.store.recordSent(Self.subject, content: Self.one) > second)
        await bench.store.close()
    }

    @Test func `an event without stored content always gets a new number`() async throws {
        let bench = try Bench()
        let first = try await bench.store.recordSent(Self.subject, content: nil)
        let second = try await bench.store.recordSent(Self.subject, content: nil)
        #expect(second > first)
        #expect(try await bench.store.recordSent(Self.subject, content: Self.one) > second)
        await bench.store.close()
    }

    @Test func `after a clean an event with equal content gets a new number`() async throws {
        let bench = try Bench()
        let first = try await bench.store.recordSent(Self.subject, content: Self.one)
        _ = try await bench.store.clean(CleanFilter())
        #expect(try await bench.store.recordSent(Self.subject, content: Self.one) > first)
        await bench.store.close()
    }

    @Test func `a bounded number of sent events is remembered, the latest among them`() async throws {
        let bench = try Bench()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for low in 0..<17_000 as Range<UInt64> {
                group.addTask { _ = try await bench.store.recordSent(Digest128(low: low, high: 0), content: Self.one) }
            }
            try await group.waitForAll()
        }
        let last = try await bench.store.recordSent(Self.subject, content: Self.other)
        #expect(try await bench.store.recordSent(Self.subject, content: Self.other) == last)
        #expect((Int(sqlite(bench.folder.file(), "SELECT count(*) FROM _told")) ?? .max) <= 16_386)
        await bench.store.close()
    }
}
