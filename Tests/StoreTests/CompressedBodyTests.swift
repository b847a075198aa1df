import Foundation
import TestSupport
import Testing

@testable import Store

@Suite struct CompressedBodyTests {
    private static let text = (0..<200).map { "line \($0), which resembles the others\n" }.joined()

    private static func noise(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    private static func body(_ frame: [UInt8]) throws -> [UInt8] { try frame.withUnsafeBytes(CompressedBody.body) }

    @Test(arguments: [1024, 1025, 4096, 100_000, 5_000_000])
    func `a body is the same after compression`(count: Int) throws {
        let compressor = BodyCompressor()
        // Half of it repeats.
        let body = Self.noise(count / 2) + [UInt8](repeating: 7, count: count - count / 2)
        let frame = try #require(compressor.compress(body))
        #expect(frame.count <= count - count / 8)
        #expect(try Self.body(frame) == body)
    }

    @Test func `a body that compression does not make smaller by an eighth stays as it is`() {
        let compressor = BodyCompressor()
        #expect(compressor.compress([]) == nil)
        #expect(compressor.compress([UInt8](repeating: 7, count: 1023)) == nil)
        #expect(compressor.compress(Self.noise(100_000)) == nil)
        #expect(compressor.compress(Self.noise(9_000) + [UInt8](repeating: 7, count: 1_000)) == nil)
        // Its frame could not be told from a hostile one.
        #expect(compressor.compress([UInt8](repeating: 7, count: 10_000_000)) == nil)
    }

    @Test func `a damaged, cut or hostile frame is refused`() throws {
        let frame = try #require(BodyCompressor().compress(Array(Self.text.utf8)))
        for end in frame.indices {
            #expect(throws: StoreError.self) { try Self.body(Array(frame[..<end])) }
        }
        #expect(throws: StoreError.self) { try Self.body(frame + [0]) }
        #expect(throws: StoreError.self) { try Self.body(Self.noise(500)) }
        // Magic number, a header with a size of eight bytes, and that size: 2^40 (RFC 8878 §3.1.1).
        let header: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0xE0, 0, 0, 0, 0, 0, 1, 0, 0]
        #expect(throws: StoreError.self) { try Self.body(header + Array(frame.dropFirst(6))) }
    }

    @Test func `the file contains the compressed body, and reading returns the received one`() async throws {
        let bench = try Bench()
        try await bench.receive("/text", Self.text)
        try await bench.receive("/short", "short")
        let file = bench.folder.file()
        let stored = sqlite(file, "SELECT length(compressed), body IS NULL FROM _bodies ORDER BY document LIMIT 1")
        let size = try #require(Int(stored.split(separator: "|")[0]))
        #expect(stored.hasSuffix("|1") && size < Self.text.utf8.count / 4)
        #expect(sqlite(file, "SELECT body FROM _bodies WHERE compressed IS NULL") == "short")
        #expect(try await bench.body("/text") == Self.text)
        await bench.store.close()
        let again = try Bench(folder: bench.folder, time: bench.time)
        #expect(try await again.body("/text") == Self.text)
        #expect(try await again.body("/short") == "short")
    }
}
