import DaemonTestSupport
import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import HTTPServer

@Suite struct VaryHitTests {
    private func matches(_ vary: String, _ stored: [(String, String)], _ request: [(String, String)]) throws -> Bool {
        let selection = try #require(VarySelection(VaryField(lines: [bytes(vary)]), request: fields(stored)))
        let lines = request.map { "\($0): \($1)\r\n" }.joined()
        var text = Array("GET / HTTP/1.1\r\nHost: h\r\n\(lines)\r\n".utf8)
        let parser = RequestParser(limits: HTTPLimits())
        return try text.withUnsafeMutableBufferPointer { buffer in
            guard case .complete = parser.parse(try #require(buffer.baseAddress), count: buffer.count) else {
                Issue.record("the request is not one")
                return false
            }
            return selection.matches(parser.head)
        }
    }

    @Test(
        arguments: [
            (
                "Accept, X-A", [("Accept", "a/b, c/d;q=0.5"), ("X-A", "1")],
                [("X-A", "1"), ("accept", "a/b ,c/d; q=0.500")], true
            ),
            ("Accept", [("Accept", "a/b")], [("Accept", "A/B")], true),
            ("Accept", [("Accept", "a/b,c/d")], [("Accept", "a/b"), ("Accept", "c/d")], true),
            ("Accept", [("Accept", "ab")], [("Accept", "a b")], false),
            ("Accept", [("Accept", "a/b")], [("Accept", "a/b,c/d")], false),
            ("Accept", [("Accept", "a/b,c/d")], [("Accept", "a/b")], false),
            ("Accept", [("Accept", "a/b")], [("Accept", "  a/b  ")], true),
            ("X-A", [("X-A", "a,b")], [("X-A", "a, b")], true),
            ("X-A", [("X-A", "a b")], [("X-A", "a  b")], false),
            ("X-A", [("X-A", "\"a,b\"")], [("X-A", "\"a, b\"")], false),
            ("X-A", [], [], true),
            ("X-A", [], [("x-a", "")], false),
            ("X-A", [("X-A", "")], [], false),
            ("X-A", [("X-A", "")], [("X-A", "")], true),
        ] as [(String, [(String, String)], [(String, String)], Bool)]
    )
    func `a request matches a stored selection if the fields that Vary names agree`(
        _ vary: String,
        _ stored: [(String, String)],
        _ request: [(String, String)],
        _ expected: Bool
    ) throws {
        #expect(try matches(vary, stored, request) == expected)
    }
}

@Suite struct RetryAfterTests {
    @Test(
        arguments: [
            ("120", 120), ("0", 0), ("Sun, 06 Nov 1994 08:50:37 GMT", 60), ("Sun, 06 Nov 1990 08:50:37 GMT", 0),
            ("-1", nil), ("soon", nil),
        ] as [(String, Int64?)]
    )
    func `seconds and dates are read`(_ value: String, _ seconds: Int64?) {
        #expect(RetryAfter.seconds(fields([("Retry-After", value)]), now: exampleDate) == seconds)
    }
}
