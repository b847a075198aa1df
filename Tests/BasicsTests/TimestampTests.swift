import Basics
import Glibc
import Testing

/// Dates as RFC 3339 writes them, written and read.
struct TimestampTests {
    @Test func `every seventh day of six hundred years is read as it was written`() throws {
        for day in stride(from: -110_000, to: 110_000, by: 7) {
            let timestamp = Timestamp(seconds: day * 86_400 + 43_199)
            let text = try #require(timestamp.text)
            #expect(Timestamp(Array(text.utf8)) == timestamp)
        }
        #expect(Timestamp(seconds: 951_782_400).text == "2000-02-29T00:00:00Z")
    }

    @Test func `a date and time is read as seconds since 1970`() {
        #expect(Timestamp(Array("1970-01-01T00:00:00Z".utf8)) == Timestamp(seconds: 0))
        #expect(Timestamp(Array("2012-11-13T13:31:36Z".utf8)) == Timestamp(seconds: 1_352_813_496))
        #expect(Timestamp(Array("0001-01-01T00:00:00Z".utf8)) == Timestamp(seconds: -62_135_596_800))
    }

    @Test(arguments: [
        "1900-02-29T00:00:00Z", "2023-04-31T00:00:00Z", "2023-13-01T00:00:00Z", "2023-00-01T00:00:00Z",
        "2023-01-00T00:00:00Z", "2023-01-01T24:00:00Z", "2023-01-01T00:00:00", "2023-01-01T00:00:00+0200",
    ])
    func `text that is no point in time is not read`(text: String) { #expect(Timestamp(Array(text.utf8)) == nil) }

    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"), (1_700_000_000_250, "2023-11-14T22:13:20.250Z"),
        (-1, "1969-12-31T23:59:59.999Z"), (-1000, "1969-12-31T23:59:59.000Z"), (-1001, "1969-12-31T23:59:58.999Z"),
        (.min, "0000-01-01T00:00:00.000Z"), (.max, "9999-12-31T23:59:59.999Z"),
    ])
    func `a time in milliseconds is written with three decimals, also before 1970`(milliseconds: Int64, text: String) {
        #expect(Timestamp.text(milliseconds: milliseconds) == text)
    }

    @Test func `dates agree with those of the system's library`() {
        for seconds in stride(from: -62_167_219_200, to: 253_402_300_800, by: 47_111_117) {
            var (time, parts) = (time_t(seconds), tm())
            gmtime_r(&time, &parts)
            let own = CivilTime(seconds)
            let date = [parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday].map(Int.init)
            #expect([own.year, own.month, own.day] == date)
            #expect([own.hour, own.minute, own.second] == [parts.tm_hour, parts.tm_min, parts.tm_sec].map(Int.init))
            #expect(CivilTime.dayNumber(year: own.year, month: own.month, day: own.day) == own.dayNumber)
        }
    }
}
