import Mapping
import Testing

@testable import Store

struct MemoryTests {
    @Test func `SipHash agrees with the reference vectors`() {
        // The reference implementation's 2-4 rounds, 128 bits, key 00…0f, message 00, 01, … (vectors_sip128).
        func digest(_ length: UInt8, pieces: Int) -> [UInt8] {
            var hash = SipHash(
                key: (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908),
                compressionRounds: 2,
                finalizationRounds: 4
            )
            let message = Array(0..<length)
            for start in stride(from: 0, to: message.count, by: pieces) {
                message[start..<min(start + pieces, message.count)].withUnsafeBytes { hash.feed($0) }
            }
            let result = hash.finish()
            return [result.low, result.high].flatMap { half in withUnsafeBytes(of: half.littleEndian) { Array($0) } }
        }
        for pieces in [1, 3, 8, 64] {
            #expect(
                digest(0, pieces: pieces) == [
                    0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93,
                ]
            )
            #expect(
                digest(1, pieces: pieces) == [
                    0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45,
                ]
            )
            #expect(digest(63, pieces: pieces) == digest(63, pieces: 63))
        }
    }

    @Test func `digests of text and bytes agree, and adjacent parts stay distinct`() {
        let hasher = KeyHasher(secret: (1, 2))
        let key = CacheKey(upstream: "github", principal: 3, context: "de", url: "/ü?x=1")
        let bytes = Array(key.upstream.rawValue.utf8).withUnsafeBytes { upstream in
            Array(key.context.utf8).withUnsafeBytes { context in
                Array(key.url.utf8).withUnsafeBytes { url in
                    hasher.digest(upstream: upstream, principal: 3, context: context, url: url)
                }
            }
        }
        #expect(hasher.digest(key) == bytes)
        let other = CacheKey(upstream: "githubd", principal: 3, context: "e", url: "/ü?x=1")
        #expect(hasher.digest(other) != bytes)
        #expect(KeyHasher(secret: (1, 3)).digest(key) != bytes)
    }

    @Test func `the clock never goes back and does not follow the machine's`() {
        let time = ManualTime(1000)
        let ahead = StoreClock(source: time.source, stored: StoredTime(clock: 5000))
        #expect(ahead.now() == 5001)
        time.advance(10)
        #expect(ahead.now() == 5011)
        time.advance(-500)
        #expect(ahead.now() == 5012)
        #expect(StoreClock(source: time.source, stored: StoredTime()).now() == 510)
    }

    @Test func `key presence keeps an inserted key whatever else is removed`() {
        let presence = KeyPresence()
        #expect(presence.mayContain(7), "until all keys are read, anything may be there")
        presence.complete()
        #expect(!presence.mayContain(7))
        // Neighbours in one run, so that removals have to shift.
        let values = (0..<4000).map { UInt64($0 % 40) << 32 | UInt64($0 / 3) }
        presence.insert(values)
        let removed = Set(values.enumerated().filter { $0.offset % 3 == 0 }.map(\.element))
        for value in removed { presence.remove(value) }
        for value in Set(values) { #expect(presence.mayContain(value) == !removed.contains(value)) }
        presence.insert([0])
        #expect(presence.mayContain(0))
    }

    @Test func `integers of variable length come back`() throws {
        let values: [Int64] = [0, 1, -1, 127, 128, -128, .max, .min, 1 << 40]
        var writer = VariableWriter()
        for value in values { writer.append(signed: value) }
        writer.append(fixed: 0x0102_0304_0506_0708)
        var reader = VariableReader(writer.bytes, of: "a test is")
        for value in values { #expect(try reader.nextSigned() == value) }
        #expect(try reader.nextFixed() == 0x0102_0304_0506_0708)
        #expect(reader.isAtEnd)
        #expect(throws: StoreError.corrupt("a test is cut short")) { try reader.next() }
    }

    @Test func `a recent change is never missed`() {
        let recent = RecentChanges(since: 10)
        #expect(recent.mayHaveChanged([1], since: 9))
        #expect(!recent.mayHaveChanged([1], since: 10))
        recent.announce([1], at: 11)
        recent.confirm(at: 11)
        #expect(recent.mayHaveChanged([2, 1], since: 10))
        #expect(!recent.mayHaveChanged([1], since: 11))
        recent.announce((1000..<80_000).map { ObjectID(rawValue: $0) }, at: 12)
        recent.confirm(at: 12)
        #expect(recent.mayHaveChanged([5], since: 11), "forgotten")
        #expect(!recent.mayHaveChanged([5], since: 12))
    }
}
