import HTTPSemantics
import Testing

@testable import Upstream

/// Bodies that are encoded again as they were.
@Suite struct EncodedBodyTests {
    @Test(arguments: ["gzip", "x-gzip", "deflate", "br", "zstd"], [0, 1, 100_000])
    func `an encoded body is decoded to the same bytes`(_ coding: String, _ count: Int) throws {
        let body = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* $0 / 7) }
        let encoded = try #require(EncodedBody.encode(body, coding: coding, like: []))
        #expect(DecodedBody.decode(encoded, coding: coding, limit: 1 << 20) == body)
        #expect(EncodedBody.encode(body, coding: coding, like: encoded) == encoded)
    }

    @Test func `re-encoded deflate has the same framing as its original`() throws {
        let framed = try #require(EncodedBody.encode([1, 2, 3], coding: "deflate", like: [0x78]))
        let raw = try #require(EncodedBody.encode([1, 2, 3], coding: "deflate", like: [0x63]))
        #expect(framed.first == 0x78 && raw.first != 0x78)
        #expect(DecodedBody.decode(raw, coding: "deflate", limit: 100) == [1, 2, 3])
    }

    @Test func `a body that is larger than the limit is not decoded`() throws {
        let encoded = try #require(EncodedBody.encode([UInt8](repeating: 7, count: 200_000), coding: "gzip", like: []))
        #expect(DecodedBody.decode(encoded, coding: "gzip", limit: 200_000)?.count == 200_000)
        #expect(DecodedBody.decode(encoded, coding: "gzip", limit: 199_999) == nil)
    }

    @Test func `several codings are decoded in order, and an unknown one is not decoded`() throws {
        let inner = try #require(EncodedBody.encode([1, 2, 3], coding: "br", like: []))
        let body = try #require(EncodedBody.encode(inner, coding: "gzip", like: []))
        #expect(
            DecodedBody.decode(body, ["Content-Encoding": "br, identity", "content-encoding": "GZIP"]) == [1, 2, 3]
        )
        #expect(DecodedBody.decode(body, ["Content-Encoding": "gzip, br"]) == nil)
        #expect(DecodedBody.decode(body, ["Content-Encoding": "compress"]) == nil)
        #expect(EncodedBody.encode([1], coding: "compress", like: []) == nil)
    }
}
