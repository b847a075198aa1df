import Testing

@testable import HTTPServer

@Suite struct SmallBufferTests {
    @Test func `a small buffer contains the bytes written since it was cleared`() {
        var buffer = SmallBuffer(capacity: 1)
        buffer.append("first")
        buffer.clear()
        for number in [0, 7, -12, Int.max, Int.min] {
            buffer.append(Array(String(number).utf8))
            buffer.append(" ")
        }
        buffer.append(Array("end".utf8))
        let text = String(decoding: buffer.bytes, as: UTF8.self)
        #expect(text == "0 7 -12 \(Int.max) \(Int.min) end")
    }
}
