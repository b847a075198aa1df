import Testing

@testable import HTTPSemantics
@testable import Proxy

@Suite struct StoredHeadTests {
    @Test func `stored fields are read back byte for byte and in order`() {
        let fields = Fields([
            Field("ETag", "W/\"a: b\""), Field("X-Empty", ""), Field("x-empty", "2"),
            Field(name: Array("X-Latin".utf8), value: [0xE9, 0x20, 0xFF]),
        ])
        #expect(StoredHead.decode(StoredHead.encode(fields)) == fields)
        #expect(StoredHead.decode([]) == Fields())
    }

    @Test func `a body is kept whole up to the limit, and dropped beyond it`() {
        var buffer = BodyBuffer(limit: 4)
        buffer.append([1, 2])
        buffer.append([3, 4])
        #expect(buffer.isWhole)
        #expect(buffer.joined() == [1, 2, 3, 4])
        buffer.append([5])
        #expect(!buffer.isWhole)
        #expect(buffer.pieces.isEmpty)
        #expect(buffer.received == 5)
    }
}
