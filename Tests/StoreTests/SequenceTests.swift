import Foundation
import Store
import TestSupport
import Testing

/// The numbers by which the outside knows commit sequences.
struct SequenceTests {
    @Test func `sequence numbers convert to their public form and back, and grow over restarts`() async throws {
        let folder = TemporaryFolder()
        let time = ManualTime()
        var numbers: [Int64] = []
        var sequences: [CommitNumber] = []
        for round in 1...3 {
            let bench = try Bench(folder: folder, time: time)
            try await bench.receive("/\(round)", "text")
            numbers.append(bench.store.publicSequence(bench.store.sequence))
            sequences.append(bench.store.sequence)
            for (number, sequence) in zip(numbers, sequences) {
                #expect(bench.store.sequence(fromPublic: number) == sequence)
                #expect(bench.store.publicSequence(sequence) == number)
            }
            await bench.store.close()
        }
        #expect(numbers == numbers.sorted() && Set(numbers).count == 3)
        #expect(sequences == sequences.sorted() && Set(sequences).count == 3)
    }

    @Test func `sequence numbers from the future, or from another store, are unknown`() async throws {
        let bench = try Bench()
        // As far on, and made a millisecond later.
        let other = try Bench(time: ManualTime(1_700_000_000_001_000))
        try await bench.receive("/1", "text")
        try await other.receive("/1", "text")
        let number = bench.store.publicSequence(bench.store.sequence)
        #expect(bench.store.sequence(fromPublic: number + 1) == nil)
        #expect(other.store.sequence(fromPublic: number) == nil)
        for unknown in [0, 1, -1, .min, .max] as [Int64] { #expect(bench.store.sequence(fromPublic: unknown) == nil) }
        await bench.store.close()
        await other.store.close()
    }

    @Test func `the number of a commit that a power failure lost is not reused`() async throws {
        let bench = try Bench()
        try await bench.receive("/1", "text")
        let kept = bench.store.publicSequence(bench.store.sequence)
        await bench.store.close()
        let saved = TemporaryFolder()
        try FileManager.default.copyItem(atPath: bench.folder.file(), toPath: saved.file())

        let later = try Bench(folder: bench.folder, time: bench.time)
        try await later.receive("/2", "text")
        let lost = later.store.publicSequence(later.store.sequence)
        await later.store.close()

        // The clock, too, may be back where it was.
        let survivor = try Bench(folder: saved)
        try await survivor.receive("/3", "text")
        try await survivor.receive("/4", "text")
        #expect(survivor.store.sequence > later.store.sequence)
        #expect(survivor.store.sequence(fromPublic: kept) != nil)
        #expect(survivor.store.sequence(fromPublic: lost) == nil)
        await survivor.store.close()
    }
}
