import Testing

@testable import Daemon

@Suite struct VaryMatcherTests {
    private func matches(_ vary: String, _ stored: [(String, String)], _ request: [(String, String)]) throws -> Bool {
        let selection = try #require(VarySelection(VaryField(lines: [bytes(vary)]), request: fields(stored)))
        let lines = fields(request).lines
        // One buffer for all, as a connection has it.
        let buffer = lines.flatMap { $0.name + $0.value }
        return buffer.withUnsafeBytes { buffer in
            VaryMatcher(selection).matches(count: lines.count) { index in
                let start = lines[..<index].reduce(0) { $0 + $1.name.count + $1.value.count }
                let middle = start + lines[index].name.count
                return (
                    UnsafeRawBufferPointer(rebasing: buffer[start..<middle]),
                    UnsafeRawBufferPointer(rebasing: buffer[middle..<middle + lines[index].value.count])
                )
            }
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
            ("X-A", [("X-A", "a,b")], [("X-A", "a, b")], false),
            ("X-A", [], [], true),
            ("X-A", [], [("x-a", "")], false),
            ("X-A", [("X-A", "")], [], false),
            ("X-A", [("X-A", "")], [("X-A", "")], true),
        ] as [(String, [(String, String)], [(String, String)], Bool)]
    )
    func `a request is matched where it lies`(
        _ vary: String,
        _ stored: [(String, String)],
        _ request: [(String, String)],
        _ expected: Bool
    ) throws {
        #expect(try matches(vary, stored, request) == expected)
    }
}

@Suite struct QuickTagTests {
    @Test(arguments: [
        ("\"a\"", "\"a\"", true), ("W/\"a\"", "W/\"a\"", true), ("W/\"a\"", "\"a\"", true),
        ("\"b\", \"a\"", "\"a\"", true),
        ("*", "\"a\"", true), ("\"b\"", "\"a\"", false), ("a", "a", false), ("", "", false), ("\"", "\"", false),
        ("\"a\"", "", false),
    ])
    func `a tag as spelled is compared with the stored one`(_ value: String, _ tag: String, _ expected: Bool) {
        let matches = bytes(value).withUnsafeBytes {
            EntityTagCondition.matchesWeakly(ifNoneMatch: $0, tag: bytes(tag))
        }
        #expect(matches == expected)
    }
}

@Suite struct PrincipalMemoTests {
    private func find(_ memo: inout PrincipalMemo<Int>, _ field: Int, _ credential: String) -> Int? {
        bytes(credential).withUnsafeBytes { memo.value(field: field, credential: $0) }
    }

    @Test func `the credentials seen last are remembered, per field`() {
        var memo = PrincipalMemo<Int>(capacity: 2)
        for (index, credential) in ["a", "b", "c"].enumerated() {
            bytes(credential).withUnsafeBytes { memo.remember(index, field: 0, credential: $0) }
        }
        #expect(find(&memo, 0, "a") == nil)
        #expect(find(&memo, 0, "b") == 1)
        #expect(find(&memo, 0, "b") == 1)
        #expect(find(&memo, 0, "c") == 2)
        #expect(find(&memo, 1, "c") == nil)
        bytes("c").withUnsafeBytes { memo.remember(9, field: 0, credential: $0) }
        #expect(find(&memo, 0, "c") == 9)
        #expect(find(&memo, 0, "b") == 1)
        memo.forgetAll()
        #expect(find(&memo, 0, "c") == nil)
    }

    @Test(arguments: [
        ("access_token=1", true), ("page=2&ACCESS_TOKEN=1", true), ("access_token", true), ("page=2", false),
        ("a%5F=1", true),
        ("q=access_token", false), ("q=%20", false), ("", false), ("&&", false),
    ])
    func `a query that may hold a credential is noticed`(_ query: String, _ expected: Bool) {
        #expect(bytes(query).withUnsafeBytes { PrincipalFields().mayHoldParameter($0) } == expected)
    }

    @Test(arguments: [("AUTHORIZATION", 0), ("cookie", 1), ("accept", nil)] as [(String, Int?)])
    func `a field of the principal is known by its name`(_ name: String, _ index: Int?) {
        #expect(bytes(name).withUnsafeBytes { PrincipalFields().fieldIndex(of: $0) } == index)
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
