import Testing

@testable import Mapping

private func equal(_ left: String, _ right: String) throws -> Bool {
    let left = try #require(JSONSlice(Array(left.utf8)))
    let right = try #require(JSONSlice(Array(right.utf8)))
    #expect(left.isEqual(to: right) == right.isEqual(to: left))
    return left.isEqual(to: right)
}

@Suite struct JSONEqualityTests {
    @Test(arguments: [
        ("1", "1.0"), ("1.0", "1e0"), ("1.0", "10e-1"), ("0", "-0"), ("0", "0e99999999999999999999"), ("100", "1E2"),
        ("1e400", "10e399"), ("-1.50", "-15e-1"), ("0.001", "1e-3"),
        ("1e99999999999999999999", "10e99999999999999999998"), ("1e1000000000000000000", "10e999999999999999999"),
        ("1e-99999999999999999999", "0.1e-99999999999999999998"),
        ("0.0000000000000000000000000000000000000000000000000001", "1e-52"),
    ])
    func `numbers are equal as exact decimals`(left: String, right: String) throws {
        #expect(try equal(left, right))
    }

    @Test(arguments: [
        ("9007199254740993", "9007199254740992"), ("0.1", "0.10000000000000001"), ("1e400", "1e401"), ("1", "-1"),
        ("1", "\"1\""), ("1e99999999999999999999", "1e99999999999999999998"), ("1", "true"), ("0", "null"),
        ("1e99999999999999999999", "1e-99999999999999999999"),
    ])
    func `different numbers are unequal, however close`(left: String, right: String) throws {
        #expect(try !equal(left, right))
    }

    @Test(arguments: [
        (#""é""#, #""\u00e9""#), (#""\u003c""#, #""\u003C""#), (#""/""#, #""\/""#), (#""😀""#, #""\ud83d\ude00""#),
        (#""\n""#, #""\u000a""#), (#""\ud800""#, #""\uD800""#),
    ])
    func `strings are equal by their code points`(left: String, right: String) throws {
        #expect(try equal(left, right))
    }

    @Test(arguments: [
        ("\"e\u{301}\"", "\"\u{e9}\""), (#""a""#, #""A""#), (#""\ud800""#, #""\ud801""#), (#""""#, "null"),
        (#""\ud800""#, "\"\u{FFFD}\""),
    ])
    func `canonically equivalent strings and lone surrogates differ`(left: String, right: String) throws {
        #expect(try !equal(left, right))
    }

    @Test(arguments: [
        (#"{"a":1,"b":2}"#, #"{ "b" : 2.0, "a" : 1 }"#), (#"{"\u0061":[]}"#, #"{"a":[ ]}"#),
        (#"{"a":1,"a":2}"#, #"{"a":1.0,"a":2}"#),
    ])
    func `objects are equal whatever the order and spelling of members`(left: String, right: String) throws {
        #expect(try equal(left, right))
    }

    @Test(arguments: [
        (#"{"a":1}"#, #"{"a":1,"b":null}"#), (#"{"a":1,"a":2}"#, #"{"a":2,"a":1}"#), ("[1,2]", "[2,1]"), ("[]", "{}"),
        (#"{"a":1,"a":1}"#, #"{"a":1,"b":1}"#),
    ])
    func `objects and arrays with other content are not equal`(left: String, right: String) throws {
        #expect(try !equal(left, right))
    }

    @Test(arguments: [
        ("7", "7"), ("7.0", "7"), ("70e-1", "7"), ("-0", "0"), ("1.5", "1.5"), ("-15E-1", "-1.5"), ("1e3", "1000"),
        ("1e400", "1e400"), ("0.05", "0.05"), ("1e-50", "1e-50"),
        ("10e99999999999999999999", "1e100000000000000000000"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
    ])
    func `a number has one canonical text`(literal: String, canonical: String) {
        let number = Array(literal.utf8).withUnsafeBufferPointer(JSONNumber.init)
        #expect(number.canonicalText == canonical)
    }

    @Test func `numbers with huge exponents are equal only if spelled alike, but are still ordered`()
        throws
    {
        let large = String(repeating: "9", count: 40)
        #expect(try !equal("1e\(large)", "10e\(large.dropLast())8"))
        #expect(try equal("[1e\(large)]", "[1e\(large) ]"))
        #expect(try equal("1e\(String(repeating: "0", count: 40))2", "100"))
        let ordered = [
            "-2e\(large)", "-1e\(large)", "-1", "-1e-\(large)", "0", "1e-\(large)", "2e-\(large)", "1", "1e\(large)",
        ]
        .map { Array($0.utf8).withUnsafeBufferPointer(JSONNumber.init) }
        for (index, number) in ordered.enumerated() {
            for (other, larger) in ordered.enumerated() { #expect((number < larger) == (index < other)) }
        }
        #expect(ordered[1].canonicalText == "-1e\(large)")
    }

    @Test func `numbers are ordered exactly`() {
        let ordered = [
            "-1e99999999999999999999", "-1e99999999999999999998", "-1e20", "-2", "-1.5", "-1e-99999999999999999999",
            "0",
            "1e-99999999999999999999", "1e-5", "0.1", "0.11", "1", "1.5", "9", "10", "9007199254740992",
            "9007199254740993", "1e99999999999999999998", "1e99999999999999999999",
        ].map { Array($0.utf8).withUnsafeBufferPointer(JSONNumber.init) }
        for (index, number) in ordered.enumerated() {
            for (other, larger) in ordered.enumerated() { #expect((number < larger) == (index < other)) }
        }
    }
}
