import Testing

@testable import Mapping

struct ValueCheckerTests {
    private static func json(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test(arguments: [
        (ValueCheck.type([.string]), #""a""#, true), (.type([.string]), "1", false),
        (.type([.string, .number]), "1", true), (.type([.integer]), "5.0", true), (.type([.integer]), "5.5", false),
        (.type([.boolean]), "true", true), (.type([.object]), "[]", false), (.type([.string]), "null", true),
        (.range(minimum: json("0"), maximum: json("100")), "100", true),
        (.range(minimum: json("0"), maximum: json("100")), "100.0000000000000000001", false),
        (.range(minimum: json("0"), maximum: nil), "-1e-400", false),
        (.range(minimum: nil, maximum: json("1e400")), "9e399", true),
        (.range(minimum: json("0"), maximum: nil), #""5""#, false),
        (.length(minimum: 1, maximum: 3), #""äöü""#, true), (.length(minimum: 1, maximum: 3), #""""#, false),
        (.length(minimum: nil, maximum: 2), "[1,2,3]", false),
        (.length(minimum: nil, maximum: 1), #""\ud83d\ude00""#, true),
        (.pattern("[a-z]+"), #""abc""#, true), (.pattern("[a-z]+"), #""abc1""#, false),
        (.pattern("a|bc"), #""bc""#, true), (.pattern("a|bc"), #""ab""#, false),
        (.oneOf([json("1"), json(#""a""#)]), "1.0", true), (.oneOf([json("1")]), #""1""#, false),
        (.notNull, "null", false), (.notNull, "0", true),
    ]
    )
    func `a value passes its check, or the reason says what was expected`(
        _ check: ValueCheck,
        _ value: String,
        _ isGood: Bool
    ) throws {
        let fault = try ValueChecker([check]).fault(in: Self.json(value))
        #expect((fault == nil) == isGood)
        if let fault { #expect(fault.hasSuffix("expected") || fault.hasSuffix("not allowed")) }
    }

    @Test(arguments: [
        ValueCheck.type([]), .range(minimum: json("2"), maximum: json("1")),
        .range(minimum: json("a"), maximum: nil),
        .length(minimum: 2, maximum: 1), .length(minimum: -1, maximum: nil), .pattern("("), .pattern("a)|(b"),
        .oneOf([]),
        .oneOf([json("{")]),
    ]
    )
    func `a check that no value can pass is refused`(_ check: ValueCheck) {
        #expect(throws: MappingError.self) { try ValueChecker([check]) }
    }

    @Test(arguments: ["(a+)+b", "(a|aa)*b", "(.*a){20}", "([a-z]+)*="])
    func `matching stops when a pattern costs too much`(_ pattern: String) throws {
        let checker = try ValueChecker([.pattern(pattern)])
        for count in [25, 40, 400, 9_000] {
            #expect(checker.fault(in: Self.json("\"\(String(repeating: "a", count: count))!\"")) != nil)
        }
    }

    @Test func `a plain pattern is matched in long texts`() throws {
        let checker = try ValueChecker([.pattern("[a-z]+( [a-z]+)*")])
        #expect(checker.fault(in: Self.json("\"\(String(repeating: "word ", count: 1_900))word\"")) == nil)
    }

    @Test
    func `a pattern check fails for a text that is very long or not Unicode`() throws {
        let checker = try ValueChecker([.pattern("[a-z]*")])
        #expect(checker.fault(in: Self.json("\"" + String(repeating: "a", count: 1_000_000) + "\"")) != nil)
        #expect(checker.fault(in: Self.json(#""\ud800""#)) != nil)
    }
}

extension ValueChecker {
    fileprivate func fault(in json: [UInt8]) -> String? { JSONSlice(json).flatMap { fault(in: $0) } }
}
