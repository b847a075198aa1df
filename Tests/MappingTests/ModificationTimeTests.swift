import Testing

@testable import Mapping

private func time(_ literal: String) throws -> ModificationTime? {
    ModificationTime(try #require(JSONSlice(Array(literal.utf8))))
}

@Suite struct ModificationTimeTests {
    @Test(arguments: [
        (#""2012-11-13T13:31:36Z""#, #""2012-11-13T13:31:36.000Z""#),
        (#""2012-11-13T13:31:36Z""#, #""2012-11-13T15:31:36+02:00""#),
        (#""2012-11-13T13:31:36Z""#, #""2012-11-13t13:31:36z""#),
        (#""2000-03-01T00:30:00+01:00""#, #""2000-02-29T23:30:00Z""#), ("1352813496", "1352813496.0"),
    ])
    func `different spellings of one point in time are equal`(left: String, right: String) throws {
        #expect(try time(left) != nil)
        #expect(try time(left) == time(right))
    }

    @Test(arguments: [
        (#""2012-11-13T13:31:36Z""#, #""2012-11-13T13:31:36.0001Z""#),
        (#""2012-11-13T13:31:36.09Z""#, #""2012-11-13T13:31:36.1Z""#),
        (#""1969-12-31T23:59:59Z""#, #""1970-01-01T00:00:00Z""#), ("1", "1.5"),
        ("9007199254740992", "9007199254740993"),
        (#""2023-12-31T23:59:59Z""#, #""2024-02-29T00:00:00Z""#),
    ])
    func `times are ordered by the points in time that they name`(earlier: String, later: String) throws {
        let (earlier, later) = (try time(earlier), try time(later))
        #expect(earlier.isBelow(later))
        #expect(!later.isBelow(earlier))
    }

    @Test(arguments: [
        "null", #""yesterday""#, #""2012-11-13""#, #""2012-11-13T13:31:36""#, #""2012-13-13T13:31:36Z""#, "true", "[]",
        #""2012-11-13T13:31:36.Z""#, #""2012-11-13T13:31:36Zx""#, #""""#,
    ])
    func `a value that is no time cannot be ordered`(literal: String) throws {
        #expect(try time(literal) == nil)
    }

    @Test func `a date and a number cannot be compared`() throws {
        let date = try #require(try time(#""2012-11-13T13:31:36Z""#))
        let number = try #require(try time("1"))
        #expect(!Optional(date).isBelow(number) && !Optional(number).isBelow(date))
    }
}
