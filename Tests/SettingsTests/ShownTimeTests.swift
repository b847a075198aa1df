import Testing

@testable import Settings

/// Times as they are shown.
@Suite struct ShownTimeTests {
    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"), (1_700_000_000_250, "2023-11-14T22:13:20.250Z"),
        (-1, "1969-12-31T23:59:59.999Z"), (-1000, "1969-12-31T23:59:59.000Z"), (-1001, "1969-12-31T23:59:58.999Z"),
    ])
    func `a time has three digits of milliseconds, before 1970 too`(milliseconds: Int64, text: String) {
        #expect(timestamp(milliseconds: milliseconds) == text)
    }
}
