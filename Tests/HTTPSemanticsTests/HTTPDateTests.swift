import DaemonTestSupport
import Glibc
import Testing

@testable import HTTPSemantics

extension HTTPDate {
    fileprivate static func parse(_ text: String, now: Int64) -> Int64? { parse(text.utf8, now: now) }
}

@Suite struct HTTPDateTests {
    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "sun, 06 nov 1994 08:49:37 gmt",
        "SUN, 06 NOV 1994 08:49:37 GMT",
        // The day of the week is only looked at for its form.
        "Mon, 06 Nov 1994 08:49:37 GMT",
    ])
    func `each of the three date forms is read`(_ value: String) {
        #expect(HTTPDate.parse(value, now: exampleDate) == exampleDate)
    }

    @Test(arguments: [
        "", "0", "-1", "now", "784111777",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun 06 Nov 1994 08:49:37 GMT",
        "Sun,06 Nov 1994 08:49:37 GMT",
        "Sun, 06  Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994  08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08.49.37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 Z",
        "Sun, 06 Nov 1994 08:49:37 GMT+1",
        "Sun, 06 Nov 1994 08:49:37 -0000",
        "Sunday, 06-Nov-94 08:49:37 UTC",
        "Sunday, 6-Nov-94 08:49:37 GMT",
        "Sunday 06-Nov-94 08:49:37 GMT",
        "Sun, 06 Nov 10994 08:49:37 GMT",
        "Sun, 06 Nov 994 08:49:37 GMT",
        "Sun, 006 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 -8:49:37 GMT",
        "Sun,\t06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT\0",
        "Sun, 06 Nóv 1994 08:49:37 GMT",
        "\"Sun, 06 Nov 1994 08:49:37 GMT\"",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov   6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37 EST",
        "Sun, 06 Nov 1994 08:49:37 AEST",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Tue, 29 Feb 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Son, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 November 1994 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov  6 08:49:37 1994 GMT",
        "1994-11-06T08:49:37Z",
        "Sun, 06 Nov 1994 08:49:37 GMT and a good deal more than any date has",
    ])
    func `text in any other form is no date`(_ value: String) {
        #expect(HTTPDate.parse(value, now: exampleDate) == nil)
    }

    @Test(arguments: [
        // In 1994: 44 may be 2044, exactly fifty years away; a second more makes it 1944.
        ("Sunday, 06-Nov-44 08:49:37 GMT", exampleDate, 2044),
        ("Sunday, 06-Nov-44 08:49:38 GMT", exampleDate, 1944),
        ("Monday, 07-Nov-44 08:49:37 GMT", exampleDate, 1944),
        ("Sunday, 05-Nov-44 08:49:37 GMT", exampleDate, 2044),
        ("Sunday, 06-Nov-45 08:49:37 GMT", exampleDate, 1945),
        ("Sunday, 06-Nov-00 08:49:37 GMT", exampleDate, 2000),
        // In 2026: 94 is the past, 76 not yet.
        ("Sunday, 06-Nov-94 08:49:37 GMT", 1_790_000_000, 1994),
        ("Sunday, 06-Jan-76 08:49:37 GMT", 1_790_000_000, 2076),
        ("Sunday, 06-Jan-77 08:49:37 GMT", 1_790_000_000, 1977),
    ])
    func `a two-digit year is at most fifty years ahead`(_ value: String, _ now: Int64, _ year: Int) throws {
        let seconds = try #require(HTTPDate.parse(value, now: now))
        #expect(date(seconds).contains(" \(year) "))
    }

    @Test(arguments: [
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (exampleDate, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
        (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
        (4_102_444_800, "Fri, 01 Jan 2100 00:00:00 GMT"),
        (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
        (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
        (Int64.max, "Fri, 31 Dec 9999 23:59:59 GMT"),
    ])
    func `a date is written in the preferred form`(_ seconds: Int64, _ expected: String) {
        #expect(date(seconds) == expected)
        #expect(HTTPDate.parse(expected, now: exampleDate) == min(seconds, 253_402_300_799))
    }

    @Test func `of several date lines the one that makes the response less fresh counts`() {
        let lines = ["Sun, 06 Nov 1994 08:49:38 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"].map { bytes($0) }
        #expect(HTTPDate.earliest(of: lines, now: exampleDate) == exampleDate)
        #expect(HTTPDate.earliest(of: lines + [bytes("0")], now: exampleDate) == exampleDate)
        #expect(HTTPDate.earliest(of: [bytes("0")], now: exampleDate) == nil)
        #expect(HTTPDate.latest(of: lines, now: exampleDate) == exampleDate + 1)
        #expect(HTTPDate.latest(of: lines + [bytes("0")], now: exampleDate) == nil)
        #expect(HTTPDate.latest(of: [], now: exampleDate) == nil)
    }

    @Test func `a leap second is read`() {
        #expect(HTTPDate.parse("Sat, 31 Dec 2016 23:59:60 GMT", now: exampleDate) == 1_483_228_800)
    }
}
