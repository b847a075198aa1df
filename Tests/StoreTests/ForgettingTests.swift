import Store
import TestSupport
import Testing

struct ForgettingTests {
    private func digest(_ number: Int) -> [UInt8] {
        (0..<32).map { UInt8(truncatingIfNeeded: number >> ($0 % 4 * 8)) }
    }

    @Test func `principals of whom nothing is kept are forgotten, and their numbers never given again`() async throws {
        let bench = try Bench { $0.unusedPrincipals = 40 }
        let owner = try await bench.store.principal(digest(1))
        try await bench.receive("/mine", "mine", principal: owner, context: "accept=a")
        var ids: Set<PrincipalID> = [owner]
        for number in 2...200 { ids.insert(try await bench.store.principal(digest(number))) }
        #expect(ids.count == 200)
        await bench.store.flush()
        #expect(Int(sqlite(bench.folder.file(), "SELECT count(*) FROM _principals")) ?? .max <= 60)
        // Whoever comes again is somebody new, and sees nothing of another's.
        #expect(!ids.contains(try await bench.store.principal(digest(2))))
        #expect(try await bench.store.principal(digest(1)) == owner)
        let key = bench.key("/mine", principal: owner, context: "accept=a")
        #expect(try await bench.store.documents(at: key).count == 1)
        await bench.store.close()
    }

    @Test func `a number is not given again while there is anything of its first principal's`() async throws {
        let folder = TemporaryFolder()
        let bench = try Bench(folder: folder) { $0.unusedPrincipals = 4 }
        var forgotten: PrincipalID = 0
        for number in 1...20 { forgotten = max(forgotten, try await bench.store.principal(digest(number))) }
        // An answer that arrives when its principal may have been forgotten already.
        try await bench.receive("/late", "late", principal: forgotten)
        await bench.store.close()
        _ = sqlite(folder.file(), "DELETE FROM _principals WHERE id = \(forgotten)")
        let again = try Bench(folder: folder)
        #expect(try await again.store.principal(digest(99)) > forgotten)
        await again.store.close()
    }
}
