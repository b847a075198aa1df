import Testing

@testable import Mapping

/// Dates as RFC 3339 writes them, written and read.
struct TimestampTests {
    @Test func `every seventh day of six hundred years is read as it was written`() throws {
        for day in stride(from: -110_000, to: 110_000, by: 7) {
            let timestamp = Timestamp(seconds: day * 86_400 + 43_199)
            let text = try #require(timestamp.text)
            #expect(Timestamp(Array(text.utf8)) == timestamp)
        }
        #expect(Timestamp(seconds: 951_782_400).text == "2000-02-29T00:00:00Z")
        #expect(Timestamp(Array("1900-02-29T00:00:00Z".utf8)) == nil)
    }
}
