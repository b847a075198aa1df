import Testing

@testable import HTTPSemantics

@Suite struct ProblemDocumentTests {
    @Test func `a problem document is JSON with the members of RFC 9457`() {
        var problem = ProblemDocument(status: 504, detail: "a \"quoted\\\" line\nand \u{1}, é")
        problem.extra = [
            (name: "reason", value: "offline"), (name: "retryAfter", value: .integer(-5)), (name: "stale", value: true),
        ]
        let expected = #"""
            {"type":"about:blank","title":"Gateway Timeout","status":504,\#
            "detail":"a \"quoted\\\" line\nand \u0001, é",\#
            "reason":"offline","retryAfter":-5,"stale":true}

            """#
        #expect(String(decoding: problem.bytes, as: UTF8.self) == expected)
    }
}
