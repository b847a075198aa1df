import Testing

@testable import Proxy

@Suite struct BodyBufferTests {
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
