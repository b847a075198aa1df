import Testing

@testable import HTTPSemantics

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
}
