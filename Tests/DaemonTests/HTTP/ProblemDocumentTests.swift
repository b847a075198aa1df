import Testing

@testable import Daemon

@Suite struct ProblemDocumentTests {
    @Test func `a problem document is JSON with the members of RFC 9457`() {
        var problem = ProblemDocument(status: 504, detail: "a \"quoted\\\" line\nand \u{1}, é")
        problem.instance = "/x"
        problem.extra = [
            ProblemDocument.Member(name: "reason", value: .string("offline")),
            ProblemDocument.Member(name: "retryAfter", value: .integer(-5)),
            ProblemDocument.Member(name: "stale", value: .bool(true)),
        ]
        let expected = #"""
            {"type":"about:blank","title":"Gateway Timeout","status":504,\#
            "detail":"a \"quoted\\\" line\nand \u0001, é","instance":"/x",\#
            "reason":"offline","retryAfter":-5,"stale":true}

            """#
        #expect(String(decoding: problem.bytes, as: UTF8.self) == expected)
    }

    @Test func `a small buffer holds what was written since it was cleared`() {
        var buffer = SmallBuffer(capacity: 1)
        buffer.append("first")
        buffer.clear()
        for number in [0, 7, -12, Int.max, Int.min] {
            buffer.append(decimal: number)
            buffer.append(UInt8(ascii: " "))
        }
        buffer.append(Array("end".utf8))
        let text = String(decoding: buffer.bytes, as: UTF8.self)
        #expect(text == "0 7 -12 \(Int.max) \(Int.min) end")
    }

    @Test(arguments: [(784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT")])
    func `a date has the form of RFC 9110`(seconds: Int, text: String) {
        #expect(DateLine.text(seconds) == text)
    }
}
