import DaemonTestSupport
import Testing

@testable import CachePolicy
@testable import HTTPSemantics

@Suite struct AgeFieldTests {
    @Test(
        arguments: [
            (["0"], 0), (["7200"], 7200), (["007"], 7), (["2147483647"], 2_147_483_647),
            (["2147483649"], 2_147_483_648),
            (["99999999999999999999999"], 2_147_483_648), (["7200, 0"], 7200), (["0, 7200"], 0), (["7200", "0"], 7200),
            (["0", "7200"], 0), (["5 , x"], 5), ([", 5"], 5), (["", "5"], 5), ([" ,, 5,6"], 5), (["000000000005"], 5),
        ] as [([String], Int64)]
    )
    func `of several Age values the first counts`(_ lines: [String], _ age: Int64) {
        #expect(AgeField.parse(lines: lines.map { bytes($0) }) == age)
    }

    @Test(arguments: [
        [], [""], ["abc"], ["-7200"], ["+5"], ["7200.0"], ["5 6"], ["\"5\""], ["7200;x=1"], ["x, 5"], ["x", "5"],
        ["0x10"],
        [","], ["5s"], ["5e3"], ["٥"], ["5\u{0}"], ["-0"], ["\"5, 6\""],
    ])
    func `an age that cannot be read counts as absent`(_ lines: [String]) {
        #expect(AgeField.parse(lines: lines.map { bytes($0) }) == nil)
    }
}

@Suite struct EntityTagTests {
    @Test(arguments: [
        ("\"a\"", false, "a"), ("W/\"a\"", true, "a"), ("\"\"", false, ""), ("\"a\\b\"", false, "a\\b"),
        ("\"a,b\"", false, "a,b"), ("\"é\"", false, "é"),
    ])
    func `an entity tag is read`(_ value: String, _ isWeak: Bool, _ opaque: String) {
        #expect(EntityTag(bytes(value)) == EntityTag(isWeak: isWeak, opaque: bytes(opaque)))
        #expect(EntityTag(bytes(value))?.bytes == bytes(value))
    }

    @Test(arguments: [
        "", "a", "\"", "\"a", "a\"", "w/\"a\"", "W\"a\"", "W/a", "\"a b\"", "\"a\"b\"", "*", "\"a\", \"b\"",
    ])
    func `a malformed entity tag is refused`(_ value: String) {
        #expect(EntityTag(bytes(value)) == nil)
    }

    /// The table of RFC 9110 §8.8.3.2.
    @Test(arguments: [
        ("W/\"1\"", "W/\"1\"", false, true), ("W/\"1\"", "W/\"2\"", false, false), ("W/\"1\"", "\"1\"", false, true),
        ("\"1\"", "\"1\"", true, true),
    ])
    func `tags compare weakly and strongly`(_ left: String, _ right: String, _ strong: Bool, _ weak: Bool) throws {
        let left = try #require(EntityTag(bytes(left)))
        let right = try #require(EntityTag(bytes(right)))
        #expect(left.matchesStrongly(right) == strong)
        #expect(left.matchesWeakly(right) == weak)
    }

    @Test func `a list of tags is read, and anything else in it is skipped`() {
        let condition = EntityTagCondition(lines: [bytes("\"a\", W/\"b,c\" ,,x"), bytes("\"d\\\", \"e\"")])
        #expect(condition?.bytes == bytes("\"a\", W/\"b,c\", \"d\\\", \"e\""))
        #expect(EntityTagCondition(lines: [bytes(" * ")]) == .any)
        #expect(EntityTagCondition(lines: [bytes("*, \"a\"")]) == .tags([EntityTag(isWeak: false, opaque: bytes("a"))]))
        #expect(EntityTagCondition(lines: []) == nil)
    }

    @Test func `Larder's own tags are recognised and removed`() {
        let condition = EntityTagCondition(lines: [bytes("\"larder-1f\", \"a\"")])
        #expect(condition?.namesOwn == true)
        #expect(condition?.withoutOwn?.bytes == bytes("\"a\""))
        #expect(EntityTagCondition(lines: [bytes("W/\"larder-1f\"")])?.withoutOwn == nil)
        #expect(EntityTagCondition(lines: [bytes("\"xlarder-1f\"")])?.namesOwn == false)
    }
}

@Suite struct VaryFieldTests {
    @Test(
        arguments: [
            ([], []), ([""], []), (["Accept"], ["accept"]), (["b, A ,,a"], ["a", "b"]), (["b", "a"], ["a", "b"]),
        ] as [([String], [String])]
    )
    func `the names in Vary are collected`(_ lines: [String], _ names: [String]) {
        #expect(VaryField(lines: lines.map { bytes($0) }) == .fields(names))
    }

    @Test(arguments: [["*"], ["a, *"], ["*, a"], ["a", "*"], ["a b"], ["\"a\""]])
    func `a Vary with a star or an invalid name matches no request`(_ lines: [String]) {
        #expect(VaryField(lines: lines.map { bytes($0) }) == .any)
    }
}

@Suite struct VarySelectionTests {
    private func select(_ vary: String, _ request: [(String, String)], ignoring: Set<String> = []) -> VarySelection? {
        VarySelection(VaryField(lines: [bytes(vary)]), ignoring: ignoring, request: fields(request))
    }

    @Test(
        arguments: [
            ("X-A", [("X-A", "1")], [("x-a", "1")], true),
            ("X-A", [("X-A", "1")], [("X-A", "2")], false),
            ("X-A", [("X-A", "1")], [], false),
            ("X-A", [], [], true),
            ("X-A", [], [("X-A", "")], false),
            ("X-A", [("X-A", "")], [], false),
            ("X-A", [("X-A", "")], [("X-A", "")], true),
            ("X-A", [("X-A", "1")], [("X-A", "1"), ("X-B", "2")], true),
            ("X-A", [("X-A", "1"), ("X-A", "2")], [("X-A", "1, 2")], true),
            ("X-A", [("X-A", "1,2")], [("X-A", "1 ,  2")], true),
            ("X-A", [("X-A", "1,2,")], [("X-A", "1, 2 , ")], true),
            ("X-A", [("X-A", "1 2")], [("X-A", "1  2")], false),
            ("X-A", [("X-A", "\"1,2\"")], [("X-A", "\"1, 2\"")], false),
            ("X-A", [("X-A", "\"1,2")], [("X-A", "\"1, 2")], true),
            ("X-A", [("X-A", "a")], [("X-A", "A")], false),
            ("X-A, X-B", [("X-A", "1"), ("X-B", "2")], [("X-B", "2"), ("X-A", "1")], true),
            ("X-A, X-B", [("X-A", "1"), ("X-B", "2")], [("X-A", "1")], false),
            ("Accept-Encoding", [("Accept-Encoding", "gzip, br")], [("Accept-Encoding", "BR,gzip;q=1.0")], true),
            ("Accept-Encoding", [("Accept-Encoding", "gzip")], [("Accept-Encoding", "gzip;q=0")], false),
            ("Accept-Language", [("Accept-Language", "en, de;q=0.5")], [("Accept-Language", "DE;q=0.5 ,EN")], true),
            ("Accept-Language", [("Accept-Language", "en, de")], [("Accept-Language", "de, en")], false),
            (
                "Accept", [("Accept", "text/HTML;level=1 , */*;q=0.1")],
                [("Accept", "*/*;q=0.100,text/html ; level=1")], true
            ),
            ("Accept", [("Accept", "a/b;v=X")], [("Accept", "a/b;v=x")], false),
        ] as [(String, [(String, String)], [(String, String)], Bool)]
    )
    func `a selection matches fields with the same meaning`(
        _ vary: String,
        _ first: [(String, String)],
        _ second: [(String, String)],
        _ matches: Bool
    ) throws {
        let selection = try #require(select(vary, first))
        #expect(selection.matches(fields(second)) == matches)
        #expect((selection.bytes == select(vary, second)?.bytes) == matches)
        #expect(VarySelection(bytes: selection.bytes) == selection)
    }

    @Test func `Vary: * has no selection`() {
        #expect(select("*", []) == nil)
    }

    @Test func `ignored fields neither select nor appear`() throws {
        let selection = try #require(
            select("Authorization, X-A", [("Authorization", "secret")], ignoring: ["authorization"])
        )
        #expect(selection.lines.map(\.name) == ["x-a"])
        #expect(selection.matches(fields([("Authorization", "other")])))
    }

    @Test(arguments: [[1], [0x61], [0x61, 0], [0x61, 0, 1], [0x61, 0, 1, 9, 0, 0, 0, 1]] as [[UInt8]])
    func `bytes that encode no selection are refused`(_ bytes: [UInt8]) {
        #expect(VarySelection(bytes: bytes) == nil)
    }
}

@Suite struct RateLimitReadingTests {
    @Test(
        arguments: [
            (
                [
                    ("X-RateLimit-Limit", "5000"), ("X-RateLimit-Remaining", "4999"),
                    ("X-RateLimit-Reset", "1800000000"), ("X-RateLimit-Resource", "core"),
                ],
                RateLimit(limit: 5000, remaining: 4999, reset: 1_800_000_000, resource: "core")
            ),
            (
                [("RateLimit-Limit", "100, 100;w=60"), ("RateLimit-Remaining", "7"), ("RateLimit-Reset", "30")],
                RateLimit(limit: 100, remaining: 7, reset: 1_030, resource: nil)
            ),
            (
                [("RateLimit", "\"burst\";r=50;t=5, \"day\";r=3;t=600")],
                RateLimit(remaining: 3, reset: 1_600, resource: "day")
            ),
            (
                [("RateLimit", "\"burst\";r=5;t=5"), ("RateLimit-Policy", "\"day\";q=9;w=600, \"burst\";q=60;w=60")],
                RateLimit(limit: 60, remaining: 5, reset: 1_005, resource: "burst")
            ),
            (
                [("RateLimit", "limit=100, remaining=0, reset=50")],
                RateLimit(limit: 100, remaining: 0, reset: 1_050, resource: nil)
            ),
            ([("X-RateLimit-Limit", "5000")], nil), ([("X-RateLimit-Remaining", "many")], nil), ([], nil),
        ] as [([(String, String)], RateLimit?)]
    )
    func `the remaining requests of a rate limit are read in each spelling`(
        _ lines: [(String, String)],
        _ expected: RateLimit?
    ) {
        #expect(RateLimitFields.limit(fields(lines), now: 1_000) == expected)
    }
}
